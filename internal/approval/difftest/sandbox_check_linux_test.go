package difftest

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/shell"
)

// TestSandboxSeesDifferences holds scripts against commands that they do not run, so that
// what the campaign does not find is not there, and is not only unseen.
func TestSandboxSeesDifferences(t *testing.T) {
	box := newSandbox(t, newSetup(t))
	status := []shell.Simple{{Words: []string{"git", "status"}}}
	from := func(path string) []shell.Simple {
		return []shell.Simple{{Words: status[0].Words, Redirects: []shell.Redirect{{FD: 0, Op: "<", To: path}}}}
	}
	for _, test := range []struct {
		name, script string
		commands     []shell.Simple
		want         string // part of the difference; none is wanted if it is empty
	}{
		{"the same", "git 'status'", status, ""},
		{"another word", "git status x", status, `executed`},
		{"an empty word", "git status ''", status, `"status" ""`},
		{"one word for two", "'git status'", status, `"git status"`},
		{"nothing", "", status, "0 programs were executed"},
		{"one more", "git status; ls", status, "not judged"},
		{"one more in a substitution", "git status $(ls >&2)", status, "executed"},
		{"one more in the background", "ls & git status", status, "executed"},
		{"one more at the end", "trap ls EXIT; git status", status, "not judged"},
		{"a program that is not there", "git status; nothere", status, "/rec/missing"},
		{"another program of the name", "PATH=. git status", status, "./git"},
		{"another program by its path", "./git status", status, "./git"},
		{"a variable", "HOME=sub git status", status, "HOME=sub"},
		{"a variable of git", "GIT_DIR=sub git status", status, "GIT_DIR=sub"},
		{"a variable less", "unset x; git status", status, "executed"},
		{"another folder", "cd sub && git status", status, "project/sub"},
		{"a file that is made", "git status; : >new", status, "project/new"},
		{"a file that is emptied", ": >victim; git status", status, "project/victim"},
		{"a file that is opened", "git status 3<a", status, "3="},
		{"another file for output", "git status >a", []shell.Simple{{Words: status[0].Words, Redirects: []shell.Redirect{{FD: 1, Op: ">", To: "b"}}}}, "project/a:w"},
		{"input from a program", "git status <'/usr/bin/ls'", from("/usr/bin/ls"), ""},
		{"input from a program in a folder that is a link", "git status <'/bin/ls'", from("/bin/ls"), ""},
		{"input from a folder", "git status <'/usr'", from("/usr"), ""},
		{"input from a link to a folder", "git status <'/bin'", from("/bin"), ""},
		{"input from another folder", "git status </usr/bin", from("/usr"), "/usr/bin:r"},
		{"output to errors", "git status >&2", status, "1=err"},
		{"input from a pipe", "ls | git status", []shell.Simple{{Words: []string{"ls"}}, {Joint: ";", Words: status[0].Words}}, "pipe"},
		{"a branch that is not taken", "ls || git status", []shell.Simple{{Words: []string{"ls"}}, {Joint: "&&", Words: status[0].Words}}, "0 programs were executed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			why := differs(t, box, request{Shell: "bash", Script: test.script, Status: '0', Builtins: true}, test.commands)
			if (why == "") != (test.want == "") || !strings.Contains(why, test.want) {
				t.Errorf("%s: the difference is %q, want %q in it", test.script, why, test.want)
			}
		})
	}
}
