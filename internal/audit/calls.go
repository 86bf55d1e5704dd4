package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/audit/stored"
)

// calls decides I2: every call has exactly one terminal record, goes its way once,
// and what must not be repeated is not begun again. Steps belong to it, because a
// call belongs to a step.
type calls struct {
	keys uses // keys with which calls were begun
}

func newCalls() *calls { return &calls{newUses()} }

// replayed are the built-in tools that may be begun again after a crash: they have
// no effect, or none a second time under the same key. Of other tools that is not
// recorded.
var replayed = []string{
	"bash", "exec", "read_bash", "write_bash", "stop_bash", "list_bash", "wait", "view", "create", "edit", "grep", "glob",
	"task", "skill", "memory_search", "task_create", "task_update", "task_list",
}

func (r *calls) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "assistant.turn_start":
		r.stepStarted(s, e, b)
	case "assistant.message", "assistant.unfinished":
		r.stepAnswered(s, e, b)
	case "assistant.turn_end":
		r.stepEnded(s, e)
	case "tool.execution_start":
		r.started(s, e, b)
	case "tool.execution_begun":
		r.begun(s, e, b)
	case "tool.execution_complete":
		r.completed(s, e, b)
	case "session.idle":
		if s.turn != nil && s.turn.open && s.turn.answered && !b.Aborted {
			s.broken("step.left-open", e.Seq, "event %d says that nothing is left to do, and the step that was answered is open", e.Seq)
		}
	case "user.message", "system.notification":
		if s.turn != nil && s.turn.open && s.turn.interaction != b.InteractionID {
			s.broken("step.left-open", e.Seq, "event %d opens another turn while a step of the last one is open", e.Seq)
		}
	}
	r.belongs(s, e, b)
	switch e.Type {
	case "abort", "session.idle", "turn.ended", "history.hidden":
		r.turnOver(s, e)
	case "session.error":
		if b.EndsTurn {
			r.turnOver(s, e)
		}
	}
}

// stepStarted looks at a model request.
func (r *calls) stepStarted(s *scene, e *stored.Event, b *body) {
	t := s.turn
	switch {
	case t == nil && s.aborted: // the turn was stopped: the rules of I8 report it
	case t == nil:
		s.broken("step.outside", e.Seq, "event %d asks the model, and no turn is under way", e.Seq)
	case t.interaction != b.InteractionID:
		s.broken("step.interaction", e.Seq, "event %d asks the model for the turn %s, and %s is under way", e.Seq, b.InteractionID, t.interaction)
	case t.open:
		s.broken("step.open", e.Seq, "event %d starts a step while the last one is open", e.Seq)
	case t.unanswered:
		s.broken("step.unanswered", e.Seq, "event %d starts a step, and the last one has ended without an answer", e.Seq)
	case b.TurnID != strconv.Itoa(t.next):
		s.broken("step.number", e.Seq, "event %d starts step %s of the turn; %d is next", e.Seq, b.TurnID, t.next)
	}
}

func (r *calls) stepAnswered(s *scene, e *stored.Event, b *body) {
	switch t := s.turn; {
	case t == nil && s.aborted:
	case t == nil || !t.open:
		s.broken("answer.unasked", e.Seq, "event %d is an answer of the model, and nobody has asked it", e.Seq)
	case t.answered:
		s.broken("answer.twice", e.Seq, "event %d answers a step that was answered", e.Seq)
	}
	seen := make(map[string]bool)
	for _, request := range b.ToolRequests {
		if seen[request.ToolCallID] {
			s.broken("call.requested-twice", e.Seq, "event %d requests the call %s twice", e.Seq, request.ToolCallID)
		}
		seen[request.ToolCallID] = true
	}
}

func (r *calls) stepEnded(s *scene, e *stored.Event) {
	if s.turn == nil || !s.turn.open {
		s.broken("step.unstarted", e.Seq, "event %d ends a step, and none is open", e.Seq)
		return
	}
	for _, c := range openCalls(s.turn.calls) {
		s.broken("step.unfinished", e.Seq, "event %d ends a step in which the call %s of %s has no terminal record", e.Seq, c.id, c.name)
	}
}

// belongs compares what an event says of its turn and its step with those that are open. Older
// versions do not say it everywhere.
func (r *calls) belongs(s *scene, e *stored.Event, b *body) {
	t := s.turn
	if t == nil || !t.open {
		return
	}
	switch e.Type {
	case "tool.execution_start", "tool.execution_complete":
		if t.calls[b.ToolCallID] == nil {
			return // other rules tell what it is
		}
	case "assistant.message", "assistant.unfinished", "assistant.turn_end":
	default:
		return
	}
	if b.TurnID != "" && b.TurnID != strconv.Itoa(t.next-1) {
		s.broken("step.other", e.Seq, "event %d (%s) says that it belongs to step %s of the turn; step %d is open", e.Seq, e.Type, b.TurnID, t.next-1)
	}
	if b.InteractionID != "" && b.InteractionID != t.interaction {
		s.broken("step.other", e.Seq, "event %d (%s) says that it belongs to the turn %s; %s is under way", e.Seq, e.Type, b.InteractionID, t.interaction)
	}
}

// turnOver looks for calls that nothing will ever finish.
func (r *calls) turnOver(s *scene, e *stored.Event) {
	for _, c := range openCalls(s.calls()) {
		if c.question == "" { // a call with an open question is a matter of I3
			s.broken("call.left-open", e.Seq, "event %d (%s) ends the turn, and the call %s of %s, requested by event %d, has no terminal record", e.Seq, e.Type, c.id, c.name, c.requested)
		}
	}
}

// openCalls are the calls without a terminal record, in a fixed order.
func openCalls(list map[string]*call) (open []*call) {
	for _, c := range list {
		if c.done == 0 {
			open = append(open, c)
		}
	}
	slices.SortFunc(open, func(a, b *call) int { return int(a.requested - b.requested) })
	return open
}

func (r *calls) started(s *scene, e *stored.Event, b *body) {
	c := s.expectCall(e, b, "intends", "call.unrequested", "call.started-late")
	switch {
	case c == nil:
	case c.started != 0:
		s.broken("call.started-twice", e.Seq, "event %d intends the call %s, which event %d has intended", e.Seq, c.id, c.started)
	case c.name != b.ToolName:
		s.broken("call.name", e.Seq, "event %d intends the call %s of %s; the model requested %s", e.Seq, c.id, b.ToolName, c.name)
	case !c.has(b.Arguments):
		s.broken("call.arguments", e.Seq, "event %d intends the call %s of %s with other arguments than the model has asked for", e.Seq, c.id, c.name)
	}
}

func (r *calls) begun(s *scene, e *stored.Event, b *body) {
	c := s.expectCall(e, b, "begins", "begun.unrequested", "begun.finished")
	switch {
	case c == nil:
	case c.started == 0:
		s.broken("begun.unintended", e.Seq, "event %d begins the call %s, which was never intended", e.Seq, c.id)
	case b.Attempt != c.attempt+1:
		s.broken("begun.attempt", e.Seq, "event %d is attempt %d at the call %s, and the last was %d", e.Seq, b.Attempt, c.id, c.attempt)
	case c.attempt > 0 && b.Key != c.key:
		s.broken("begun.key-changed", e.Seq, "event %d begins the call %s again with the key %s; it was begun with %s", e.Seq, c.id, b.Key, c.key)
	case b.Key == "":
		s.broken("begun.key-empty", e.Seq, "event %d begins the call %s without a key", e.Seq, c.id)
	case c.attempt > 0:
		r.again(s, e, c)
	default:
		r.first(s, e, b, c)
	}
}

// first looks at a key that must be new.
func (r *calls) first(s *scene, e *stored.Event, b *body, c *call) {
	if at := r.keys.add(b.Key, e.Seq); at != 0 {
		s.broken("begun.key-reused", e.Seq, "event %d begins the call %s with the key %s, with which event %d has begun another call", e.Seq, c.id, b.Key, at)
	}
}

// again looks at an attempt after a crash.
func (r *calls) again(s *scene, e *stored.Event, c *call) {
	switch {
	case slices.Contains(s.options.Once, c.name), c.replay == "once":
		s.broken("begun.once-again", e.Seq, "event %d begins the call %s of %s again, which is only to be made once", e.Seq, c.id, c.name)
	case c.replay == "keyed", c.replay == "pure":
	case !slices.Contains(replayed, c.name) && !slices.Contains(s.options.Again, c.name):
		s.unknown("begun.class-unrecorded", e.Seq, "event %d begins the call %s of %s again; whether that tool may be repeated is not recorded", e.Seq, c.id, c.name)
	}
}

func (r *calls) completed(s *scene, e *stored.Event, b *body) {
	c := s.expectCall(e, b, "finishes", "complete.unrequested", "complete.twice")
	switch {
	case c == nil:
	case c.started == 0 && errorCode(b.Error) != "interrupted":
		s.broken("complete.unintended", e.Seq, "event %d finishes the call %s, which was never intended", e.Seq, c.id)
	case b.Success && !isObject(b.Result):
		s.broken("complete.empty", e.Seq, "event %d says that the call %s succeeded, and has no result", e.Seq, c.id)
	case !b.Success && !isObject(b.Error):
		s.broken("complete.unexplained", e.Seq, "event %d says that the call %s failed, and not why", e.Seq, c.id)
	case b.Success && c.begun == 0 && slices.Contains(replayed, c.name) && !slices.Contains(instant, c.name):
		s.broken("complete.unbegun", e.Seq, "event %d says that the call %s of %s succeeded, which was never begun", e.Seq, c.id, c.name)
	}
}

// instant are those of replayed that are finished in the append that permits them.
var instant = []string{"task_create", "task_update", "task_list"}

// has reports whether arguments are those of the call, as the model has asked for them or as
// hooks have changed them.
func (c *call) has(arguments json.RawMessage) bool {
	return sameJSON(arguments, c.asks) || sameJSON(arguments, c.arguments)
}

// sameJSON reports whether two values are the same, however they are written. No value is the
// same as null.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var first, second any
	if len(a) > 0 && json.Unmarshal(a, &first) != nil || len(b) > 0 && json.Unmarshal(b, &second) != nil {
		return false
	}
	return reflect.DeepEqual(first, second)
}

// runs reports whether a successful call of the tool has run a command.
func runs(tool string) bool { return tool == "bash" || tool == "exec" }

// end looks for calls of a parent that a fork has not closed.
func (r *calls) end(s *scene) {
	for _, c := range openCalls(s.left) {
		s.broken("fork.call-open", s.session.Shared+1, "the fork shares the call %s of %s, requested by event %d, and never closes it", c.id, c.name, c.requested)
	}
}
