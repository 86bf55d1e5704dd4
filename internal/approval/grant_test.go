package approval_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

func TestAGrantCoversWhatItSays(t *testing.T) {
	elsewhere, terminal, input := command("ls -l"), command("ls -l"), command("ls -l")
	elsewhere.Dir, elsewhere.Elsewhere, terminal.Terminal, input.Input = "/tmp", "/tmp", true, true
	outside := approval.Request{Kind: approval.Shell, Tool: "bash"}
	outside.ReadCommand(shell.Parse("git status"), approval.Surroundings{Dir: "/elsewhere", Home: "/w"})
	custom := approval.Request{Kind: approval.CustomTool, Tool: "deploy", Subjects: []string{"deploy"}}
	exact := event.Grant{Kind: approval.Shell, Command: "'ls' '-l'"}
	prefix := event.Grant{Kind: approval.Shell, Prefix: []string{"git", "status"}}
	folder := event.Grant{Kind: approval.Write, Folder: "/w/src"}
	for _, test := range []struct {
		name    string
		grant   event.Grant
		request approval.Request
		covered bool
	}{
		{"the same command", exact, command("ls -l"), true},
		{"the same words", exact, command(`"ls"  '-l'`), true},
		{"one word instead of two", exact, command(`'ls -l'`), false},
		{"one word more", exact, command("ls -l x"), false},
		{"one command more", exact, command("ls -l; ls -l"), false},
		{"a redirection more", exact, command("ls -l > x"), false},
		{"another directory", exact, elsewhere, false},
		{"a terminal", exact, terminal, false},
		{"an open input", exact, input, false},
		{"what is not understood", exact, command("ls $X"), false},
		{"a text that is not understood, word for word", event.Grant{Kind: approval.Shell, Command: "ls $X"}, command("ls $X"), false},

		{"words that begin so", prefix, command("git status --short"), true},
		{"every command of a line begins so", prefix, command("git status; git status -s"), true},
		{"one command of a line does not", prefix, command("git status; git push"), false},
		{"options before the subcommand", prefix, command("git -c core.fsmonitor=x status"), false},
		{"an option that runs a program", event.Grant{Kind: approval.Shell, Prefix: []string{"git", "log"}}, command("git log --ext-diff"), false},
		{"an option that writes a file, abbreviated", event.Grant{Kind: approval.Shell, Prefix: []string{"git", "log"}}, command("git log --outp=x"), false},
		{"an option that writes a file, among others", event.Grant{Kind: approval.Shell, Prefix: []string{"sort"}}, command("sort -uo victim x"), false},
		{"an operand that sets the clock", event.Grant{Kind: approval.Shell, Prefix: []string{"date"}}, command("date 010100002030"), false},
		{"a longer word", prefix, command("git statusx"), false},
		{"a redirection", prefix, command("git status > /etc/x"), false},
		{"a prefix in another program", prefix, command("echo git status"), false},
		{"a folder outside of the session", event.Grant{Kind: approval.Shell, Prefix: []string{"git", "status"}, Dir: "/elsewhere"}, outside, false},
		{"the same command there, word for word", event.Grant{Kind: approval.Shell, Command: "'git' 'status'", Dir: "/elsewhere"}, outside, true},
		{"words that can run code", event.Grant{Kind: approval.Shell, Prefix: []string{"python3"}}, command("python3 x.py"), false},
		{"all words", event.Grant{Kind: approval.Shell, Prefix: []string{"*"}}, command("ls"), false},

		{"a file below the folder", folder, file(approval.Write, "edit", "/w/src/a"), true},
		{"the folder itself", folder, file(approval.Write, "edit", "/w/src"), true},
		{"a file beside it", folder, file(approval.Write, "edit", "/w/srcx"), false},
		{"a path that leads out of it", folder, file(approval.Write, "edit", "/w/src", "/etc/x"), false},
		{"reading", folder, file(approval.Read, "view", "/w/src/a"), false},
		{"no path", folder, approval.Request{Kind: approval.Write}, false},
		{"a command", event.Grant{Kind: approval.Shell, Folder: "/"}, command("ls"), false},

		{"a tool", event.Grant{Kind: approval.CustomTool, Subject: "deploy"}, custom, true},
		{"another tool", event.Grant{Kind: approval.CustomTool, Subject: "*"}, custom, false},
		{"a built-in tool of that name", event.Grant{Kind: approval.CustomTool, Subject: "bash"}, command("ls"), false},

		{"every command", event.Grant{Kind: approval.Shell}, command("ls"), false},
		{"every write", event.Grant{Kind: approval.Write}, file(approval.Write, "edit", "/w/src/a"), false},
		{"every call", event.Grant{Kind: approval.CustomTool}, custom, false},
		{"nothing", event.Grant{}, approval.Request{}, false},
	} {
		d := approval.Judge("", event.PermissionRules{}, []event.Grant{test.grant}, &test.request)
		if covered := d.Verdict == approval.Grant; covered != test.covered {
			t.Errorf("%s: covered = %v, want %v", test.name, covered, test.covered)
		}
		if !test.covered {
			continue
		}
		if d.By != approval.ByGrant || len(d.Grants) != 1 || !d.Grants[0].Equal(test.grant) || (d.Judged == nil) != (test.request.Plain == nil) {
			t.Errorf("%s: decided by %+v", test.name, d)
		}
		rules := event.PermissionRules{Deny: []string{"*"}}
		if d := approval.Judge("", rules, []event.Grant{test.grant}, &test.request); d.Verdict != approval.Deny {
			t.Errorf("%s: a grant wins over a denial", test.name)
		}
	}
}

// TestAnOfferAllowsWhatItShows: the offers of a question cover the request itself, and the
// label of each says what else.
func TestAnOfferAllowsWhatItShows(t *testing.T) {
	elsewhere := command("git push origin main")
	elsewhere.Dir, elsewhere.Elsewhere, elsewhere.Terminal = "/tmp", "/tmp", true
	outside := approval.Request{Kind: approval.Shell, Tool: "bash"}
	outside.ReadCommand(shell.Parse("git status"), approval.Surroundings{Dir: "/elsewhere", Home: "/w"})
	guarded := approval.Request{Kind: approval.Shell, Tool: "bash"}
	guarded.ReadCommand(shell.Parse("echo x > .git/hooks/y"), approval.Surroundings{Dir: "/w", Home: "/w", Protected: func(string) (string, bool) { return "git runs it", true }})
	for _, test := range []struct {
		request approval.Request
		want    []string // ids and labels
	}{
		{guarded, []string{"once: this call only"}},
		{command("ls -l"), []string{"once: this call only", "command: exactly this command line: ls -l", "prefix: any command that begins with: ls …"}},
		{command("ls; '*'"), []string{"once: this call only", "command: exactly this command line: ls; '*'"}},
		{command("python3 x.py"), []string{"once: this call only", "command: exactly this command line: python3 x.py"}},
		{command("git status && git log -p"), []string{"once: this call only", "command: exactly this command line: git status && git log -p", "prefix: any command that begins with: git status …, git log …"}},
		{command("ls > x"), []string{"once: this call only", "command: exactly this command line: ls 1>'x'"}},
		{command("ls $X"), []string{"once: this call only"}},
		{command("sort -o x y"), []string{"once: this call only", "command: exactly this command line: sort -o x y"}},
		{command("ls; sort -uox y"), []string{"once: this call only", "command: exactly this command line: ls; sort -uox y"}},
		{command("git log --output=x"), []string{"once: this call only", "command: exactly this command line: git log --output=x"}},
		{command("sort -u y"), []string{"once: this call only", "command: exactly this command line: sort -u y", "prefix: any command that begins with: sort …"}},
		{outside, []string{"once: this call only", "command: exactly this command line: git status"}},
		{file(approval.Write, "edit", "/w/src/a.go"), []string{"once: this call only", "file: writing /w/src/a.go", "folder: writing anything below /w/src"}},
		{file(approval.Read, "grep", "/w/a", "/v/b"), []string{"once: this call only", "file: reading /w/a, /v/b", "folder: reading anything below /w, /v"}},
		{folders(file(approval.Read, "grep", "/v/x"), "/v/x"), []string{"once: this call only", "folder: reading anything below /v/x"}},
		{folders(file(approval.Read, "grep", "/w/a", "/v/x"), "/v/x"), []string{"once: this call only", "file: reading /w/a, anything below /v/x", "folder: reading anything below /w, /v/x"}},
		{folders(file(approval.Read, "view", "/"), "/"), []string{"once: this call only"}},
		{file(approval.Read, "view", "/x"), []string{"once: this call only", "file: reading /x"}},
		{approval.Request{Kind: approval.CustomTool, Subjects: []string{"deploy"}}, []string{"once: this call only", "tool: any call of deploy"}},
		{approval.Request{Kind: approval.Shell, Subjects: []string{approval.InputTo + "k"}}, []string{"once: this call only", "input: any further input to this command"}},
	} {
		var got []string
		for _, o := range test.request.Offers() {
			got = append(got, o.ID+": "+o.Label)
			if o.ID == event.OfferOnce {
				if len(o.Grants) > 0 {
					t.Errorf("%v: once grants %+v", test.want, o.Grants)
				}
				continue
			}
			if d := approval.Judge("", event.PermissionRules{}, o.Grants, &test.request); d.Verdict != approval.Grant {
				t.Errorf("%v: the offer %s does not cover the request", test.want, o.ID)
			}
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("offers are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
	for _, o := range elsewhere.Offers()[1:] {
		for _, g := range o.Grants {
			if g.Dir != "/tmp" || !g.Terminal {
				t.Errorf("%s forgets where the command runs: %+v", o.ID, g)
			}
		}
	}
}

// A question that would come again in spite of a grant offers none.
func TestNothingIsOfferedThatDoesNotHelp(t *testing.T) {
	rules := event.PermissionRules{Deny: []string{"bash(git push --force *)"}}
	for line, want := range map[string]int{"git push -f https://a.example/x": 1, "git push https://a.example/x": 3} {
		r := command(line)
		d := approval.Judge("", rules, nil, &r)
		offers := d.Offers(&r)
		if len(offers) != want || (len(d.SessionGrants(&r)) > 0) != (want > 1) {
			t.Errorf("%s: offers are %+v", line, offers)
		}
		for _, o := range offers[1:] {
			if d := approval.Judge("", rules, o.Grants, &r); d.Verdict != approval.Grant {
				t.Errorf("%s: the offer %s does not help", line, o.ID)
			}
		}
	}
}

// A redirection is no part of the words that a prefix allows, also where the scope of the
// session allows its file.
func TestAPrefixCoversNoRedirection(t *testing.T) {
	in := project(t)
	grant := []event.Grant{{Kind: approval.Shell, Prefix: []string{"echo"}}}
	for line, want := range map[string]approval.Verdict{"echo x": approval.Grant, "echo x > out": approval.Ask, "echo x < README.md": approval.Ask, "echo x 2>&1": approval.Ask} {
		if d := approval.Judge("", event.PermissionRules{}, grant, readLine(line, in)); d.Verdict != want {
			t.Errorf("%s: %s, want %s", line, verdictName(d.Verdict), verdictName(want))
		}
	}
}

// TestAGrantHoldsWhereItWasGiven: a command line that was approved in a folder is not covered
// in another one, be it that the session works there now, or that a link leads there.
func TestAGrantHoldsWhereItWasGiven(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/sub", "b/sub"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "a/link")
	lead := func(to string) {
		t.Helper()
		_ = os.Remove(link) // the first time there is none
		if err := os.Symlink(filepath.Join(top, to), link); err != nil {
			t.Fatal(err)
		}
	}
	read := func(home, dir string) *approval.Request {
		r := &approval.Request{Kind: approval.Shell, Tool: "bash"}
		r.ReadCommand(shell.Parse("./clean.sh all"), approval.Surroundings{Home: filepath.Join(top, home), Dir: filepath.Join(top, dir)})
		return r
	}
	for _, test := range []struct {
		name                  string
		home, dir, now, later string // folders of the session and of the command, before and after
		covered               bool
	}{
		{"the same folder", "a", "a", "a", "a", true},
		{"another folder of the session", "a", "a", "a", "a/sub", false},
		{"the session has moved", "a", "a", "b", "b", false},
		{"the session has moved to a folder below", "a", "a", "a/sub", "a/sub", false},
		{"the session has moved, the command has not", "a", "a", "b", "a", true},
		{"a folder that the session has moved to", "a", "a/sub", "a/sub", "a/sub", true},
		{"by a link that leads there", "a", "a/sub", "a", "a/link", true},
		{"by a link that led elsewhere", "a", "a/link", "a", "a/link", false},
	} {
		lead(map[bool]string{true: "b", false: "a/sub"}[test.name == "by a link that led elsewhere"])
		grants := read(test.home, test.dir).SessionGrants()
		lead("a/sub")
		d := approval.Judge("", event.PermissionRules{}, grants, read(test.now, test.later))
		if covered := d.Verdict == approval.Grant; covered != test.covered {
			t.Errorf("%s: covered = %v by %+v, want %v", test.name, covered, grants, test.covered)
		}
	}
}

// TestAGrantDoesNotFollowLinks: a folder or a file that an approved command line names can
// become a link to another one. It is asked about again, and nothing is offered that would
// not help.
func TestAGrantDoesNotFollowLinks(t *testing.T) {
	for _, test := range []struct {
		line, name string
		to         string // what the name becomes a link to, from the project
		covered    bool
	}{
		{"cd build && make clean", "build", "../elsewhere", false},
		{"cd build && make clean", "build", "src", false},
		{"cd build/deep && make clean", "build", "src", false},
		{"echo x > out", "out", "../elsewhere/file", false},
		{"echo x > build/o", "build", "../elsewhere", false},
		{"echo x > out", "out", "src/file", true}, // the session may write it
		{"cd src && echo x > out", "build", "../elsewhere", true},
	} {
		in := project(t)
		makeFiles(t, in.Home, "build/deep/x", "src/deep/x", "src/file", "../elsewhere/file")
		grants := readLine(test.line, in).SessionGrants()
		if d := approval.Judge("", event.PermissionRules{}, grants, readLine(test.line, in)); d.Verdict != approval.Grant {
			t.Errorf("%s: %+v does not cover it", test.line, grants)
		}
		at := filepath.Join(in.Home, test.name)
		if err := errors.Join(os.RemoveAll(at), os.Symlink(filepath.Join(in.Home, test.to), at)); err != nil {
			t.Fatal(err)
		}
		later := readLine(test.line, in)
		if d := approval.Judge("", event.PermissionRules{}, grants, later); (d.Verdict == approval.Grant) != test.covered {
			t.Errorf("%s: %s is a link to %s, and the verdict is %s", test.line, test.name, test.to, verdictName(d.Verdict))
		}
		if offered := len(later.Offers()) > 1; offered != test.covered {
			t.Errorf("%s: %s is a link to %s, and the offers are %+v", test.line, test.name, test.to, later.Offers())
		}
	}
}

// folders returns a request of which some paths are folders.
func folders(r approval.Request, paths ...string) approval.Request {
	r.Folders = paths
	return r
}

// TestAnApprovedFileIsOneFile: the path of a file that was approved covers nothing below it
// when it has become a folder, and that of a folder says that it does.
func TestAnApprovedFileIsOneFile(t *testing.T) {
	named := file(approval.Read, "view", "/v/x")
	folder := folders(file(approval.Read, "view", "/v/x"), "/v/x")
	below := file(approval.Read, "view", "/v/x/secret")
	for _, test := range []struct {
		name         string
		asked, later approval.Request
		covered      bool
	}{
		{"the file", named, named, true},
		{"a folder in its place", named, folder, false},
		{"a file below", named, below, false},
		{"the folder", folder, folder, true},
		{"a file in the folder", folder, below, true},
		{"a file in the place of the folder", folder, named, true},
	} {
		d := approval.Judge("", event.PermissionRules{}, test.asked.SessionGrants(), &test.later)
		if covered := d.Verdict == approval.Grant; covered != test.covered {
			t.Errorf("%s: covered = %v, want %v", test.name, covered, test.covered)
		}
	}
	if label := folder.Offers()[1].Label; label != "reading anything below /v/x" {
		t.Errorf("the offer of a folder says %q", label)
	}
}

// TestACommandWithoutTheSandboxIsApprovedOnce: neither an offer nor an approval for the
// session covers another run of it.
func TestACommandWithoutTheSandboxIsApprovedOnce(t *testing.T) {
	r := readLine("git status", project(t))
	if n := len(r.Offers()); n != 3 {
		t.Fatalf("%d offers in the sandbox, want once, command and prefix", n)
	}
	r.Unconfined = true
	if offers, grants := r.Offers(), r.SessionGrants(); len(offers) != 1 || offers[0].ID != event.OfferOnce || grants != nil {
		t.Errorf("offers %v, grants %v", offers, grants)
	}
}
