package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A call of a session that was deleted while the call began must not run on the machine of
// the engine: the session may have worked elsewhere.
func TestASessionThatIsNotStoredHasNoWorkspace(t *testing.T) {
	w := newSessionWorkspaces(workspaces.New(workspaces.Options{}), func(event.SessionID) (ownFolder, error) {
		return ownFolder{}, errors.New("there is no folder")
	})
	w.index = eventlog.NewMemory()
	if at, err := w.of(t.Context(), "gone"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("the workspace of a session that is not stored is %v, %v", at, err)
	}
	if _, err := w.files("gone"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("the files of a session that is not stored: %v", err)
	}
	if !w.isRemote(t.Context(), "gone") {
		t.Fatal("the protected files of this machine are used for a session that is not stored")
	}
}

// What is under way in a session when the session is deleted must not make its folder again:
// nobody would remove it.
func TestASessionThatIsNotStoredGetsNoFolder(t *testing.T) {
	f, err := folder.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tools := &toolbox{folder: f, store: eventlog.NewMemory()}
	if dir, err := tools.makeFolder("gone"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the folder of a session that is not stored is %q, %v", dir, err)
	}
	if _, err := os.Stat(f.Session("gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a session that is not stored: %v", err)
	}
}

// What is under way in a session when the session is deleted may write to its folder while
// the folder is removed.
func TestAFolderIsRemovedWhileOthersWriteToIt(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range 100 {
				below := filepath.Join(dir, "protected")
				_ = os.Mkdir(below, 0o700) // fails if it is there, or if the folder is gone
				_ = os.WriteFile(filepath.Join(below, strconv.Itoa(i)), nil, 0o600)
			}
		})
		if err := removeFolder(dir); err != nil {
			t.Error(err)
		}
		writer.Wait()
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is there: %v", err)
		}
	}
}
