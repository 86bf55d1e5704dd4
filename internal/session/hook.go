package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
)

// A Hook asks a client about something that is about to happen or has just happened.
// An empty output changes nothing. The error is ErrLeft if the client is no longer
// there.
type Hook func(ctx context.Context, id event.SessionID, kind string, input json.RawMessage) (output json.RawMessage, err error)

// hookTime is how long a client may take for a hook before it counts as absent.
const hookTime = time.Minute

// A hookRun is a hook that is asked in this process.
type hookRun struct {
	cancel context.CancelFunc
	queued bool // true if it is about an input that waits in the queue
	idle   bool // true if it waits for a client that can be asked
}

// hookRuns is the activity of asking hooks.
type hookRuns struct {
	running map[string]*hookRun // the hooks that are being asked, by id
}

func (l *hookRuns) add(id string, r *hookRun) {
	if l.running == nil {
		l.running = make(map[string]*hookRun)
	}
	l.running[id] = r
}

func (l *hookRuns) busy() bool { return len(l.running) > 0 }

func (l *hookRuns) stop(error) { l.stopThose(func(*hookRun) bool { return true }) }

func (l *hookRuns) abort(_ *txn, d event.AbortData) error {
	l.stopThose(func(r *hookRun) bool { return !r.queued || !d.KeepQueue })
	return nil
}

// stopThose gives up the hooks that the filter is for.
func (l *hookRuns) stopThose(filter func(*hookRun) bool) {
	for id, r := range l.running {
		if filter(r) {
			r.cancel()
			delete(l.running, id)
		}
	}
}

// hasHooks reports whether hooks can be asked: a client has hooks, or one that had
// hooks vanished a moment ago.
func (s *Session) hasHooks() bool {
	return s.state.Setup.Declared.Hooks && (len(s.clients.withHooks()) > 0 || time.Now().Before(s.awaitHooksUntil()))
}

// awaitHooksUntil returns until when hooks wait for a client that vanished with its
// connection or with the last engine. After that, they count as absent.
func (s *Session) awaitHooksUntil() time.Time {
	missed := s.clients.missedUntil()
	if back := s.host.started.Add(s.host.opts.Grace); back.After(missed) {
		return back
	}
	return missed
}

// startHook records that a hook is to be asked.
func (tx *txn) startHook(step turn.StartHook) error {
	reads := ""
	if step.Kind == event.HookPromptTransformed {
		text, err := tx.inputText(step.Input)
		if err != nil {
			return err
		}
		reads = transcript.Dated(text, tx.now)
	}
	return tx.record(turn.NewHook(tx.State, step, tx.now, reads, tx.s.transcriptPath()))
}

// askHook asks the clients' hooks as soon as the transaction is stored, for at most
// hookTime. Only what the hook is about waits for it.
func (s *Session) askHook(tx *txn, h event.HookStartData) {
	ctx, cancel := context.WithTimeout(s.host.ctx, hookTime)
	r := &hookRun{cancel: cancel, queued: h.InputID != ""}
	s.hooks.add(h.ID, r)
	tx.afterCommit = append(tx.afterCommit, func() {
		clients := s.clients.withHooks()
		if len(clients) == 0 {
			s.awaitHooks(ctx, r, h)
			return
		}
		inputs := s.hookInputs(h)
		if !s.spawn(func() {
			defer cancel()
			if h.Kind == event.HookAgentStop {
				s.writeTranscript(ctx)
			}
			s.finishHook(r, s.runHook(ctx, h, inputs, clients))
		}) {
			cancel()
		}
	})
}

// hookInputs returns what the clients are told: for preToolUse one input for each
// call, by its id; for any other hook one input.
func (s *Session) hookInputs(h event.HookStartData) map[string]json.RawMessage {
	if h.Kind != event.HookPreToolUse {
		return map[string]json.RawMessage{"": h.Input}
	}
	inputs := make(map[string]json.RawMessage)
	for _, id := range h.Calls {
		if input, ok := turn.CallInput(s.state, id, time.Now()); ok {
			inputs[id] = input
		}
	}
	return inputs
}

// awaitHooks waits for a client with hooks. When one attaches, the hook is asked
// again.
func (s *Session) awaitHooks(ctx context.Context, r *hookRun, h event.HookStartData) {
	r.idle = true
	ctx, cancel := context.WithDeadline(ctx, s.awaitHooksUntil())
	if !s.spawn(func() {
		defer cancel()
		<-ctx.Done()
		s.finishHook(r, hookResult{end: event.HookEndData{ID: h.ID, Kind: h.Kind, Error: &event.HookError{Message: "There is no client to ask."}}})
	}) {
		cancel()
	}
}

// hookResult is the outcome of a hook.
type hookResult struct {
	end  event.HookEndData
	left bool // true if nobody answered because a client vanished
}

// runHook asks all clients, about all calls at the same time.
func (s *Session) runHook(ctx context.Context, h event.HookStartData, inputs map[string]json.RawMessage, clients []*attachment) hookResult {
	end := event.HookEndData{ID: h.ID, Kind: h.Kind}
	var mu sync.Mutex
	var failed error
	answers := make(map[string]json.RawMessage)
	var calls sync.WaitGroup
	for id, input := range inputs {
		calls.Go(func() {
			output, err := s.askHookClients(ctx, h.Kind, input, clients)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			} else if output != nil {
				answers[id] = output
			}
		})
	}
	calls.Wait()
	end.Success = failed == nil || len(answers) > 0 // the answers about other calls count
	if failed != nil {
		end.Error = &event.HookError{Message: hookFailure(ctx, failed)}
	}
	end.Output = answers[""]
	if delete(answers, ""); len(answers) > 0 {
		end.Outputs = answers
	}
	return hookResult{end, !end.Success && errors.Is(failed, ErrLeft)}
}

// hookFailure describes why a hook counts as absent.
func hookFailure(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "The hook did not answer in time."
	}
	return err.Error()
}

// askHookClients asks one client after the other, and merges their answers.
func (s *Session) askHookClients(ctx context.Context, kind string, input json.RawMessage, clients []*attachment) (json.RawMessage, error) {
	var outputs []json.RawMessage
	var failed error
	for _, a := range clients {
		output, err := a.spec.Hook(ctx, s.id, kind, input)
		if err == nil {
			if err = event.CheckJSON(output); err != nil {
				err = fmt.Errorf("the output of the hook %s: %w", kind, err)
			}
		}
		switch {
		case errors.Is(err, ErrLeft):
			s.clients.miss(a, time.Now().Add(s.host.opts.Grace))
			failed = err
		case err != nil:
			failed = err
		case len(output) > 0:
			outputs = append(outputs, output)
		}
	}
	if len(outputs) > 0 {
		return turn.MergeOutputs(outputs), nil
	}
	return nil, failed
}

// finishHook records the outcome of a hook. If the clients vanished instead of
// answering, the hook is asked again, because they may come back.
func (s *Session) finishHook(r *hookRun, what hookResult) {
	s.post(func(tx *txn) error {
		if tx.s.hooks.running[what.end.ID] != r || tx.s.host.ctx.Err() != nil {
			return nil
		}
		delete(tx.s.hooks.running, what.end.ID)
		if what.left {
			return nil
		}
		return tx.record(what.end)
	})
}

// retryIdleHooks stops the hooks that wait for a client, so that they are asked
// again.
func (s *Session) retryIdleHooks() {
	s.hooks.stopThose(func(r *hookRun) bool { return r.idle })
}

// recordOutcome records what became of calls, or first asks the hooks about it.
func (tx *txn) recordOutcome(record ...event.Payload) error {
	return tx.record(turn.HoldForHooks(tx.State, tx.s.hasHooks(), tx.now, record)...)
}

// recordHookMessage records what a hook wants the model to read.
func (tx *txn) recordHookMessage(step turn.Say) error {
	return tx.record(event.UserMessageData{
		Content: step.Words.Text, Attachments: []json.RawMessage{}, Delivery: "steering",
		InteractionID: tx.State.Turn.InteractionID, Source: step.Words.Source,
	})
}
