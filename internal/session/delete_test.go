package session_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// sessionFiles is what sessions have outside of the store, and the deletions that are under
// way. It outlives hosts, as a disk does.
type sessionFiles struct {
	mu      sync.Mutex
	left    map[event.SessionID]bool
	begun   map[event.SessionID]session.Deletion
	stopAt  string        // the step at which the engine stops for good
	reached chan struct{} // closed at that step
	fail    error         // error that forget returns
}

func newSessionFiles(ids ...event.SessionID) *sessionFiles {
	o := &sessionFiles{left: map[event.SessionID]bool{}, begun: map[event.SessionID]session.Deletion{}, reached: make(chan struct{})}
	for _, id := range ids {
		o.left[id] = true
	}
	return o
}

// step blocks at the step where the engine is to stop, as if it had been killed there:
// nothing after it is done before the test is over.
func (o *sessionFiles) step(name string, until context.Context) {
	o.mu.Lock()
	stop := o.stopAt == name
	if stop {
		o.stopAt = ""
		close(o.reached)
	}
	o.mu.Unlock()
	if stop {
		<-until.Done()
	}
}

// A killableEngine stops one engine at a step of a deletion, as a kill would.
type killableEngine struct {
	*sessionFiles
	eventlog.Store
	until context.Context
	fail  error // error that Delete returns after it has deleted
}

func (k killableEngine) Begin(d session.Deletion) error {
	k.step("before begin", k.until)
	k.mu.Lock()
	k.begun[d.Session] = d
	k.mu.Unlock()
	k.step("begun", k.until)
	return k.until.Err()
}

func (k killableEngine) Delete(ctx context.Context, id event.SessionID) error {
	if err := k.until.Err(); err != nil {
		return err
	}
	err := k.Store.Delete(ctx, id)
	k.step("deleted", k.until)
	return errors.Join(err, k.fail)
}

func (k killableEngine) forget(_ context.Context, id event.SessionID) error {
	k.step("before forget", k.until)
	if err := k.until.Err(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sessionFiles.fail != nil {
		return k.sessionFiles.fail
	}
	delete(k.left, id)
	return nil
}

func (k killableEngine) End(id event.SessionID) error {
	k.step("before end", k.until)
	if err := k.until.Err(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.begun, id)
	return nil
}

func (k killableEngine) Unfinished() ([]session.Deletion, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.begun)), nil
}

// startEngine starts a host over what is outside, until ctx is done.
func startEngine(b *sessiontest.Fixture, o *sessionFiles, ctx context.Context, fail error) {
	k := killableEngine{o, b.Store, ctx, fail}
	b.Options.Forget, b.Options.Deletions = k.forget, k
	b.Host = session.New(k, b.Options)
	if err := b.Host.Start(b.T.Context()); err != nil {
		b.T.Fatal(err)
	}
}

// An engine is killed at any step of a deletion. After the next start the session is
// there with all that it has, or nothing is left of it and of its agents.
func TestADeletionThatIsInterruptedIsFinishedOrNeverWas(t *testing.T) {
	for step, exists := range map[string]bool{"before begin": true, "begun": true, "deleted": false, "before forget": false, "before end": false} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := withAgents(t, offline.Model{})
				v := b.Create("s", &session.Client{})
				b.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
				v.Await(t, 0, event.SessionIdle)
				agent := child(t, b.Verify("s"))
				b.Host.Close()

				o := newSessionFiles("s", agent)
				o.stopAt = step
				ctx, kill := context.WithCancel(context.Background())
				startEngine(b, o, ctx, nil)
				killed := b.Host
				done := make(chan error, 1)
				go func() { done <- killed.Delete(context.Background(), "s") }()
				<-o.reached

				startEngine(b, o, context.Background(), nil)
				synctest.Wait()
				for _, id := range []event.SessionID{"s", agent} {
					if _, err := b.Store.Session(t.Context(), id); errors.Is(err, eventlog.ErrNotFound) == exists {
						t.Errorf("session %s: %v, want it to exist: %v", id, err, exists)
					}
					if o.left[id] != exists {
						t.Errorf("what %s has outside is there: %v", id, o.left[id])
					}
				}
				if len(o.begun) > 0 {
					t.Errorf("deletions are unfinished: %v", o.begun)
				}
				kill()
				<-done
				killed.Close()
			})
		})
	}
}

// A deletion has failed only if the session is still there. What could not be removed
// is removed by the next engine.
func TestADeletionFailsOnlyIfTheSessionIsStillThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the disk is broken")
		b := sessiontest.New(t, offline.Model{})
		b.Create("s", &session.Client{})
		b.Host.Close()
		o := newSessionFiles("s")
		o.fail = broken
		startEngine(b, o, context.Background(), broken) // the store says so after it has deleted
		if err := b.Host.Delete(t.Context(), "s"); err != nil {
			t.Errorf("err = %v, and the session is gone", err)
		}
		if !o.left["s"] || len(o.begun) != 1 {
			t.Errorf("%v is left, %v is unfinished", o.left, o.begun)
		}
		if err := b.Host.Delete(t.Context(), "s"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("a second time: %v", err)
		}
		b.Host.Close()
		o.fail = nil
		startEngine(b, o, context.Background(), nil)
		synctest.Wait()
		if o.left["s"] || len(o.begun) > 0 {
			t.Errorf("%v is left, %v is unfinished", o.left, o.begun)
		}
	})
}

// A workspace that is away delays nobody but whoever deletes, and that for one attempt: a new
// session with the id works meanwhile. What is left there is removed when the workspace is back.
func TestADeletionWaitsForItsWorkspaceBesideTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		b.Host.Close()
		o, at := newSessionFiles("s"), event.Workspace{Name: "box", Address: "unix:box", Identity: "i"}
		asked, answers := make(chan session.Deletion), make(chan error)
		b.Options.Release = func(_ context.Context, d session.Deletion) error {
			asked <- d
			return <-answers
		}
		startEngine(b, o, context.Background(), nil)
		if _, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Workspace: &at}}, nil); err != nil {
			t.Fatal(err)
		}
		deleted := make(chan error, 1)
		go func() { deleted <- b.Host.Delete(context.Background(), "s") }()
		if d := <-asked; d.Session != "s" || d.Workspace == nil || *d.Workspace != at {
			t.Errorf("%+v is to be ended", d)
		}
		if o.left["s"] {
			t.Error("what is on this machine waits for the workspace")
		}
		v := b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEW"})
		v.Await(t, 0, event.SessionIdle)
		away := errors.New("the workspace is away")
		answers <- away
		if err := <-deleted; err != nil {
			t.Errorf("the deletion failed: %v", err)
		}
		for range 5 {
			if <-asked; len(o.begun) != 1 {
				t.Errorf("unfinished deletions: %v", o.begun)
			}
			answers <- away
		}
		<-asked
		answers <- nil
		synctest.Wait()
		if len(o.begun) > 0 {
			t.Errorf("unfinished deletions: %v", o.begun)
		}
		b.Host.Close()
	})
}

// A store that refuses leaves the session as it is, and nothing to be finished.
func TestADeletionThatTheStoreRefusesLeavesEverything(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	b.Host.Close()
	o := newSessionFiles("s")
	startEngine(b, o, context.Background(), nil)
	b.Host.Close()
	refusing := refusingStore{b.Store}
	b.Host = session.New(refusing, b.Options)
	if err := b.Host.Delete(t.Context(), "s"); !errors.Is(err, errRefused) {
		t.Errorf("err = %v", err)
	}
	if _, err := b.Host.Info(t.Context(), "s"); err != nil || !o.left["s"] || len(o.begun) > 0 {
		t.Errorf("%v; %v is left, %v is unfinished", err, o.left, o.begun)
	}
}

var errRefused = errors.New("the store refuses")

type refusingStore struct{ eventlog.Store }

func (refusingStore) Delete(context.Context, event.SessionID) error { return errRefused }

// A new session has nothing of a deleted one that had the same id.
func TestANewSessionHasNoSecretOfADeletedOne(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	if _, err := b.Host.Create(t.Context(), "s", session.Spec{Env: []string{"KEY=old"}}, &session.Client{Viewer: sessiontest.NewViewer()}); err != nil {
		t.Fatal(err)
	}
	if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || len(env) != 1 {
		t.Fatalf("%q, %v", env, err)
	}
	if err := b.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if b.Host.Clients.InUse("s") {
		t.Error("the deleted session still has a client")
	}
	b.Create("s", &session.Client{})
	if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || len(env) > 0 {
		t.Errorf("%q, %v", env, err)
	}
}

func TestADeletionEndsTheCompactionUnderWay(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{wait: make(chan struct{})}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	done := make(chan event.CompactionCompleteData, 1)
	go func() {
		d, _ := s.Host.Context.Compact(context.Background(), "s", session.Squeeze{})
		done <- d
	}()
	_, s.n = s.v.Await(t, s.n, event.CompactionStart)
	if err := s.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if d := <-done; d.Outcome != "failed" || d.Cause != event.CauseInterrupted {
		t.Errorf("it ended with %+v", d)
	}
}

// An appendingStore calls a function before each append.
type appendingStore struct {
	eventlog.Store
	before func(eventlog.Batch) error
}

func (s appendingStore) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	if err := s.before(b); err != nil {
		return eventlog.End{}, err
	}
	return s.Store.Append(ctx, id, b)
}

// A crowdedSession is the session "s", whose goroutine finds several requests at once in
// its mailbox.
type crowdedSession struct {
	*sessiontest.Fixture
	files   *sessionFiles
	notices []string     // the kinds of what a watcher was told since the requests were made
	create  func() error // called before a new session is stored; nil if it is simply stored
}

// crowd makes requests to a session while it stores something, so that all of them wait
// in its mailbox in their order, and returns when they were carried out.
func crowd(t *testing.T, c *crowdedSession, requests ...func(*session.Host)) {
	c.Fixture, c.files = sessiontest.New(t, offline.Model{}), newSessionFiles("s")
	c.Host.Close()
	held, release, crowded := make(chan struct{}), make(chan struct{}), false
	c.Store = appendingStore{c.Store, func(b eventlog.Batch) error {
		switch {
		case b.Events[0].Type == event.SessionNamed:
			close(held)
			<-release
		case crowded && b.After.Seq == 0 && c.create != nil:
			return c.create()
		}
		return nil
	}}
	startEngine(c.Fixture, c.files, context.Background(), nil)
	if _, err := c.Host.Create(t.Context(), "s", session.Spec{Env: []string{"TOKEN=of the first"}}, nil); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { _ = c.Host.Rename(t.Context(), "s", "held") })
	<-held
	for _, request := range requests {
		done.Go(func() { request(c.Host) })
		synctest.Wait()
	}
	crowded = true
	c.Host.Clients.WatchList(&session.Watcher{Tell: func(n session.Notice) {
		if n.Kind != session.Updated {
			c.notices = append(c.notices, n.Kind)
		}
	}})
	close(release)
	done.Wait()
	synctest.Wait()
}

func (c *crowdedSession) exists(t *testing.T) bool {
	_, err := c.Store.Session(t.Context(), "s")
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// A retention sees what the session has accepted before, also if both were asked for
// while the session was busy.
func TestARetentionKeepsWhatWasJustAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowdedSession
		var keep string
		var sent, deleted error
		crowd(t, &c,
			func(h *session.Host) {
				_, sent = h.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
			},
			func(h *session.Host) {
				keep, deleted = h.Retention.Delete(t.Context(), "s", session.Age{Before: time.Now().Add(time.Hour), Named: true})
			})
		if sent != nil || deleted != nil || keep != "it is unfinished" || !c.exists(t) {
			t.Errorf("the input: %v; the deletion: %v, kept because %q; the session exists: %v", sent, deleted, keep, c.exists(t))
		}
	})
}

// What is asked for after a deletion and fails does not make the deletion fail, which
// cannot be taken back.
func TestADeletionDoesNotFailWithWhatFollowsIt(t *testing.T) {
	for name, create := range map[string]func() error{
		"a failure": func() error { return errRefused },
		"a panic":   func() error { panic("the store breaks") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := crowdedSession{create: create}
				var deleted, created error
				crowd(t, &c,
					func(h *session.Host) { deleted = h.Delete(t.Context(), "s") },
					func(h *session.Host) { _, created = h.Create(t.Context(), "s", session.Spec{}, nil) })
				if deleted != nil || created == nil || c.exists(t) {
					t.Errorf("the deletion: %v; the creation: %v; the session exists: %v", deleted, created, c.exists(t))
				}
				if c.files.left["s"] || len(c.files.begun) > 0 || !slices.Equal(c.notices, []string{session.Deleted}) {
					t.Errorf("%v is left, %v is unfinished; the watcher was told %q", c.files.left, c.files.begun, c.notices)
				}
			})
		})
	}
}

// What is asked for before a deletion and cannot be recorded does not make the deletion
// fail.
func TestADeletionDoesNotFailWithWhatPrecedesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowdedSession
		var noted, deleted error
		deep := []byte(strings.Repeat("[", 9950) + strings.Repeat("]", 9950))
		crowd(t, &c,
			func(h *session.Host) {
				_, noted = h.Log.Note(t.Context(), "s", event.ToolStartData{Arguments: deep}, false)
			},
			func(h *session.Host) { deleted = h.Delete(t.Context(), "s") })
		if noted == nil || deleted != nil || c.exists(t) {
			t.Errorf("the note: %v; the deletion: %v; the session exists: %v", noted, deleted, c.exists(t))
		}
		if c.files.left["s"] || len(c.files.begun) > 0 {
			t.Errorf("%v is left, %v is unfinished", c.files.left, c.files.begun)
		}
	})
}

// A session that was asked for while one with the same id was being deleted has its own
// files, and neither the environment that the deleted one had nor one that was brought
// for it last. Watchers are told of both in their order.
func TestASessionThatReplacesADeletedOneIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowdedSession
		var resumed, deleted, created error
		crowd(t, &c,
			func(h *session.Host) {
				_, resumed = h.Resume(t.Context(), "s", session.Resume{Spec: session.Spec{Env: []string{"TOKEN=of the deleted"}}}, nil)
			},
			func(h *session.Host) { deleted = h.Delete(t.Context(), "s") },
			func(h *session.Host) { _, created = h.Create(t.Context(), "s", session.Spec{}, &session.Client{}) })
		if err := errors.Join(resumed, deleted, created); err != nil || !c.exists(t) {
			t.Fatalf("%v; the session exists: %v", err, c.exists(t))
		}
		if env, err := c.Host.Settings.Environment(t.Context(), "s"); err != nil || len(env) > 0 {
			t.Errorf("the new session has the environment %q, %v", env, err)
		}
		if !c.files.left["s"] {
			t.Error("the files of the new session were removed")
		}
		if want := []string{session.Deleted, session.Created}; !slices.Equal(c.notices, want) {
			t.Errorf("the watcher was told %q, want %q", c.notices, want)
		}
	})
}

// An agent whose call is over is stopped when its session is read. A deletion that reads
// it has nothing to record any more.
func TestAnAgentThatNobodyWaitsForCanBeDeleted(t *testing.T) {
	b, agent := leaveOrphan(t, &agentlessModel{})
	b.Open()
	if err := b.Host.Delete(t.Context(), agent); err != nil {
		t.Error(err)
	}
	if _, err := b.Store.Session(t.Context(), agent); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the session of the agent: %v, want that there is none", err)
	}
}

// An unreadableStore cannot read the sessions that were quarantined.
type unreadableStore struct{ eventlog.Store }

func (s unreadableStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	if index, err := s.Session(ctx, id); err == nil && index.Damage != nil {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, index.Damage) }
	}
	return s.Store.Read(ctx, id, after)
}

// heldDeletions holds the first deletion until it is released.
type heldDeletions struct {
	session.Deletions
	later   atomic.Bool
	release chan struct{}
}

func (h *heldDeletions) Begin(d session.Deletion) error {
	if !h.later.Swap(true) {
		<-h.release
	}
	return h.Deletions.Begin(d)
}

// A damaged session is deleted twice at the same time, and made anew. The deletion that
// comes first removes the damaged one; none removes the new one.
func TestADeletionOfADamagedSessionDeletesNoNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		b.Create("s", &session.Client{})
		b.Host.Close()
		b.Store = unreadableStore{b.Store}
		if err := b.Store.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 1, Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
		held := &heldDeletions{Deletions: killableEngine{newSessionFiles("s"), b.Store, context.Background(), nil}, release: make(chan struct{})}
		b.Options.Deletions = held
		b.Open()
		var first, second, created error
		var done sync.WaitGroup
		for _, request := range []func(){
			func() { first = b.Host.Delete(t.Context(), "s") },
			func() { second = b.Host.Delete(t.Context(), "s") },
			func() { _, created = b.Host.Create(t.Context(), "s", session.Spec{}, nil) },
		} {
			done.Go(request)
			synctest.Wait()
		}
		close(held.release)
		done.Wait()
		if first != nil || !errors.Is(second, session.ErrNotFound) || created != nil {
			t.Errorf("the deletions: %v and %v; the creation: %v", first, second, created)
		}
		if _, err := b.Store.Session(t.Context(), "s"); err != nil {
			t.Errorf("the new session: %v", err)
		}
	})
}
