package eventlog_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryKeepsThePromises(t *testing.T) {
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store {
		m := eventlog.NewMemory()
		t.Cleanup(func() { m.Close() })
		return m
	})
}
