package local_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFiles(t *testing.T) {
	workspacetest.Files(t, func(t *testing.T) *workspacetest.Fixture {
		fixture := &workspacetest.Fixture{Dir: t.TempDir()}
		fixture.Use(local.New(fixture.Dir, nil))
		return fixture
	})
}

func TestProcesses(t *testing.T) {
	workspacetest.Processes(t, func(t *testing.T) *workspacetest.Fixture {
		fixture, records := &workspacetest.Fixture{Dir: t.TempDir()}, t.TempDir()
		m := workspacetest.Manager(t, records)
		fixture.Use(local.New(fixture.Dir, m))
		fixture.Restart = func(t *testing.T) {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = workspacetest.Manager(t, records)
			fixture.Use(local.New(fixture.Dir, m))
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return fixture
	})
}
