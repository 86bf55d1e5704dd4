package audit

import (
	"maps"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// stopped decides I8: after an abort the turn makes no request and no call, what
// waited is not delivered, and nothing begins until somebody speaks.
type stopped struct {
	at      int64            // the last abort
	dropped map[string]int64 // inputs that it has dropped: where they were accepted
	held    map[string]int64 // inputs that wait until somebody speaks or resumes the session
}

func newStopped() *stopped {
	return &stopped{dropped: make(map[string]int64), held: make(map[string]int64)}
}

func (p *stopped) fold(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "abort":
		p.at = e.Seq
		clear(p.held)
		switch {
		case !b.KeepQueue:
			maps.Copy(p.dropped, s.queue)
		case b.Hold:
			maps.Copy(p.held, s.queue)
		}
	case "input.accepted", "session.resume":
		clear(p.held)
	case "command.execute", "command.queued":
		p.heldInput(s, e, b)
	case "user.message":
		p.heldInput(s, e, b)
		if at := p.dropped[b.InputID]; at != 0 {
			s.broken("stopped.input", e.Seq, "event %d delivers the input of event %d, which the abort of event %d has dropped", e.Seq, at, p.at)
		}
		clear(p.dropped)
	case "session.forked":
		clear(p.dropped)
		clear(p.held)
	}
	if s.turn == nil && s.aborted {
		p.quiet(s, e, b)
	}
	if s.suspended {
		p.resting(s, e)
	}
}

// heldInput looks for an input that is taken out of the queue before it may be.
func (p *stopped) heldInput(s *scene, e *stored.Event, b *body) {
	if at := p.held[b.InputID]; at != 0 {
		s.broken("stopped.input", e.Seq, "event %d takes the input of event %d out of the queue, which the abort of event %d has stopped", e.Seq, at, p.at)
	}
}

// quiet looks at what happens after an abort, before anybody has spoken.
func (p *stopped) quiet(s *scene, e *stored.Event, b *body) {
	switch e.Type {
	case "assistant.turn_start", "assistant.message", "assistant.unfinished", "assistant.usage":
		s.broken("stopped.request", e.Seq, "event %d (%s) is a model request after the abort of event %d, before anybody has spoken", e.Seq, e.Type, p.at)
	case "tool.execution_start", "tool.execution_begun", "external_tool.requested":
		s.broken("stopped.call", e.Seq, "event %d (%s) makes a call after the abort of event %d, before anybody has spoken", e.Seq, e.Type, p.at)
	case "permission.requested", "user_input.requested", "exit_plan_mode.requested":
		s.broken("stopped.question", e.Seq, "event %d (%s) asks about a call after the abort of event %d, before anybody has spoken", e.Seq, e.Type, p.at)
	case "tool.execution_complete":
		if s.call(b.ToolCallID) == nil {
			s.broken("stopped.result", e.Seq, "event %d finishes the call %s after the abort of event %d", e.Seq, b.ToolCallID, p.at)
		}
	case "system.notification":
		s.broken("stopped.notified", e.Seq, "event %d wakes the session after the abort of event %d, before anybody has spoken", e.Seq, p.at)
	}
}

// resting looks at what happens while a session is suspended: what is under way
// may end, and nothing begins.
func (p *stopped) resting(s *scene, e *stored.Event) {
	switch e.Type {
	case "assistant.turn_start", "tool.execution_begun", "external_tool.requested":
		s.broken("suspended.begun", e.Seq, "event %d (%s) begins something while the session is suspended", e.Seq, e.Type)
	}
}

// stopGrace is how long a command may take to end after its turn was stopped.
const stopGrace = time.Minute

// end looks for commands that run on although a person has stopped the turn that
// ran them.
func (p *stopped) end(s *scene) {
	for key, t := range s.tasks {
		if t.stopped.IsZero() || s.options.Now.Sub(t.stopped) < stopGrace {
			continue
		}
		records, ok := s.records()
		if !ok {
			s.unknown("stopped.command", t.started, "whether the command of event %d runs on is recorded in the workspace %s", t.started, s.config.Workspace.label())
			continue
		}
		record, found, err := records.Process(stored.ProcessID(s.session.Name, key))
		if err == nil && found && record.Claim != nil && stored.Alive(*record.Claim) && endOf(record).state == "running" && !endOf(record).stopping {
			s.broken("stopped.command", t.started, "the command of event %d (record %s) runs on, although its turn was stopped", t.started, record.ID)
		}
	}
}
