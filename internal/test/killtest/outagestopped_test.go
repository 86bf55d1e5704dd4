package killtest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// parkedPrompt is the prompt of a turn that waits until it is stopped.
const parkedPrompt = "Reply with exactly: NEVER"

// A parkedRun is a run of a turn that is stopped while it is parked.
type parkedRun struct {
	*run
	source  *modelSource
	stopped atomic.Bool  // true if the stop was acknowledged or is in the log
	late    atomic.Int64 // number of requests of the turn after that
}

func newParkedRun(t *testing.T) *parkedRun {
	t.Helper()
	p := &parkedRun{}
	p.source = outageSource(t, func(_ int, _ string, body []byte) remotetest.Fault {
		if strings.Contains(string(body), nextPrompt) {
			return nil
		}
		if p.stopped.Load() {
			p.late.Add(1)
		}
		return remotetest.Status(http.StatusTooManyRequests, "too fast", "Retry-After", "3600")
	})
	p.run = newRun(t, conversation{open: p.source.open("s")})
	p.driveClient = p.abortParked
	return p
}

// abortParked aborts the turn while it is parked, and sends another prompt.
func (p *parkedRun) abortParked(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	stopped, err := c.hasKind(ctx, event.Abort)
	if err != nil {
		return err
	}
	if !stopped {
		if err := c.send(ctx, api.SendParams{Prompt: parkedPrompt}); err != nil {
			return err
		}
		if err := c.awaitParked(ctx); err != nil {
			return err
		}
		if err := c.call(ctx, api.SessionAbort, api.SessionParams{SessionID: c.session}, nil); err != nil {
			return err
		}
	}
	p.source.settle()
	p.stopped.Store(true)
	return c.continueAfterwards(ctx)
}

// hasKind reports whether the log has an event of a kind.
func (c *client) hasKind(ctx context.Context, kind event.Type) (bool, error) {
	log, err := c.log(ctx)
	return slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == kind }), err
}

// awaitParked waits until the turn is parked, unless an earlier victim has parked it.
func (c *client) awaitParked(ctx context.Context) error {
	if parked, err := c.hasKind(ctx, event.TurnParked); parked || err != nil {
		return err
	}
	return c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.count(c.number, event.SessionInfo) > 0 })
}

// judge checks that the turn was stopped and stayed so, and that the session continues.
func (p *parkedRun) judge(t *testing.T, out outcome) {
	t.Helper()
	c := &checker{outcome: out}
	for _, promise := range []func(){c.chain, c.envelopes, c.acknowledged, c.inputs, c.atRest} {
		promise()
	}
	if n := p.late.Load(); n > 0 {
		c.fault("the model was asked %d times for a turn that was stopped", n)
	}
	if answers := out.answers(); !slices.Equal(answers, []string{"", "HELLO"}) {
		c.fault("the answers are %q", answers)
	}
	for _, broken := range c.broken {
		t.Error(broken)
	}
	if t.Failed() {
		t.Log(out.describeLog())
	}
}

func TestAParkedTurnThatWasStoppedStaysStoppedAfterAKill(t *testing.T) {
	first := newParkedRun(t)
	calm := first.play()
	first.judge(t, calm)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			p := newParkedRun(t)
			p.judge(t, p.play(at))
		})
	}
}
