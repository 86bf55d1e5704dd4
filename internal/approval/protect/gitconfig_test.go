package protect

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestASettingCannotHideBehindAContinuedLine: lines that end in a backslash are a comment, a
// value and a section at once, and only git's own reading tells which.
func TestASettingCannotHideBehindAContinuedLine(t *testing.T) {
	const before = "[user]\n\tname = a\n[alias]\n\tst = status\n"
	for _, after := range []string{
		"[user]\n\tname = a\n; c \\\n[alias]\n\tst = status \\\n[user]\n\tx = !evil\n",
		"[user]\n\tname = a\n# \\\n[alias]\n\tst = status\\\n[user]\n\tx = !evil\n",
	} {
		target := Target{Git: true}
		a, b := State{Exists: true, Content: []byte(before)}, State{Exists: true, Content: []byte(after)}
		if target.Same(a, b) {
			t.Errorf("nothing is seen to have changed in %q", after)
		}
		if !slices.Contains(CodeKeys([]byte(after)), "alias.x = !evil") {
			t.Errorf("%q has %q", after, CodeKeys([]byte(after)))
		}
	}
	one, other := []byte("[alias]\n\tx = \"!a \\\n; b\"\n"), []byte("[alias]\n\tx = \"!a \\\n; c\"\n")
	if slices.Equal(CodeKeys(one), CodeKeys(other)) {
		t.Error("a value that goes on after a semicolon in quotes can change unseen")
	}
}

// TestWhateverGitReadsIsFound holds the parser against git: each setting that git lists and
// that runs code is found, with its value.
func TestWhateverGitReadsIsFound(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	parts := []string{
		"[alias]", "[core]", "[user]", "[Alias]", "[url \"a\"]", "[url \"a]b\"]", "[url \"a\\\"]\"]", "[url.x]", "[filter \"f\"]", "\n", "\n", "\n", "\r\n", " ", "\t", "\\\n", "\\\n", "; c", "# c", "; c \\\n", "# [core] \\\r\n",
		"x = !evil", "fsmonitor", "fsmonitor=evil", "clean = \"a\\\nb\"", "name = a", "path = \"a ; b\" # c", "helper = a\\tb\\\\", "x=\"a\\\n; b\"", "=", "\"", "x", "smudge = a # b \\\n", "insteadOf = c",
	}
	blanks := strings.NewReplacer("\t", " ") // versions of git differ in which blank they keep
	random := rand.New(rand.NewPCG(1, 2))
	read, found := 0, 0
	for range 400 {
		text := "[user]"
		for range 2 + random.IntN(12) {
			text += parts[random.IntN(len(parts))]
			if random.IntN(3) == 0 {
				text += "\n"
			}
		}
		cmd := exec.Command(git, "config", "-z", "--list", "--no-includes", "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			continue // git refuses the file
		}
		read++
		keys := CodeKeys([]byte(text))
		for entry := range bytes.SplitSeq(out, []byte{0}) {
			name, value, _ := strings.Cut(string(entry), "\n")
			if s := (setting{name, value}); name != "" && s.runsCode() {
				same := func(key string) bool { return blanks.Replace(key) == blanks.Replace(s.Key+" = "+s.Value) }
				if found++; !slices.ContainsFunc(keys, same) {
					t.Errorf("%q: git reads %s = %q, and not among %q", text, s.Key, s.Value, keys)
				}
			}
		}
	}
	if read < 50 || found < 50 {
		t.Errorf("git has read %d files with %d settings that run code", read, found)
	}
}

// git mergetool and git difftool read the script that has the name of the tool. With a path
// that is any file.
func TestAToolOfGitThatIsAPathRunsCode(t *testing.T) {
	for text, want := range map[string]bool{
		"[merge]\n\ttool = vimdiff\n":            false,
		"[merge]\n\ttool = ../../../evil\n":      true,
		"[diff]\n\tguitool = /tmp/evil\n":        true,
		"[Merge]\n\tGuiTool = x/../../../evil\n": true,
		"[merge]\n\tconflictStyle = a/b\n":       false,
	} {
		found := slices.ContainsFunc(parseGitConfig([]byte(text)), setting.runsCode)
		if found != want {
			t.Errorf("%q: runs code: %v, want %v", text, found, want)
		}
	}
	if !RunsCode("diff.tool") || !RunsCode("Merge.Tool") {
		t.Error("a rule with a star can set the tool")
	}
}
