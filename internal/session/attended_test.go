package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// abandoned returns a fixture with a session whose turn was left unfinished by a host
// that is gone, and an open host that is there for one command.
func abandoned(t *testing.T) (*sessiontest.Fixture, *silentModel) {
	t.Helper()
	m := &silentModel{}
	b := sessiontest.New(t, m)
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "x"})
	synctest.Wait()
	b.Host.Close()
	m.asked = 0
	b.Options.OnlyAttended = true
	b.Open()
	t.Cleanup(func() { b.Host.Close() })
	return b, m
}

func TestAnUnfinishedSessionThatNobodyUsesStaysAsItIs(t *testing.T) {
	ctx := context.Background()
	for name, look := range map[string]func(*sessiontest.Fixture) error{
		"nothing": func(*sessiontest.Fixture) error { return nil },
		"status":  func(b *sessiontest.Fixture) error { _, err := b.Host.Status(ctx, "s"); return err },
		"tasks":   func(b *sessiontest.Fixture) error { _, err := b.Host.Tasks.Awaits(ctx, "s", "key"); return err },
		"follow": func(b *sessiontest.Fixture) error {
			_, end, err := b.Host.Clients.Follow(ctx, "s", 0, sessiontest.NewViewer())
			end()
			return err
		},
		"a job of memory": func(b *sessiontest.Fixture) error {
			looked, err := b.Host.Memory.Remembered(ctx, "s")
			job := eventlog.Job{ID: "j", Kind: eventlog.JobExtract, Session: "s", From: 1, To: 2}
			return errors.Join(err, b.Host.Memory.RecordExtraction(ctx, job, looked, event.MemoryExtractedData{From: 1, To: 2}))
		},
		"compaction": func(b *sessiontest.Fixture) error {
			_, err := b.Host.Context.Compact(ctx, "s", session.Squeeze{})
			return err
		},
		"forgetting": func(b *sessiontest.Fixture) error { return b.Host.Memory.Forget(ctx, "s") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, m := abandoned(t)
				b.Host.Work.FinishDeletions(t.Context())
				if err := look(b); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour) // the session leaves memory within this time
				synctest.Wait()
				if n, err := b.Host.Work.Unfinished(t.Context()); n != 1 || err != nil || b.Host.Work.GoesOn("s") {
					t.Errorf("%d sessions are unfinished, %v", n, err)
				}
				if m.asked != 0 || b.Host.Work.Busy() {
					t.Errorf("the model was asked %d times", m.asked)
				}
			})
		})
	}
}

func TestAnUnfinishedSessionGoesOnWhenSomebodyUsesIt(t *testing.T) {
	for name, use := range map[string]func(*sessiontest.Fixture){
		"resume": func(b *sessiontest.Fixture) { b.Resume("s", session.Resume{}, &session.Client{}) },
		"send":   func(b *sessiontest.Fixture) { b.Send("s", event.InputAcceptedData{Prompt: "y"}) },
		"attach": func(b *sessiontest.Fixture) {
			if _, err := b.Host.Attach(b.T.Context(), "s", &session.Client{}, 0); err != nil {
				b.T.Fatal(err)
			}
		},
		"start": func(b *sessiontest.Fixture) {
			if err := b.Host.Start(b.T.Context()); err != nil {
				b.T.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, m := abandoned(t)
				use(b)
				synctest.Wait()
				if m.asked != 1 || !b.Host.Work.Busy() {
					t.Errorf("the model was asked %d times, busy %v", m.asked, b.Host.Work.Busy())
				}
				if n, err := b.Host.Work.Unfinished(t.Context()); n != 0 || err != nil || !b.Host.Work.GoesOn("s") {
					t.Errorf("%d sessions are unfinished, %v", n, err)
				}
				if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if b.Host.Work.Busy() {
					t.Error("an aborted session is at work")
				}
			})
		})
	}
}

func TestNewsOfATaskWaitsUntilSomebodyUsesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, c, j, m := background(t)
		b.Host.Close()
		b.Options.OnlyAttended = true
		b.Open()
		defer b.Host.Close()
		if _, err := b.Host.Status(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		c.of(j.key(0)) <- ended(j.key(0), "NEWS")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := notices(m.last(), "NEWS"); got != 0 {
			t.Errorf("the model reads the news %d times, and nobody has used the session", got)
		}
		b.Resume("s", session.Resume{}, &session.Client{})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := notices(m.last(), "NEWS"); got != 1 {
			t.Errorf("the model reads the news %d times", got)
		}
	})
}

func TestAHostStopsOnlyIfNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, &silentModel{})
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "x"})
		if b.Host.Work.StopIfIdle() {
			t.Error("it stops while a request is about to begin, or under way")
		}
		synctest.Wait()
		if b.Host.Work.StopIfIdle() || !b.Host.Work.Busy() {
			t.Error("it stops while a request is under way")
		}
		if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b.Host.Work.Busy() || !b.Host.Work.StopIfIdle() {
			t.Error("it does not stop although nothing is under way")
		}
		if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "y"}); !errors.Is(err, session.ErrClosed) {
			t.Errorf("after that an input is answered with %v", err)
		}
	})
}
