package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A point is the moment in a write at which something happens.
type point string

// The points of a write.
const (
	before    point = "before"    // the victim dies, and nothing is stored
	committed point = "committed" // the victim dies after the write is stored
	after     point = "after"     // the parent kills the victim when it was shown everything
	refused   point = "refused"   // this write fails, and the next one does not
	full      point = "full"      // the disk is full from this write on
)

// A stop is the point of a write at which a fault is injected. The zero value injects
// none.
type stop struct {
	Write int // the number of the write, from 1
	Point point
}

// A report tells the parent that the victim has become the engine, that a write is
// stored, or that a write will never be stored.
type report struct {
	Engine  bool
	Write   int
	Events  []event.Type // empty for data outside the log
	Shown   []string     // ids of the events that clients are shown
	Blocked bool         // true if the victim waits to be killed
}

// A faultyStore injects the fault that its stop names. It counts all writes, including
// those outside the log.
type faultyStore struct {
	eventlog.Store
	stop    stop
	abort   point // the point of the write of an abort at which the process dies
	tools   *countingTools
	reports *reporter

	n atomic.Int64 // number of writes so far
}

var errRefused = errors.New("the disk is busy: try again")

func (m *faultyStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	m.tools.awaitEffects(batch.Events)
	var end eventlog.End
	err := m.write(batch.Events, func() (err error) {
		end, err = m.Store.Append(ctx, id, batch)
		return err
	})
	m.tools.recordWrite(batch.Events, err)
	return end, err
}

func (m *faultyStore) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	return m.write(nil, func() error { return m.Store.PutSecrets(ctx, id, secrets...) })
}

// write makes one write, or injects the fault.
func (m *faultyStore) write(events []event.Event, do func() error) error {
	n := int(m.n.Add(1))
	aborts := slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == event.Abort })
	here := func(p point) bool { return m.stop == stop{n, p} || aborts && m.abort == p }
	switch {
	case here(before):
		die()
	case here(refused):
		return errRefused
	case here(full):
		fillDisk()
	case m.stop.Point == after && n > m.stop.Write:
		m.reports.send(report{Write: n, Blocked: true})
		select {}
	}
	if err := do(); err != nil {
		return err
	}
	if here(committed) {
		die()
	}
	m.reports.send(stored(n, events))
	return nil
}

// A reporter writes reports to the parent.
type reporter struct {
	mu sync.Mutex
	to *json.Encoder
}

func (r *reporter) send(what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.to.Encode(what) // fails only if the parent is gone
}

func stored(n int, events []event.Event) report {
	r := report{Write: n}
	for _, e := range events {
		r.Events = append(r.Events, e.Type)
		if head, err := e.Head(); err == nil && !e.Type.Hidden() {
			r.Shown = append(r.Shown, head.ID)
		}
	}
	return r
}

// die kills this process with SIGKILL.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// fillDisk limits the size of files: every write of the store exceeds the limit, and
// no write of a tool does.
func fillDisk() {
	const most = 4096
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most})
}
