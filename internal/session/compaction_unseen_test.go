package session_test

import (
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// TestANotificationOutlivesACompactionBeforeItIsRead compacts between the end of a
// background task and the request that is to tell the model about it.
func TestANotificationOutlivesACompactionBeforeItIsRead(t *testing.T) {
	refused := scriptedReply{err: &model.Error{Kind: model.KindOverflow, Message: "too long"}}
	answers := []scriptedReply{{text: "I have read it."}, {text: "Yes."}}
	for name, test := range map[string]struct {
		config           event.SessionConfiguredData
		answers, summary []scriptedReply
	}{
		"before a run":             {eager(), answers, []scriptedReply{{text: "A job was begun.", write: true}}},
		"after a refused request":  {event.SessionConfiguredData{}, append([]scriptedReply{refused}, answers...), []scriptedReply{{text: "A job was begun."}}},
		"with a digest":            {event.SessionConfiguredData{}, append([]scriptedReply{refused}, answers...), nil},
		"after several refusals":   {event.SessionConfiguredData{}, append([]scriptedReply{refused, refused}, answers...), nil},
		"read in parts, and after": {event.SessionConfiguredData{}, append([]scriptedReply{refused}, answers...), []scriptedReply{refused, {text: "A job was begun."}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, j := newChores(), &taskTool{}
			m := &scriptedModel{lines: append([]scriptedReply{{call: "job"}, {text: "It goes on."}}, test.answers...), summaries: test.summary}
			s := &compactedSession{Fixture: sessiontest.New(t, m, j), m: m, v: sessiontest.NewViewer()}
			s.Options.Tasks = c
			s.Restart()
			s.attach(session.Spec{Config: test.config}, &session.Client{})
			s.say("begin")
			at := s.end()
			c.of(j.key(0)) <- ended(j.key(0), "NEWS")
			s.settle()
			if done := s.compactions(at); len(done) == 0 || done[0].Outcome != "done" {
				t.Fatalf("compactions = %+v", done)
			}
			if got := notices(m.last(), "NEWS"); got != 1 {
				t.Errorf("the model reads the news %d times in %q", got, m.texts())
			}
			if _, err := s.Host.Context.Uncompact(t.Context(), "s"); err != nil {
				t.Fatal(err)
			}
			s.say("Have you?")
			if got := notices(m.last(), "NEWS"); got != 1 {
				t.Errorf("after an undo the model reads the news %d times in %q", got, m.texts())
			}
		})
	}
}
