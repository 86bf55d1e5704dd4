package killtest

import (
	"context"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// stoppedScenario is stopped while its call waits for permission.
var stoppedScenario = scenario{name: "halted", prompt: "Use once with value 'ask first', then reply with the result"}

const nextPrompt = "Reply with exactly: HELLO"

// awaitQuestion waits until a permission question is open.
func (c *client) awaitQuestion(ctx context.Context) error {
	for {
		known := 0
		c.recorder.update(func() { known = c.recorder.count(c.number, event.PermissionAsked) })
		var r api.QuestionsResult
		if err := c.call(ctx, api.Questions, api.SessionParams{SessionID: c.session}, &r); err != nil || len(r.Questions) > 0 {
			return err
		}
		if err := c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.count(c.number, event.PermissionAsked) > known }); err != nil {
			return err
		}
	}
}

// abortAndContinue aborts the turn while a call waits for permission, and sends
// another prompt. It would approve any question that is still asked then.
func abortAndContinue(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	log, err := c.log(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == event.Abort }) {
		if err := c.send(ctx, api.SendParams{Prompt: stoppedScenario.prompt}); err != nil {
			return err
		}
		if err := c.awaitQuestion(ctx); err != nil {
			return err
		}
		if err := c.call(ctx, api.SessionAbort, api.SessionParams{SessionID: c.session}, nil); err != nil {
			return err
		}
	}
	return c.continueAfterwards(ctx)
}

// continueAfterwards sends another prompt, and approves whatever it is asked.
func (c *client) continueAfterwards(ctx context.Context) error {
	if err := c.send(ctx, api.SendParams{Prompt: nextPrompt}); err != nil {
		return err
	}
	return c.answerUntilIdle(ctx, exchange{})
}

// declineAndContinue leaves while a call waits for permission, resumes the session
// without the pending work, and sends another prompt.
func declineAndContinue(ctx context.Context, c *client) error {
	if !c.recorder.opened {
		if err := c.open(ctx); err != nil {
			return err
		}
		if err := c.send(ctx, api.SendParams{Prompt: stoppedScenario.prompt}); err != nil {
			return err
		}
		return c.awaitQuestion(ctx)
	}
	open := c.conversation.open
	open.ContinuePending = new(false)
	if err := c.call(ctx, api.SessionResume, open, nil); err != nil {
		return err
	}
	return c.continueAfterwards(ctx)
}

// judgeStopped checks that the call never ran, that its question is closed, and that
// the session continues.
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
		t.Log(out.describeLog())
	}
}

func stoppedRun(t *testing.T, carry func(context.Context, *client) error) *run {
	r := newRun(t, stoppedScenario.conversation(scriptedSource(t, stoppedScenario)))
	r.driveClient = carry
	return r
}

func TestACallThatWasAbortedIsNotMadeAfterARestart(t *testing.T) {
	calm := stoppedRun(t, abortAndContinue).play()
	judgeStopped(t, calm)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			judgeStopped(t, stoppedRun(t, abortAndContinue).play(at))
		})
	}
}

func TestACallThatWasDeclinedIsNotMadeAfterARestart(t *testing.T) {
	left := stop{1 << 30, seen} // killed when the client has nothing more to say
	calm := stoppedRun(t, declineAndContinue).play(left)
	judgeStopped(t, calm)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			judgeStopped(t, stoppedRun(t, declineAndContinue).play(left, at))
		})
	}
}
