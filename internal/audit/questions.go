package audit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/audit/stored"
)

// questions decides I3: every question is asked once, closed at most once, and open
// only while somebody waits for the answer.
type questions struct {
	asked uses            // ids of all questions
	hooks map[string]hook // open questions to hooks

	budgets map[string]json.RawMessage // limits that the open questions about budgets offer, by the ids of these questions
	agreed  *agreement                 // the yes to such a question that was just given; nil if there is none
}

// An agreement is a yes to the question whether to go on although a budget is reached.
type agreement struct {
	id     string
	raised json.RawMessage // the limits that the question has offered
}

type hook struct {
	at   int64
	kind string
}

func newQuestions() *questions {
	return &questions{asked: newUses(), hooks: make(map[string]hook), budgets: make(map[string]json.RawMessage)}
}

// ofCalls are the questions about a call; beside are the others.
var (
	ofCalls = []string{"permission", "external_tool", "user_input", "exit_plan_mode"}
	beside  = []string{"elicitation", "command"}
)

func (q *questions) fold(s *scene, e *stored.Event, b *body) {
	family, verb, _ := strings.Cut(e.Type, ".")
	call, other := slices.Contains(ofCalls, family), slices.Contains(beside, family)
	switch {
	case call && verb == "requested":
		q.ask(s, e, b)
		q.aboutCall(s, e, b)
	case other && verb != "completed":
		q.ask(s, e, b)
	case call && verb == "completed":
		q.closeCall(s, e, b)
	case other && verb == "completed":
		q.closeOther(s, e, b)
	case family == "hook":
		q.hook(s, e, b)
	case e.Type == "tool.execution_complete":
		if c := s.call(b.ToolCallID); c != nil && c.question != "" {
			s.broken("question.finished", e.Seq, "event %d finishes the call %s while its question %s is open", e.Seq, c.id, c.question)
		}
	case e.Type == "abort", e.Type == "session.idle", e.Type == "turn.ended", e.Type == "history.hidden":
		q.turnOver(s, e)
	}
	if e.Type == "session.forked" {
		clear(q.hooks)
		clear(q.budgets)
	}
	q.budget(s, e, b)
}

// budget looks at limits that are raised: somebody has agreed to them in the event before, and
// was shown them.
func (q *questions) budget(s *scene, e *stored.Event, b *body) {
	before := q.agreed
	q.agreed = nil
	switch e.Type {
	case "elicitation.requested":
		if b.Budget != nil {
			q.budgets[b.RequestID] = b.Budget.Raised
		}
	case "elicitation.completed":
		if raised, is := q.budgets[b.RequestID]; is && b.Action == "accept" {
			q.agreed = &agreement{b.RequestID, raised}
		}
		delete(q.budgets, b.RequestID)
	case "budget.raised":
		switch {
		case before == nil || before.id != b.RequestID:
			s.broken("budget.unagreed", e.Seq, "event %d raises the budget, and nobody has agreed to that in the question %s", e.Seq, b.RequestID)
		case !bytes.Equal(before.raised, b.Limits):
			s.broken("budget.other", e.Seq, "event %d raises the budget to %s; the question %s has offered %s", e.Seq, b.Limits, b.RequestID, before.raised)
		}
	}
	if before != nil && e.Type != "budget.raised" {
		s.broken("budget.unraised", e.Seq, "event %d follows the yes to the question %s, which has to raise the budget first", e.Seq, before.id)
	}
}

// ask looks at the id of a question.
func (q *questions) ask(s *scene, e *stored.Event, b *body) {
	if at := q.asked.add(b.RequestID, e.Seq); at != 0 {
		s.broken("question.twice", e.Seq, "event %d asks the question %s, which event %d has asked", e.Seq, b.RequestID, at)
	}
}

// aboutCall looks at the call that a question is about.
func (q *questions) aboutCall(s *scene, e *stored.Event, b *body) {
	c := s.expectCall(e, b, "asks about", "question.unrequested", "question.late")
	switch {
	case c == nil:
	case c.started == 0:
		s.broken("question.unintended", e.Seq, "event %d asks about the call %s, which was never intended", e.Seq, c.id)
	case c.question != "":
		s.broken("question.second", e.Seq, "event %d asks about the call %s while its question %s is open", e.Seq, c.id, c.question)
	case e.Type == "external_tool.requested" && b.SessionID != s.session.Name && s.own:
		s.broken("question.session", e.Seq, "event %d asks for a call in the session %q", e.Seq, b.SessionID)
	case e.Type == "external_tool.requested" && (b.ToolName != c.name || !c.has(b.Arguments)):
		s.broken("shown.tool", e.Seq, "event %d has a client make another call than the call %s of %s that the model has requested", e.Seq, c.id, c.name)
	}
}

func (q *questions) closeCall(s *scene, e *stored.Event, b *body) {
	c := s.asking(b.RequestID)
	at := q.asked.last(b.RequestID)
	switch {
	case c == nil && at == 0:
		s.broken("question.unasked", e.Seq, "event %d closes the question %s, which nobody has asked", e.Seq, b.RequestID)
	case c == nil:
		s.broken("question.closed-twice", e.Seq, "event %d closes the question %s of event %d, which is not open any more", e.Seq, b.RequestID, at)
	case family(c.asked) != family(e.Type):
		s.broken("question.kind", e.Seq, "event %d (%s) closes the question %s, which is a %s", e.Seq, e.Type, b.RequestID, c.asked)
	case b.ToolCallID != "" && b.ToolCallID != c.id:
		s.broken("question.call", e.Seq, "event %d closes the question %s for the call %s; it is about %s", e.Seq, b.RequestID, b.ToolCallID, c.id)
	case e.Type == "permission.completed" && !slices.Contains(results, resultKind(b.Result)):
		s.broken("question.result", e.Seq, "event %d closes the question %s with %q, which says neither yes nor no", e.Seq, b.RequestID, resultKind(b.Result))
	}
}

// results are the ways in which a permission can end.
var results = []string{
	"approved", "approved-for-session", "approved-for-location",
	"denied-interactively-by-user", "denied-by-rules", "denied-no-approval-rule-and-could-not-request-from-user", "cancelled",
}

func family(kind string) string { f, _, _ := strings.Cut(kind, "."); return f }

// closeOther looks at the end of a form or a command. A command that the runtime
// carries out itself is asked of nobody.
func (q *questions) closeOther(s *scene, e *stored.Event, b *body) {
	asked, open := s.exchanges[b.RequestID]
	at := q.asked.last(b.RequestID)
	switch {
	case !open && at == 0 && b.InputID != "":
	case !open && at == 0:
		s.broken("exchange.unasked", e.Seq, "event %d (%s) closes %s, which nobody has asked", e.Seq, e.Type, b.RequestID)
	case !open:
		s.broken("exchange.closed-twice", e.Seq, "event %d (%s) closes %s of event %d, which is not open any more", e.Seq, e.Type, b.RequestID, at)
	case family(asked) != family(e.Type):
		s.broken("exchange.kind", e.Seq, "event %d (%s) closes %s, which is a %s", e.Seq, e.Type, b.RequestID, asked)
	}
}

// hook looks at a question to the clients that have hooks.
func (q *questions) hook(s *scene, e *stored.Event, b *body) {
	open, is := q.hooks[b.HookID]
	switch {
	case e.Type == "hook.start" && is:
		s.broken("hook.twice", e.Seq, "event %d asks the hook %s, which event %d has asked", e.Seq, b.HookID, open.at)
	case e.Type == "hook.start":
		q.hooks[b.HookID] = hook{e.Seq, b.HookType}
	case !is:
		s.broken("hook.unasked", e.Seq, "event %d ends the hook %s, which is not open", e.Seq, b.HookID)
	case open.kind != b.HookType:
		s.broken("hook.kind", e.Seq, "event %d ends the hook %s as %s; it was asked as %s", e.Seq, b.HookID, b.HookType, open.kind)
	}
	if e.Type == "hook.end" {
		delete(q.hooks, b.HookID)
	}
}

// turnOver looks for questions that nobody waits for any more.
func (q *questions) turnOver(s *scene, e *stored.Event) {
	for _, c := range openCalls(s.calls()) {
		if c.question != "" {
			s.broken("question.left-open", e.Seq, "event %d (%s) ends the turn, and the question %s about the call %s is open", e.Seq, e.Type, c.question, c.id)
		}
	}
	if e.Type != "session.idle" {
		return
	}
	for id, h := range q.hooks {
		s.broken("hook.left-open", e.Seq, "event %d says that nothing is left to do, and the hook %s of event %d is open", e.Seq, id, h.at)
	}
	clear(q.hooks)
}
