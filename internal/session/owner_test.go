package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A table says which of several hosts on one store owns a session.
type table struct {
	store eventlog.Store
	mu    sync.Mutex
	owner map[event.SessionID]*hostOfMany
}

// A hostOfMany is a host that shares its store with others. It is the session.Owners of its host.
type hostOfMany struct {
	*sessiontest.Fixture
	table *table
}

func (o *hostOfMany) Claim(ctx context.Context, ids ...event.SessionID) error {
	for _, id := range ids {
		if _, err := o.table.store.Session(ctx, id); err != nil {
			continue
		}
		if err := o.claim(id); err != nil {
			return err
		}
	}
	return nil
}

func (o *hostOfMany) claim(id event.SessionID) error {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	if owner := o.table.owner[id]; owner != nil && owner != o {
		return &eventlog.Owned{Session: id, Address: "elsewhere"}
	}
	o.table.owner[id] = o
	return nil
}

func (o *hostOfMany) Owns(id event.SessionID) bool {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	return o.table.owner[id] == o
}

func (o *hostOfMany) Release(_ context.Context, ids ...event.SessionID) error {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	for _, id := range ids {
		delete(o.table.owner, id)
	}
	return nil
}

// A claimingStore claims a session when it is made, as stores that are shared do.
type claimingStore struct {
	eventlog.Store
	host *hostOfMany
}

func (s claimingStore) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	if b.After == (eventlog.End{}) {
		if err := s.host.claim(id); err != nil {
			return eventlog.End{}, err
		}
	}
	if !s.host.Owns(id) {
		return eventlog.End{}, eventlog.ErrNotOwner
	}
	return s.Store.Append(ctx, id, b)
}

// hosts returns two hosts that share a store, with a model.
func hosts(t *testing.T, m model.Model) (a, b *hostOfMany) {
	shared := &table{store: eventlog.NewMemory(), owner: make(map[event.SessionID]*hostOfMany)}
	open := func() *hostOfMany {
		h := &hostOfMany{table: shared}
		h.Fixture = sessiontest.On(t, shared.store, session.Options{Resolve: sessiontest.Always(session.Endpoint{Model: m, Name: "test"}), Owners: h})
		h.Store = claimingStore{h.Unchecked, h} // the checks of a fixture know only its own appends
		h.Start()
		return h
	}
	return open(), open()
}

func TestASessionIsWorkedOnByItsOwner(t *testing.T) {
	a, b := hosts(t, offline.Model{})
	v := a.Create("s", &session.Client{})
	a.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	var owned *eventlog.Owned
	if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"}); !errors.As(err, &owned) || owned.Address != "elsewhere" {
		t.Errorf("another host accepts a message: %v", err)
	}
	if _, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: sessiontest.NewViewer()}, 0); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("a client is attached at another host: %v", err)
	}
	if err := b.Host.Delete(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("another host deletes it: %v", err)
	}
	for _, name := range []string{"first", "second"} { // what is read at another host is as new as the log
		if err := a.Host.Rename(t.Context(), "s", name); err != nil {
			t.Fatal(err)
		}
		info, err := b.Host.Info(t.Context(), "s")
		if err != nil || info.Info.Name != name {
			t.Errorf("another host reads the name %q, %v", info.Info.Name, err)
		}
		status, err := b.Host.Status(t.Context(), "s")
		if err != nil || status.Name != name {
			t.Errorf("another host reads %+v, %v", status, err)
		}
	}
	if n := b.Host.Resident(); n > 0 {
		t.Errorf("%d sessions stay in memory at a host that only reads them", n)
	}
	if _, err := b.Host.Fork(t.Context(), "fork", "s", 0, ""); err != nil {
		t.Errorf("another host cannot fork it: %v", err)
	}
}

// A lostClient counts how often it is told that its session is lost.
type lostClient struct {
	session.Client
	told chan struct{}
}

func newLostClient() *lostClient {
	c := &lostClient{told: make(chan struct{}, 10)}
	c.Lost = func() { c.told <- struct{}{} }
	return c
}

func nobody(event.SessionID) bool { return false }

func TestASessionAtRestIsHandedOver(t *testing.T) {
	a, b := hosts(t, offline.Model{})
	c := newLostClient()
	v := a.Create("s", &c.Client)
	a.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	if done, err := a.Host.Work.HandOver(t.Context(), "s", nobody, false); !done || err != nil {
		t.Fatalf("it is handed over: %v, %v", done, err)
	}
	select {
	case <-c.told:
	default:
		t.Error("its client is not told")
	}
	w := b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
	w.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "TWO" {
		t.Errorf("the new owner answers %q", got)
	}
	if _, err := a.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "stale"}); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("the old owner accepts a message: %v", err)
	}
}

// A slowModel answers when it may.
type slowModel struct {
	asked  chan struct{}
	answer chan struct{}
}

func (m slowModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	m.asked <- struct{}{}
	select {
	case <-m.answer:
		return offline.Model{}.Ask(ctx, req, on)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestASessionWhoseModelIsAskedIsHandedOverAsAfterACrash(t *testing.T) {
	m := slowModel{make(chan struct{}, 2), make(chan struct{})}
	a, b := hosts(t, m)
	a.Create("s", &session.Client{})
	a.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	<-m.asked
	if done, err := a.Host.Work.HandOver(t.Context(), "s", nobody, false); done || err != nil {
		t.Errorf("it is handed over while its model is asked: %v, %v", done, err)
	}
	if !a.Owns("s") {
		t.Error("its owner has given it up")
	}
	if done, err := a.Host.Work.HandOver(t.Context(), "s", nobody, true); !done || err != nil {
		t.Fatalf("it is handed over at once: %v, %v", done, err)
	}
	if err := b.claim("s"); err != nil {
		t.Fatal(err)
	}
	info, err := b.Host.Info(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	b.Host.Work.Continue(t.Context(), []eventlog.Session{info})
	<-m.asked
	close(m.answer)
	awaitIdle(t, b.Fixture, "s")
	events := b.Verify("s")
	if got := lastAnswer(t, events); got != "ONE" {
		t.Errorf("the new owner answers %q", got)
	}
	if n := len(slices.DeleteFunc(kindsOf(events), func(k event.Type) bool { return k != event.AssistantMessage })); n != 1 {
		t.Errorf("%d answers are stored", n)
	}
}

// A server that was marked as dead finds out when it writes: what it was about to store is not.
func TestAnAppendThatIsFencedEndsTheSessionHere(t *testing.T) {
	m := slowModel{make(chan struct{}, 2), make(chan struct{})}
	a, b := hosts(t, m)
	c := newLostClient()
	a.Create("s", &c.Client)
	a.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	<-m.asked
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := b.claim("s"); err != nil {
		t.Fatal(err)
	}
	close(m.answer)
	<-c.told
	if a.Host.Clients.InUse("s") {
		t.Error("the client stays attached")
	}
	awaitOwner(t, b)
	if got := lastAnswer(t, b.Verify("s")); got != "ONE" {
		t.Errorf("the new owner answers %q", got)
	}
}

// awaitOwner lets the session s go on at a host, and waits until it is at rest.
func awaitOwner(t *testing.T, b *hostOfMany) {
	t.Helper()
	info, err := b.Host.Info(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	b.Host.Work.Continue(t.Context(), []eventlog.Session{info})
	awaitIdle(t, b.Fixture, "s")
}
