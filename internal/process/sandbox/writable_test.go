package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFolderThatCommandsMayWriteIsFound(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/var/tmp", base+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, root, temp, want string }{
		{"/tmp/x", "/src", "", "/tmp"},
		{"/tmp", "/src", "", "/tmp"},
		{"/tmpx/x", "/src", "", ""},
		{"/var/tmp/x/y", "/src", "", "/var/tmp"},
		{"/dev/shm/x", "/src", "", "/dev/shm"},
		{base + "/link", "/src", "", "/var/tmp"},
		{"/src/.abide", "/src", "", "/src"},
		{"/home/me/.local/share/abide", "/home/me/src", "", ""},
		{"/home/me/.local/share/abide", "/home/me", "", "/home/me"},
		{"/scratch/abide", "/src", "/scratch", "/scratch"},
		{"/data", "/", "", "/"},
	} {
		if got := WritableAt(test.path, test.root, []string{"TMPDIR=" + test.temp}); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
