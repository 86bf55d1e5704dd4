package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// errInterrupted means that a person pressed Ctrl-C: the turn is to be stopped.
var errInterrupted = errors.New("interrupted")

// slowStop is the time after which a person who stops a turn is told what it waits for.
const slowStop = time.Second

// stop stops the turn because of Ctrl-C, and returns the error with which the run ends.
// Inputs that wait in the queue stay there.
func (r *runner) stop(ctx context.Context) error {
	r.showNothing()
	r.prompter.takeBack()
	type reply struct {
		result api.AbortResult
		err    error
	}
	replies, shown := make(chan reply, 1), r.shown
	go func() { // ends with the connection
		result, err := abortAfter(ctx, r.client, api.AbortParams{SessionID: r.id, KeepQueue: true}, shown)
		replies <- reply{result, err}
	}()
	slow := time.After(slowStop)
	for {
		select {
		case got := <-replies:
			if got.err != nil {
				return fmt.Errorf("%w; the turn could not be stopped: %w; try: abide abort %s", stopSignal{syscall.SIGINT}, got.err, r.id)
			}
			r.acknowledged.Store(true)
			return &turnStopped{r.id, got.result}
		case <-r.events.ready():
			if err := r.showEvents(ctx); err != nil {
				return err
			}
		case <-slow:
			r.note("stopping; press Ctrl-C again to leave at once")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// abortTurn stops the turn of a session that the command does not follow.
func abortTurn(ctx context.Context, c *client.Client, p api.AbortParams) (api.AbortResult, error) {
	before, err := c.Status(ctx, p.SessionID)
	if err != nil {
		return api.AbortResult{}, err
	}
	return abortAfter(ctx, c, p, before.Position)
}

// abortAfter stops the turn of a session because a person wants it, and returns what was
// stopped after a position. If the engine is killed before it has replied, the next one
// is asked again and finds no turn any more. Then the log tells whether there was one.
func abortAfter(ctx context.Context, c *client.Client, p api.AbortParams, after event.Seq) (api.AbortResult, error) {
	p.Reason = "user_initiated"
	result, err := c.Abort(ctx, p)
	if err == nil && !result.Turn {
		result.Turn, err = hasStopped(ctx, c, p.SessionID, after)
	}
	return result, err
}

// hasStopped reports whether a turn of a session was stopped after a position.
func hasStopped(ctx context.Context, c *client.Client, id event.SessionID, after event.Seq) (bool, error) {
	for e, err := range c.Events(ctx, id, after) {
		if err != nil {
			return false, err
		}
		if e.Type == event.Abort { // it may have held a session in which no turn was running
			running, err := wasRunning(ctx, c, id, e.Seq)
			if running || err != nil {
				return running, err
			}
		}
	}
	return false, nil
}

// wasRunning reports whether a turn was running before the event at a position.
func wasRunning(ctx context.Context, c *client.Client, id event.SessionID, at event.Seq) (bool, error) {
	state := turn.New(id)
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil || e.Seq == at {
			return state.Turn != nil, err
		}
		if err := state.Fold(e); err != nil {
			return false, err
		}
	}
	return false, nil
}

// leaveAtOnce says, before a second Ctrl-C ends the process, whether the turn is
// stopped.
func (r *runner) leaveAtOnce() {
	if r.acknowledged.Load() {
		r.app.err.printf("abide: left at once; the turn is stopped, and its commands are being ended\n")
		return
	}
	r.app.err.printf("abide: left at once; it is not known whether the turn was stopped; to make sure: abide abort %s\n", r.id)
}

// turnStopped is the error of a run whose turn was stopped with Ctrl-C.
type turnStopped struct {
	session event.SessionID
	api.AbortResult
}

func (e *turnStopped) Unwrap() error { return stopSignal{syscall.SIGINT} }

func (e *turnStopped) Error() string {
	text := fmt.Sprintf("interrupted: %s\nto go on: abide run --resume %s \"…\"", describeStop(e.AbortResult), e.session)
	if more := goesOn(e.session, e.AbortResult); more != "" {
		text += "; " + more
	}
	return text
}

// describeStop says what an abort has stopped, and what it has dropped.
func describeStop(r api.AbortResult) string {
	text := stoppedWork(r)
	if r.Dropped > 0 {
		text += "; dropped " + plural(r.Dropped, "queued prompt", "queued prompts")
	}
	return text
}

// stoppedWork says which work an abort has stopped.
func stoppedWork(r api.AbortResult) string {
	switch {
	case len(r.Stopped) > 0:
		var stopped, over []string
		for _, t := range r.Stopped {
			name := clip(inLine(t.Command), 60) + " (" + ending(t) + ")"
			if t.Status == event.TaskCompleted && !t.Lingering {
				over = append(over, name)
			} else {
				stopped = append(stopped, name)
			}
		}
		text, and := "stopped the turn", " and "
		if !r.Turn { // an earlier stop has left them
			text, and = "no turn was running", "; ended "
		}
		if len(stopped) > 0 {
			text += fmt.Sprintf("%s%s: %s", and, plural(len(stopped), "command", "commands"), strings.Join(stopped, ", "))
		}
		if len(over) > 0 {
			text += "; before that it was over: " + strings.Join(over, ", ")
		}
		return text
	case r.Turn:
		return "stopped the turn"
	case r.Compaction:
		return "stopped the compaction"
	}
	return "no turn was running"
}

// goesOn says what an abort has left; empty if there is nothing.
func goesOn(id event.SessionID, r api.AbortResult) string {
	var left []string
	if n := r.Background; n > 0 {
		left = append(left, fmt.Sprintf("%s on: abide ps %s", plural(n, "background command goes", "background commands go"), id))
	}
	if n := r.Queued; n > 0 {
		left = append(left, plural(n, "queued prompt is kept and waits", "queued prompts are kept and wait"))
	}
	return strings.Join(left, "; ")
}

// plural returns a number of things, as in "2 commands".
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + more
}
