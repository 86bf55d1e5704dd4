package killtest

import (
	"context"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// What is halted while a call waits for a person, and what is said then.
var halted = scenario{name: "halted", prompt: "Use once with value 'ask first', then reply with the result"}

const afterwards = "Reply with exactly: HELLO"

// untilAsked waits until a question is open.
func (c *client) untilAsked(ctx context.Context) error {
	for {
		known := 0
		c.witness.note(func() { known = c.witness.count(c.number, event.PermissionAsked) })
		var r api.QuestionsResult
		if err := c.call(ctx, api.Questions, api.SessionParams{SessionID: c.session}, &r); err != nil || len(r.Questions) > 0 {
			return err
		}
		if err := c.witness.until(ctx, c.rpc.Done(), func() bool { return c.witness.count(c.number, event.PermissionAsked) > known }); err != nil {
			return err
		}
	}
}

// abortThenGoOn stops the turn while a call waits for a person, and says something
// else. Whatever is still asked then it would say yes to.
func abortThenGoOn(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	log, err := c.log(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == event.Abort }) {
		if err := c.send(ctx, api.SendParams{Prompt: halted.prompt}); err != nil {
			return err
		}
		if err := c.untilAsked(ctx); err != nil {
			return err
		}
		if err := c.call(ctx, api.SessionAbort, api.SessionParams{SessionID: c.session}, nil); err != nil {
			return err
		}
	}
	return c.goOn(ctx)
}

// goOn says something else, and says yes to whatever it is asked.
func (c *client) goOn(ctx context.Context) error {
	if err := c.send(ctx, api.SendParams{Prompt: afterwards}); err != nil {
		return err
	}
	return c.untilIdle(ctx, exchange{})
}

// declineThenGoOn leaves while a call waits for a person, comes back without wanting
// what was pending, and says something else.
func declineThenGoOn(ctx context.Context, c *client) error {
	if !c.witness.opened {
		if err := c.open(ctx); err != nil {
			return err
		}
		if err := c.send(ctx, api.SendParams{Prompt: halted.prompt}); err != nil {
			return err
		}
		return c.untilAsked(ctx)
	}
	open := c.talk.open
	open.ContinuePending = new(false)
	if err := c.call(ctx, api.SessionResume, open, nil); err != nil {
		return err
	}
	return c.goOn(ctx)
}

// judgeStopped: the call never ran, its question is closed, and the session goes on.
func judgeStopped(t *testing.T, out outcome) {
	t.Helper()
	c := &checker{outcome: out}
	for _, promise := range []func(){c.chain, c.envelopes, c.acknowledged, c.inputs, c.calls, c.effectsCounted, c.atRest} {
		promise()
	}
	if len(out.effects) > 0 {
		c.fault("what was halted was done: %+v", out.effects)
	}
	if answers := out.answers(); len(answers) == 0 || answers[len(answers)-1] != "HELLO" {
		c.fault("the answers are %q", answers)
	}
	for _, broken := range c.broken {
		t.Error(broken)
	}
	if t.Failed() {
		t.Log(out.story())
	}
}

func stoppedRun(t *testing.T, carry func(context.Context, *client) error) *run {
	r := newRun(t, halted.talk(scriptedWorld(t, halted)))
	r.carry = carry
	return r
}

func TestACallThatWasAbortedIsNotMadeAfterARestart(t *testing.T) {
	calm := stoppedRun(t, abortThenGoOn).play()
	judgeStopped(t, calm)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			judgeStopped(t, stoppedRun(t, abortThenGoOn).play(at))
		})
	}
}

func TestACallThatWasDeclinedIsNotMadeAfterARestart(t *testing.T) {
	left := stop{1 << 30, seen} // killed when the client has nothing more to say
	calm := stoppedRun(t, declineThenGoOn).play(left)
	judgeStopped(t, calm)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			judgeStopped(t, stoppedRun(t, declineThenGoOn).play(left, at))
		})
	}
}
