package cli

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// An explanation names the answers that last, and whoever gives one is told what it allows
// and how that ends.
func TestAnAnswerThatLastsIsNamedAndSaid(t *testing.T) {
	grant := []event.Grant{{Kind: "shell", Command: "'ls'"}}
	q := asking(t, map[string]any{"kind": "shell", "fullCommandText": "ls"}, &event.PermissionMore{Offers: []event.Offer{{ID: event.OfferOnce, Label: "this call only"}, {ID: event.OfferCommand, Label: "exactly this", Grants: grant}}})
	if shown := (&prompter{out: &printer{}}).help(q); !strings.Contains(shown, wordHere) || !strings.Contains(shown, wordAlways) {
		t.Errorf("the explanation is\n%s", shown)
	}
	for text, want := range map[string]string{
		"y": "", "n": "", "rather not": "", "huh": "",
		"c":                      "(allowed from now on: exactly this, for the rest of the session)",
		"approve-here":           "(allowed from now on: exactly this, in all sessions of this directory; abide rules lists it, and abide rules revoke takes it back)",
		"approve-always:command": "(allowed from now on: exactly this, in all sessions; abide rules lists it, and abide rules revoke takes it back)",
	} {
		if got := q.granted(text); got != want {
			t.Errorf("after %q it says %q, want %q", text, got, want)
		}
	}
}

// A command that had ended by itself was not stopped.
func TestOnlyWhatWasStoppedIsSaidToBeStopped(t *testing.T) {
	one, two := api.Task{Command: "a\nb", Status: event.TaskCompleted}, api.Task{Command: "c", Status: event.TaskKilled}
	for want, list := range map[string][]api.Task{
		"stopped the turn; before that it was over: a ⏎ b (completed)":                           {one},
		"stopped the turn and 1 command: c (killed); before that it was over: a ⏎ b (completed)": {one, two},
	} {
		if got := describeStop(api.AbortResult{Turn: true, Stopped: list}); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	want := "no turn was running; ended 1 command: c (killed); before that it was over: a ⏎ b (completed)"
	if got := describeStop(api.AbortResult{Stopped: []api.Task{one, two}}); got != want { // an earlier stop has left them
		t.Errorf("without a turn it says %q, want %q", got, want)
	}
}

// Whoever has pressed Ctrl-C before the engine was killed is not told that the turn goes on.
func TestAStoppedTurnIsNotSaidToGoOn(t *testing.T) {
	pressed := make(chan struct{})
	close(pressed)
	for name, c := range map[string]struct {
		pressed <-chan struct{}
		stored  bool
		want    string
	}{
		"neither": {nil, false, "the turn goes on"},
		"pressed": {pressed, false, "it is not known whether the turn was stopped"},
		"stored":  {pressed, true, "the turn is stopped; to go on"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopSignal{syscall.SIGKILL})
		a := &app{out: &printer{w: &strings.Builder{}}, err: &printer{w: &strings.Builder{}}, stays: true}
		r := a.newRunner(&runFlags{format: formatText})
		r.id, r.interrupted = "s", c.pressed
		r.acknowledged.Store(c.stored)
		if err := r.end(ctx, context.Canceled); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
