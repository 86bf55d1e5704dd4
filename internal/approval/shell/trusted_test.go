package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestALinkIsAsGoodAsWhereItLeads: a program of the system may be a link, and is trusted only
// if nobody but root can change both the link and what it leads to.
func TestALinkIsAsGoodAsWhereItLeads(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, mine, other := dir+"/bin", dir+"/mine", dir+"/other"
	for _, at := range []string{bin, mine, other} {
		if err := errors.Join(os.Mkdir(at, 0o755), os.WriteFile(at+"/program", nil, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"to-mine": mine + "/program", "to-system": "program", "to-other": other + "/program", "twice": "to-mine", "nowhere": dir + "/none"} {
		if err := os.Symlink(to, bin+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	system := systemPrograms{[]string{bin}, func(path string) bool { return !strings.HasPrefix(path, mine+"/") && path != bin+"/to-other" }}
	for name, want := range map[string]bool{
		"program": true, "to-system": true, // what they lead to is root's
		"to-mine": false, "twice": false, // what they lead to is mine
		"to-other": false, // the link itself is not root's
		"nowhere":  false, "none": false,
		bin + "/program": true, bin + "/to-mine": false, bin + "/../bin/program": false, mine + "/program": false, other + "/program": false,
	} {
		if got := system.in(bin)(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for path, want := range map[string]bool{bin + ":" + mine: true, mine + ":" + bin: false, "bin:" + bin: false, ":" + bin: false, "": false} {
		if got := system.in(path)("program"); got != want {
			t.Errorf("with PATH=%s: %v, want %v", path, got, want)
		}
	}
}

// TestOnlyRootChanges: a path with a folder above it that others may write is not root's.
func TestOnlyRootChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/": true, file: false, "/none/such": false, "/dev/null": false} {
		if got := onlyRootChanges(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
