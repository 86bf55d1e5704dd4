package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A call that is under way when its session is deleted must not make the folder of the
// session again: nobody would remove it.
func TestADeletedSessionGetsNoFolder(t *testing.T) {
	for name, old := range map[string][]byte{"a changed file": []byte("old"), "a new file": nil} {
		session := filepath.Join(t.TempDir(), "session")
		if err := os.Mkdir(session, 0o700); err != nil {
			t.Fatal(err)
		}
		kept := NewStore(filepath.Join(session, "checkpoints"))
		if err := kept.Save(Record{Key: "k", Path: "/f"}, old); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found, ok, err := kept.Find("k"); err != nil || !ok || found.Path != "/f" {
			t.Errorf("%s: %+v, %v, %v", name, found, ok, err)
		}
		if err := os.RemoveAll(session); err != nil {
			t.Fatal(err)
		}
		if err := kept.Save(Record{Key: "l", Path: "/f"}, old); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a call of a deleted session is recorded: %v", name, err)
		}
		if _, err := os.Stat(session); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder of a deleted session is there: %v", name, err)
		}
	}
}
