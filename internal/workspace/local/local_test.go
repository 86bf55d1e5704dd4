package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFiles(t *testing.T) {
	workspacetest.Files(t, func(t *testing.T) *workspacetest.Place {
		place := &workspacetest.Place{Dir: t.TempDir()}
		place.Use(local.New(place.Dir, nil))
		return place
	})
}

func TestProcesses(t *testing.T) {
	workspacetest.Processes(t, func(t *testing.T) *workspacetest.Place {
		place, records := &workspacetest.Place{Dir: t.TempDir()}, t.TempDir()
		m := workspacetest.Manager(t, records)
		place.Use(local.New(place.Dir, m))
		place.Restart = func(t *testing.T) {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = workspacetest.Manager(t, records)
			place.Use(local.New(place.Dir, m))
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return place
	})
}
