package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

// TestATakeoverIsRecorded: each engine that goes on with a turn says so once, and one that only
// looks does not.
func TestATakeoverIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{}, &countingTool{name: "act", ask: true})
		defer func() { b.Host.Close() }()
		yes, c := true, &session.Client{Permission: true}
		v := b.Create("s", c)
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
		asked, _ := v.Await(t, 0, event.PermissionAsked)
		d, _ := event.As[event.PermissionAskedData](asked)
		b.Host.Detach("s", c, false)
		time.Sleep(time.Minute)
		b.Resume("s", session.Resume{Continue: &yes}, &session.Client{}) // the session was not in memory, and the engine is the same
		restart := func(want int, of string) {
			t.Helper()
			time.Sleep(time.Minute)
			b.Restart()
			if _, err := b.Host.Questions.Open(t.Context(), "s", anything); err != nil {
				t.Fatal(err)
			}
			if n := len(takeovers(t, b)); n != want {
				t.Errorf("%d takeovers are recorded by %s, want %d", n, of, want)
			}
		}
		restart(0, "engines that have not touched the session")
		b.Resume("s", session.Resume{Quiet: true, Continue: &yes}, &session.Client{})
		restart(0, "an engine that only had a client")
		head, _ := lastEvent(t, b).Head()
		b.Resume("s", session.Resume{Continue: &yes}, &session.Client{})
		if got := takeovers(t, b); len(got) != 1 || got[0].InteractionID == "" || got[0].LastTime != event.FormatTime(head.Time) {
			t.Errorf("takeovers are %+v, want one, after %s", got, event.FormatTime(head.Time))
		}
		restart(1, "an engine that only looked")
		if _, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &turn.Decision{Kind: turn.ApproveOnce}}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, b, "s")
		restart(2, "the engine that has ended the turn and the one after it")
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: a new turn"})
		awaitIdle(t, b, "s")
		restart(2, "an engine that has made a turn alone")
	})
}

// TestATurnThatIsDeclinedIsNotTakenOver: it ends when the next engine first records something.
func TestATurnThatIsDeclinedIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{}, &countingTool{name: "act", ask: true})
		defer func() { b.Host.Close() }()
		v := b.Create("s", &session.Client{Permission: true})
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
		v.Await(t, 0, event.PermissionAsked)
		time.Sleep(time.Minute)
		b.Restart()
		b.Resume("s", session.Resume{}, &session.Client{})
		awaitIdle(t, b, "s")
		if n := len(takeovers(t, b)); n != 0 {
			t.Errorf("%d takeovers are recorded", n)
		}
	})
}

// TestATakeoverIsRecordedByTheStepAlone: a model that was asked is asked again by the next engine,
// which records nothing else.
func TestATakeoverIsRecordedByTheStepAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &stuckOnce{Model: offline.Model{}}
		b := sessiontest.New(t, m)
		defer func() { b.Host.Close() }()
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: hello"})
		synctest.Wait()
		before := lastEvent(t, b).Seq
		time.Sleep(time.Minute)
		b.Restart()
		awaitIdle(t, b, "s")
		for e, err := range b.Store.Read(t.Context(), "s", before) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type != event.TurnTakenOver {
				t.Errorf("the first event of the second engine is a %s", e.Type)
			}
			break
		}
	})
}

// stuckOnce is a model whose first answer never comes.
type stuckOnce struct {
	offline.Model
	asked bool
}

func (m *stuckOnce) Ask(ctx context.Context, q *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if !m.asked {
		m.asked = true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Model.Ask(ctx, q, on)
}

func lastEvent(t *testing.T, b *sessiontest.Fixture) (last event.Event) {
	t.Helper()
	for e, err := range b.Store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	return last
}

// takeovers returns what the log of the session s says of takeovers.
func takeovers(t *testing.T, b *sessiontest.Fixture) (list []event.TurnTakenOverData) {
	t.Helper()
	for e, err := range b.Store.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != event.TurnTakenOver {
			continue
		}
		d, err := event.As[event.TurnTakenOverData](e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}
