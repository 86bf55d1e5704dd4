package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// startCall runs the tool of a call as soon as the transaction is stored.
func (s *Session) startCall(tx *txn, c *turn.Call) {
	ctx, cancel := context.WithCancel(s.host.ctx)
	id := c.Request.ToolCallID
	done := make(chan struct{})
	s.calls.add(id, &running{c.Key, cancel, done})
	t, call := s.host.opts.Tools.Tool(s.state, c)
	tx.afterCommit = append(tx.afterCommit, func() {
		s.calls.unfinished.Add(1)
		if !s.spawn(func() {
			defer cancel()
			result := s.runTool(ctx, t, call)
			s.calls.unfinished.Done()
			close(done)
			s.finishCall(ctx, c, result)
		}) {
			cancel()
			s.calls.unfinished.Done()
			close(done)
		}
	})
}

// runTool runs a tool. A tool that panics fails its call, not the runtime.
func (s *Session) runTool(ctx context.Context, t tool.Tool, call tool.Call) (result tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.host.log.Error("a tool broke", "session", s.id, "tool", t.Spec().Name, "panic", p)
			result = tool.Fail(fmt.Sprintf("The tool %s broke: %v", t.Spec().Name, p))
		}
	}()
	env, err := s.environment(ctx)
	if err == nil {
		call.Env = env
		result, err = t.Run(ctx, call)
	}
	if err != nil {
		return tool.Fail(fmt.Sprintf("The tool %s did not finish: %v", t.Spec().Name, err))
	}
	if err := errors.Join(event.CheckJSON(result.Contents), event.CheckJSON(result.Binary)); err != nil {
		return tool.Fail(fmt.Sprintf("The tool %s ran, but its result cannot be used: %v", t.Spec().Name, err))
	}
	return result
}

// finishCall records the result of a call. The result of a call that was stopped is
// dropped: either its outcome is recorded already, or the next engine recovers the
// call.
func (s *Session) finishCall(ctx context.Context, c *turn.Call, result tool.Result) {
	stopped := ctx.Err() != nil
	s.post(func(tx *txn) error {
		id := c.Request.ToolCallID
		if stopped || tx.s.calls.running[id] == nil || c.Stage != turn.Begun {
			return nil
		}
		delete(tx.s.calls.running, id)
		if result.Review != nil {
			delete(tx.s.calls.fresh, id) // after the answer the call is begun again
		}
		if result.Task {
			tx.send(event.Empty(event.TasksChanged))
		}
		return tx.recordOutcome(turn.Finish(tx.State, c, result)...)
	})
}

// A running call is a call whose tool runs in this process.
type running struct {
	key    string
	cancel context.CancelFunc
	done   <-chan struct{} // closed when the tool has returned
}

// calls is the activity of making the model's calls.
type calls struct {
	running map[string]*running        // the calls under way, by id
	stopped map[string]<-chan struct{} // the calls that were stopped, by key, until they are over
	fresh   map[string]bool            // the ids of the calls that this process has begun
	// unfinished counts the calls whose tools have not returned yet. A call that was
	// stopped may take a moment.
	unfinished sync.WaitGroup
}

func (c *calls) add(id string, r *running) {
	if c.running == nil {
		c.running = make(map[string]*running)
	}
	c.running[id] = r
}

// markFresh remembers that this process has begun a call.
func (c *calls) markFresh(id string) {
	if c.fresh == nil {
		c.fresh = make(map[string]bool)
	}
	c.fresh[id] = true
}

func (c *calls) busy() bool { return len(c.running) > 0 }

func (c *calls) stop(error) {
	for _, r := range c.giveUp() {
		r.cancel()
	}
}

// abort stops the tools when the abort is stored: what a tool does about its end is stored,
// too, for instance the abort of an agent, and must not be all that is left if the engine is
// killed.
func (c *calls) abort(tx *txn, _ event.AbortData) error {
	for _, r := range c.giveUp() {
		tx.afterCommit, tx.onFailure = append(tx.afterCommit, r.cancel), append(tx.onFailure, r.cancel)
	}
	return nil
}

// tools returns what is closed when the tools under way have returned, also those of calls
// that were stopped before.
func (c *calls) tools() (list []<-chan struct{}) {
	for _, r := range c.running {
		list = append(list, r.done)
	}
	for _, done := range c.stopped {
		list = append(list, done)
	}
	return list
}

// giveUp returns the calls that are under way, whose results are not wanted any more.
func (c *calls) giveUp() (list []*running) {
	for id, r := range c.running {
		delete(c.running, id)
		c.addStopped(r)
		list = append(list, r)
	}
	return list
}

// addStopped remembers a call that was stopped, for whoever has to wait until its
// tool returns.
func (c *calls) addStopped(r *running) {
	for key, done := range c.stopped {
		select {
		case <-done:
			delete(c.stopped, key)
		default:
		}
	}
	if c.stopped == nil {
		c.stopped = make(map[string]<-chan struct{})
	}
	c.stopped[r.key] = r.done
}
