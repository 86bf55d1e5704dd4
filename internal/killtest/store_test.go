package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A point is where in a write something happens.
type point string

// The points of a write.
const (
	before    point = "before"    // the victim dies, nothing is stored
	committed point = "committed" // the victim dies, nobody knows that it is stored
	after     point = "after"     // the parent kills the victim when it has been shown everything
	refused   point = "refused"   // the write fails, and the next one does not
	full      point = "full"      // the disk is full from here on
)

// A stop is where a victim's life takes a turn. The zero value is nowhere.
type stop struct {
	Write int // the number of the write, from 1
	Point point
}

// A report tells the parent that the victim is the engine now, of a write that is
// stored, or of one that will never be.
type report struct {
	Engine  bool
	Write   int
	Events  []event.Type // none for what is kept beside the log
	Shown   []string     // ids of the events that clients are shown
	Blocked bool         // the victim waits to be killed
}

// A mortal store does what its stop says. All its writes are counted, also
// those of what is kept beside the log.
type mortal struct {
	eventlog.Store
	stop    stop
	shop    *workshop
	reports *reporter

	n atomic.Int64 // writes so far
}

var errRefused = errors.New("the disk is busy: try again")

func (m *mortal) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	m.shop.finishing(batch.Events)
	var end eventlog.End
	err := m.write(batch.Events, func() (err error) {
		end, err = m.Store.Append(ctx, id, batch)
		return err
	})
	m.shop.stored(batch.Events, err)
	return end, err
}

func (m *mortal) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	return m.write(nil, func() error { return m.Store.PutSecrets(ctx, id, secrets...) })
}

// write makes one write, or dies of it.
func (m *mortal) write(events []event.Event, do func() error) error {
	n := int(m.n.Add(1))
	here := func(p point) bool { return m.stop == stop{n, p} }
	switch {
	case here(before):
		die()
	case here(refused):
		return errRefused
	case here(full):
		fillDisk()
	case m.stop.Point == after && n > m.stop.Write:
		m.reports.tell(report{Write: n, Blocked: true})
		select {}
	}
	if err := do(); err != nil {
		return err
	}
	if here(committed) {
		die()
	}
	m.reports.tell(stored(n, events))
	return nil
}

// A reporter writes reports to the parent.
type reporter struct {
	mu sync.Mutex
	to *json.Encoder
}

func (r *reporter) tell(what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.to.Encode(what) // a parent that has left does not care
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

// die is the end, without a last word.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// fillDisk lets no file grow beyond a size that every write of the store
// exceeds, and every write of a tool does not.
func fillDisk() {
	const most = 4096
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most})
}
