package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// errInterrupted means that a person pressed Ctrl-C: the turn is to be stopped.
var errInterrupted = errors.New("interrupted")

// slowStop is the time after which a person who stops a turn is told what it waits for.
const slowStop = time.Second

// stop stops the turn because of Ctrl-C, and returns the error with which the run ends.
// Inputs that wait in the queue stay there.
func (r *runner) stop(ctx context.Context) error {
	type reply struct {
		result api.AbortResult
		err    error
	}
	replies := make(chan reply, 1)
	go func() { // ends with the connection
		result, err := r.client.Abort(ctx, api.AbortParams{SessionID: r.id, Reason: "user_initiated", KeepQueue: true})
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
		names := make([]string, len(r.Stopped))
		for i, t := range r.Stopped {
			names[i] = clip(oneLine(t.Command), 60) + " (" + ending(t) + ")"
		}
		return fmt.Sprintf("stopped the turn and %s: %s", plural(len(names), "command", "commands"), strings.Join(names, ", "))
	case r.Turn:
		return "stopped the turn"
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
