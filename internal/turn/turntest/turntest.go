// Package turntest holds states of sessions against their logs, for the tests of
// other packages.
package turntest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
)

// LoadedEqualsFolded fails the test if a state that was folded from the events,
// one after the other, is not the state that loading them gives. It compares every
// field, and the conversation as the model would see it. It may read the folded
// state's history, so nobody else may use that state meanwhile.
func LoadedEqualsFolded(t testing.TB, events []event.Event, folded *turn.State) {
	t.Helper()
	if diff := Diff(t, events, folded); diff != "" {
		t.Errorf("after %d events, the last a %s, loading differs from folding (-folded +loaded):\n%s",
			len(events), events[len(events)-1].Type, diff)
	}
}

// Diff tells how loading the events differs from a state that was folded from
// them. It is empty if they are the same.
func Diff(t testing.TB, events []event.Event, folded *turn.State) string {
	t.Helper()
	loaded := turn.New(folded.ID)
	if err := loaded.Load(stored(t, events)); err != nil {
		t.Fatalf("events that could be folded cannot be loaded: %v", err)
	}
	diff := cmp.Diff(folded, loaded, same, cmpopts.IgnoreFields(turn.State{}, "History"))
	if folded.History.Short() { // whoever has such a state loads the log anew
		folded.History = loaded.History
		return diff
	}
	return diff + diffHistory(&folded.History, &loaded.History)
}

// diffHistory compares two conversations as the model would see them.
func diffHistory(folded, loaded *transcript.History) string {
	was, errFolded := folded.Messages()
	is, errLoaded := loaded.Messages()
	if (errFolded == nil) != (errLoaded == nil) {
		return fmt.Sprintf("History: folded %v, loaded %v", errFolded, errLoaded)
	}
	before, _ := folded.Epoch()
	after, _ := loaded.Epoch()
	return cmp.Diff(before, after, same) + cmp.Diff(was, is, same)
}

// stored returns the events as a log gives them back: without what they were
// made from.
func stored(t testing.TB, events []event.Event) []event.Event {
	list := make([]event.Event, len(events))
	for i, e := range events {
		var err error
		if list[i], err = event.Parse(e.Seq, e.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// same compares what a log keeps: unexported fields, too, but neither what an event
// was made from nor the spaces in JSON.
var same = cmp.Options{
	cmp.Exporter(func(reflect.Type) bool { return true }),
	cmpopts.EquateEmpty(),
	cmp.Comparer(sameEvent),
	cmp.FilterValues(func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 }, cmp.Comparer(sameJSON)),
}

func sameEvent(a, b event.Event) bool {
	return a.Seq == b.Seq && a.Type == b.Type && bytes.Equal(a.Bytes, b.Bytes)
}

// sameJSON compares values as they are stored: without spaces.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// Check returns a store that checks after every append, for the session that was
// appended to, that loading equals folding. Long logs are checked less often, so
// that the checks do not take much longer than the test.
func Check(t testing.TB, store eventlog.Store) eventlog.Store {
	return &checked{Store: store, t: t, logs: make(map[event.SessionID]*log)}
}

// checked is a store whose appends are checked.
type checked struct {
	eventlog.Store
	t testing.TB

	mu   sync.Mutex
	logs map[event.SessionID]*log
}

// A log is what was seen of a session.
type log struct {
	events []event.Event
	state  *turn.State
	next   int // number of events at the next check
}

func (c *checked) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	end, err := c.Store.Append(ctx, id, batch)
	if err == nil {
		c.see(id, batch)
	}
	return end, err
}

func (c *checked) Fork(ctx context.Context, child, parent event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	end, err := c.Store.Fork(ctx, child, parent, batch)
	if err == nil {
		c.see(child, batch)
	}
	return end, err
}

func (c *checked) Delete(ctx context.Context, id event.SessionID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.logs, id)
	return c.Store.Delete(ctx, id)
}

// see takes in what was stored of a session, and checks it if it is time to.
func (c *checked) see(id event.SessionID, batch eventlog.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.follow(id, batch); err != nil {
		c.t.Errorf("session %s: %v", id, err)
		return
	}
	const often = 64 // a log is checked again when it has grown by one part in so many
	l := c.logs[id]
	if len(l.events) >= l.next {
		l.next = len(l.events) + 1 + len(l.events)/often
		LoadedEqualsFolded(c.t, l.events, l.state)
	}
}

// follow folds a batch, as the session that has made it did, after what was
// stored before.
func (c *checked) follow(id event.SessionID, batch eventlog.Batch) error {
	if c.logs[id] == nil {
		c.logs[id] = &log{state: turn.New(id)}
	}
	l := c.logs[id]
	if l.state.Seq < batch.After.Seq {
		for e, err := range c.Read(context.Background(), id, l.state.Seq) {
			if err == nil {
				err = l.take(e)
			}
			if err != nil {
				return err
			}
			if e.Seq == batch.After.Seq {
				break
			}
		}
	}
	for i, e := range batch.Events {
		if k, known := e.Type.Kind(); known && k.Sent {
			return fmt.Errorf("a %s was stored: the table of kinds says that it is only sent", e.Type)
		}
		e.Seq = batch.After.Seq + event.Seq(i) + 1
		if err := l.take(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *log) take(e event.Event) error {
	l.events = append(l.events, e)
	return l.state.Fold(e)
}
