package session_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// orphaned returns a session with an epoch and a compaction that nobody works on any
// more: the runtime that began it has ended.
func orphaned(t testing.TB, further ...scriptedReply) *compactedSession {
	asked := make(chan struct{})
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "ho"}}, summaries: append([]scriptedReply{{text: "They said hi."}, {wait: make(chan struct{}), asked: asked}}, further...)}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != event.OutcomeDone {
		t.Fatalf("%+v, %v", d, err)
	}
	s.say("second")
	over := make(chan error, 1)
	go func() {
		_, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{})
		over <- err
	}()
	_, s.n = s.v.Await(t, s.n, event.CompactionStart)
	<-asked // otherwise the next compaction would get the reply that never comes
	s.Host.Close()
	if err := <-over; !errors.Is(err, session.ErrClosed) {
		t.Errorf("whoever waits for it is told %v", err)
	}
	s.Host = session.New(s.Store, s.Options) // this host is here for a moment only: nothing goes on by itself
	return s
}

func TestACompactionByHandFollowsOneThatWasInterrupted(t *testing.T) {
	s := orphaned(t, scriptedReply{text: "They said ho."})
	d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{})
	if err != nil || d.Outcome != event.OutcomeDone {
		t.Fatalf("%+v, %v", d, err)
	}
	done := s.compactions(0)
	if got := outcomes(done); !slices.Equal(got, []string{"done", "failed", "done"}) || done[1].Cause != event.CauseInterrupted {
		t.Errorf("compactions = %+v", done)
	}
}

func TestAnUndoFollowsACompactionThatWasInterrupted(t *testing.T) {
	s := orphaned(t)
	if _, err := s.Host.Context.Uncompact(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(s.compactions(0)); !slices.Equal(got, []string{"done", "failed"}) {
		t.Errorf("compactions = %v", got)
	}
}
