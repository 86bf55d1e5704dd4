package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// A kindStop is the point of a write that stores an event of a kind, at which the victim
// dies. The zero value is none.
type kindStop struct {
	Kind    event.Type
	Session event.SessionID // the session of the event; any if empty
	Point   point
}

// A step is one of the steps of an operation that is no write of the log: a deletion from
// the store, or a change in the files of processes. The zero value is none.
type step struct {
	Name string
	N    int // the number of the step among those of its name, from 1
}

func (s step) String() string { return fmt.Sprintf("%s %d", s.Name, s.N) }

// A stepCounter reports the steps of a victim, and kills the victim at one of them.
type stepCounter struct {
	stop    step
	reports *reporter

	mu   sync.Mutex
	done map[string]int // number of steps by name
}

// reached reports a step, or dies.
func (c *stepCounter) reached(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[name]++
	here := step{name, c.done[name]}
	if here == c.stop {
		die()
	}
	c.reports.send(report{Step: here})
}

// A report tells the parent that the victim has become the engine, that it has reached a
// step, that a write is stored, or that a write will never be stored.
type report struct {
	Engine  bool
	Step    step
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
	on      kindStop
	kill    func() // kills the victim, or something else
	tools   *countingTools
	reports *reporter
	steps   *stepCounter

	n atomic.Int64 // number of writes so far
}

var errRefused = errors.New("the disk is busy: try again")

func (m *faultyStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	m.tools.awaitEffects(batch.Events)
	var end eventlog.End
	err := m.write(id, batch.Events, func() (err error) {
		end, err = m.Store.Append(ctx, id, batch)
		return err
	})
	m.tools.recordWrite(batch.Events, err)
	return end, err
}

func (m *faultyStore) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	return m.write(id, nil, func() error { return m.Store.PutSecrets(ctx, id, secrets...) })
}

// Delete is two steps, before and after the session is deleted from the store.
func (m *faultyStore) Delete(ctx context.Context, id event.SessionID) error {
	m.steps.reached("deleting")
	err := m.Store.Delete(ctx, id)
	m.steps.reached("deleted")
	return err
}

// write makes one write, or injects the fault.
func (m *faultyStore) write(id event.SessionID, events []event.Event, do func() error) error {
	n := int(m.n.Add(1))
	concerned := (m.on.Session == "" || m.on.Session == id) && slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == m.on.Kind })
	here := func(p point) bool { return m.stop == stop{n, p} || concerned && m.on.Point == p }
	if here(before) {
		m.kill()
	}
	switch {
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
		m.kill()
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
