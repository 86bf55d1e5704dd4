package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/project/skills"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// TestMain runs all tests with each kind of workspace: the skills are the same, byte for
// byte, wherever the files are.
func TestMain(m *testing.M) { os.Exit(bridgetest.RunEverywhere(m)) }

// files returns the files of the workspace under test.
func files(t *testing.T) workspace.Projects {
	return bridgetest.FilesOf(t, local.New(t.TempDir(), nil))
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ name, text, skill, description, body string }{
		{"plain", "---\nname: a\ndescription: What it does: this\n---\n\n# Do\n\nit\n", "a", "What it does: this", "# Do\n\nit"},
		{"quoted", "---\nname: 'a'\ndescription: \"b c\"\n---\nbody", "a", "b c", "body"},
		{"folded", "---\ndescription: >\n  one\n  two\nname: a\n---\nbody", "a", "one two", "body"},
		{"Windows", "---\r\nname: a\r\n---\r\nbody\r\n", "a", "", "body"},
		{"no head", "just text", "", "", "just text"},
		{"a head without an end", "---\nname: a\nbody", "", "", "---\nname: a\nbody"},
		{"a longer line of dashes", "---\nname: a\n----\nbody", "", "", "---\nname: a\n----\nbody"},
		{"a list", "---\nname: a\ntools:\n  - x\n  - y\n---\nbody", "a", "", "body"},
		{"nothing else", "---\nname: a\n---", "a", "", ""},
		{"nothing", "", "", "", ""},
	} {
		head, body := skills.Parse(test.text)
		if head["name"] != test.skill || head["description"] != test.description || body != test.body {
			t.Errorf("%s: %q and %q", test.name, head, body)
		}
	}
}

func TestSkillsAreFoundInFoldersAndProjects(t *testing.T) {
	dir, project, from := t.TempDir(), t.TempDir(), files(t)
	write(t, "---\nname: first\ndescription: one\n---\nBody", dir, "a", skills.File)
	write(t, "no head", dir, "b", skills.File)
	write(t, "a file", dir, "README.md")
	write(t, "---\nname: first\n---\nanother", project, ".github", "skills", "x", skills.File)
	write(t, "---\nname: mine\n---\nmine", project, ".agents", "skills", "y", skills.File)
	write(t, "---\nname: \"a<b\"\n---\n", dir, "odd", skills.File)
	write(t, strings.Repeat("x", 300<<10), dir, "long", skills.File)
	found, err := skills.Find(t.Context(), from, []string{dir, filepath.Join(dir, "none")}, project)
	var got []string
	for _, s := range found {
		got = append(got, s.Source+" "+s.Name+" "+s.Description)
	}
	if text := strings.Join(got, ", "); text != "custom first one, custom b , project mine " {
		t.Errorf("found are %s", text)
	}
	if err == nil || !strings.Contains(err.Error(), "odd") || !strings.Contains(err.Error(), "long") {
		t.Errorf("what makes no sense is reported as %v", err)
	}
	if body, err := skills.Body(t.Context(), from, found[0]); err != nil || body != "Body" {
		t.Errorf("the body is %q, %v", body, err)
	}
	if found, err := skills.Find(t.Context(), from, []string{filepath.Join(dir, "a")}, ""); err != nil || len(found) != 1 { // a folder that is a skill
		t.Errorf("found are %v, %v", found, err)
	}
	if _, err := skills.Find(t.Context(), from, []string{filepath.Join(dir, "README.md")}, ""); err == nil {
		t.Error("a folder that is a file is no fault")
	}
}

// A head may be longer than what is read of every file at first, and a file without a head
// may be, too.
func TestALongHeadIsReadToItsEnd(t *testing.T) {
	dir, from := t.TempDir(), files(t)
	for name, text := range map[string]string{
		"long":     "---\ndescription: " + strings.Repeat("ä", 10_000) + "\nname: far\n---\nBody",
		"edge":     "---\nname: " + strings.Repeat("x", 4096-len("---\nname: \n---")) + "\n----\nname: no\n---\nBody",
		"endless":  "---\nname: none\n" + strings.Repeat("text\n", 5_000),
		"headless": strings.Repeat("ä", 5_000),
	} {
		write(t, text, dir, name, skills.File)
	}
	found, err := skills.Find(t.Context(), from, []string{dir}, "")
	if err != nil || len(found) != 4 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []string{"edge", "endless", "headless", "far"} {
		if found[i].Name != want {
			t.Errorf("the skill of %s is called %q", found[i].Path, found[i].Name)
		}
	}
	if body, err := skills.Body(t.Context(), from, found[3]); body != "Body" || err != nil || len(found[3].Description) != 20_000 {
		t.Errorf("%q, %v, %d", body, err, len(found[3].Description))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\nname: a\ndescription: >\n  b\n---\nbody")
	f.Add("---\n---")
	f.Fuzz(func(t *testing.T, text string) {
		head, body := skills.Parse(text)
		if len(body) > len(text) {
			t.Errorf("the body of %q is %q", text, body)
		}
		for name := range head {
			if strings.ContainsAny(name, " \n") || name == "" {
				t.Errorf("a field is named %q", name)
			}
		}
	})
}

// What a project calls a skill may be a link to anything that the user can read.
func TestNoSkillIsReadFromOutsideOfTheProject(t *testing.T) {
	outside, dir, from := t.TempDir(), t.TempDir(), files(t)
	write(t, "---\nname: stolen\n---\nleaked", outside, "s", "SKILL.md")
	write(t, "---\nname: fine\n---\nfine", dir, ".github/skills/fine/SKILL.md")
	write(t, "---\nname: moved\n---\nmoved", dir, "tools/moved/SKILL.md")
	link := func(target, name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "s"), ".github/skills/folder")
	link(filepath.Join(outside, "s", "SKILL.md"), ".github/skills/file/SKILL.md")
	link("/proc/self/environ", ".github/skills/environ/SKILL.md")
	link("../../tools/moved", ".github/skills/moved")
	link(outside, ".agents/skills")
	found, err := skills.Find(t.Context(), from, nil, dir)
	if len(found) != 2 || found[0].Name != "fine" || found[1].Name != "moved" {
		t.Errorf("found %+v", found)
	}
	for _, s := range found {
		if body, err := skills.Body(t.Context(), from, s); body != s.Name || err != nil {
			t.Errorf("%s: %q, %v", s.Name, body, err)
		}
	}
	for _, name := range []string{"skills/folder", "skills/file", "skills/environ", ".agents/skills"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
	// A skill that was found is replaced by a link before it is read.
	path := filepath.Join(dir, ".github/skills/fine/SKILL.md")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	link("/proc/self/environ", ".github/skills/fine/SKILL.md")
	if body, err := skills.Body(t.Context(), from, found[0]); body != "" || err == nil {
		t.Errorf("%q, %v", body, err)
	}
}
