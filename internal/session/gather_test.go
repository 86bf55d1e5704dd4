package session_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// What ends together is told together, in a turn of its own. What ends when that
// is over is another matter.
func TestTasksThatEndTogetherWakeAnIdleSessionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, j := &recordingModel{}, newChores(), &taskTool{}
		b := sessiontest.New(t, m, j)
		b.Options.Tasks = c
		b.Restart()
		v := b.Create("s", &session.Client{})
		prompt := "Call job with value '0'"
		for i := range 10 {
			prompt += fmt.Sprintf(", job with value '%d'", i+1)
		}
		b.Send("s", event.InputAcceptedData{Prompt: prompt})
		v.Await(t, 0, event.SessionIdle)
		asked, shown := len(m.reqs), len(v.Kinds())
		for i := range 10 {
			c.of(j.key(i)) <- ended(j.key(i), fmt.Sprintf("NEWS %d.", i))
		}
		v.Await(t, shown, event.SessionIdle)
		if len(m.reqs) != asked+1 || notices(m.last(), "NEWS") != 10 {
			t.Errorf("the model reads %d news in %d requests, want 10 in one", notices(m.last(), "NEWS"), len(m.reqs)-asked)
		}
		shown = len(v.Kinds())
		c.of(j.key(10)) <- ended(j.key(10), "NEWS 10.")
		v.Await(t, shown, event.SessionIdle)
		if len(m.reqs) != asked+2 || notices(m.last(), "NEWS") != 11 {
			t.Errorf("the model reads %d news in %d requests, want 11 in two", notices(m.last(), "NEWS"), len(m.reqs)-asked)
		}
		b.Host.Close()
	})
}
