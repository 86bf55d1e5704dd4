package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/disk"
)

// What nobody has answered counts as the worse, and is noted.
func TestWhatIsNotKnownCountsAsTheWorse(t *testing.T) {
	for kind, want := range map[disk.Kind]bool{
		disk.Leads: false, disk.Folder: true, disk.Name: true, disk.Place: false,
		disk.Program: false, disk.Submodules: false, disk.Remotes: false, disk.Repository: true, disk.Hidden: false,
	} {
		k, q := disk.NewKnown(), disk.Question{Kind: kind, Path: "/x"}
		if got := k.Ask(q); got != (disk.Answer{OK: want}) || k.Complete() {
			t.Errorf("kind %d: %+v, complete %t", kind, got, k.Complete())
		}
	}
}

// TestWhatStaysHidden asks about files whose names begin with a dot, below files with
// patterns for searches.
func TestWhatStaysHidden(t *testing.T) {
	for name, test := range map[string]struct {
		file, text string
		want       bool
	}{
		"no file":               {"other", "!.env\n", true},
		"no pattern that shows": {".gitignore", ".env\n*.log\n# !.env\n", true},
		"another name":          {".gitignore", ".env*\n!.env.example\n!*.md\n!/sub/**/x\n", true},
		"the name":              {".ignore", "a\n!.env", false},
		"the name, in a folder": {"sub/.rgignore", "!.e*\n", false},
		"the folder":            {".gitignore", "!/sub/.hidden/\n", false},
		"all":                   {".gitignore", "*\r\n!*\r\n", false},
		"of the repository":     {".git/info/exclude", "!.env", false},
		"long":                  {".ignore", strings.Repeat("a\n", 200_000), false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, test.file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(test.text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if got := disk.Here.Ask(disk.Question{Kind: disk.Hidden, Path: filepath.Join(dir, "sub/.hidden/.env")}).OK; got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
