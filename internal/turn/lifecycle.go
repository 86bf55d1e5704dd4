package turn

import "github.com/abide-run/abide/internal/event"

// A moment is a point in the life of a session at which several parts change
// together.
type moment int

// The moments of a session's life.
const (
	opened  moment = iota // a turn begins
	over                  // the turn ends, for whatever reason
	idle                  // all work is done
	aborted               // the work was stopped from outside; the turn is over already
	hidden                // a part of the log was taken back
	forked                // the session begins as a copy of another one
	moments               // the number of moments
)

// A change is what a moment does to one part. It assigns no other part.
type change func(s *State, e event.Event, body event.Payload)

// keeps is the change of a part that the moment does not concern.
func keeps(*State, event.Event, event.Payload) {}

// A row says what each moment does to one part, in the order of the moments.
type row struct {
	part    string // the name of the field of State
	changes [moments]change
}

// lifecycle is what the moments of a session's life do to the parts of its state:
// one row for each part, one column for each moment. The rows are run from the top
// to the bottom: Life comes before Turn, because it keeps how the turn ended.
//
// A part that events other than the lasting ones change has to be cleared when the
// session is idle, even if there should be nothing to clear: what Load has skipped
// must not make a difference.
var lifecycle = []row{
	// part, {opened, over, idle, aborted, hidden, forked}
	{"Position", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"About", [moments]change{countTurn, keeps, setTotals, keeps, keeps, keeps}},
	{"Setup", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"Prompt", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"Permission", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"Queue", [moments]change{keeps, keeps, dropInputs, abortQueue, keeps, clearQueue}},
	{"Life", [moments]change{dropEnding, keepEnding, restLife, abortLife, rewindLife, forkLife}},
	{"Hooks", [moments]change{dropTurnHooks, dropTurnHooks, clearHooks, abortHooks, dropTurnHooks, clearHooks}},
	{"Exchanges", [moments]change{keeps, keeps, keeps, keeps, keeps, clearExchanges}},
	{"Budget", [moments]change{allowAsking, keeps, allowAsking, allowAsking, keeps, forkBudget}},
	{"Tasks", [moments]change{keeps, keeps, keeps, keeps, keeps, clearTasks}},
	{"Context", [moments]change{resetCompactions, keeps, restContext, keeps, outdateContext, forgetRequests}},
	{"Skills", [moments]change{keeps, keeps, keeps, keeps, forgetSkills, keeps}},
	{"MCP", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"Rewind", [moments]change{keeps, keeps, keeps, keeps, addRewind, dropRestores}},
	{"Keys", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}},
	{"Turn", [moments]change{beginTurn, endTurn, endTurn, keeps, endTurn, endTurn}},
	{"History", [moments]change{keeps, keeps, keeps, keeps, keeps, keeps}}, // it reads the log itself
	{"Memory", [moments]change{keeps, keeps, keeps, keeps, noteRewind, dropFindings}},
	{"todos", [moments]change{keeps, keeps, keeps, keeps, hideTodos, keeps}},
}

// pass runs one column of the table.
func (s *State) pass(m moment, e event.Event, body event.Payload) {
	for _, r := range lifecycle {
		r.changes[m](s, e, body)
	}
}

// foldMoments finds the moments that an event stands for, and passes them.
func (s *State) foldMoments(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.UserMessageData, event.SystemNotificationData:
		if s.Turn == nil {
			s.pass(opened, e, body)
		}
	case event.AssistantTurnEndData:
		if s.Turn.ends() {
			s.pass(over, e, body)
		}
	case event.SessionErrorData:
		if d.EndsTurn {
			s.pass(over, e, body)
		}
	case event.TurnEndedData:
		s.pass(over, e, body)
	case event.AbortData:
		s.pass(over, e, body)
		s.pass(aborted, e, body)
	case event.SessionIdleData:
		s.pass(idle, e, body)
	case event.HistoryHiddenData:
		s.pass(hidden, e, body)
	case event.SessionForkedData:
		s.pass(forked, e, body)
	}
}

func countTurn(s *State, _ event.Event, _ event.Payload) { s.About.Totals.Turns++ }

func setTotals(s *State, _ event.Event, body event.Payload) {
	s.About.Totals = body.(event.SessionIdleData).Totals
}

func dropInputs(s *State, _ event.Event, _ event.Payload) {
	s.Queue.Inputs, s.Queue.Halted, s.Queue.Held = nil, false, false
}

func abortQueue(s *State, _ event.Event, body event.Payload) {
	d := body.(event.AbortData)
	if s.Queue.Halted = false; !d.KeepQueue {
		s.Queue.Inputs = nil
	}
	s.Queue.Held = d.Hold && len(s.Queue.Inputs) > 0
}

func clearQueue(s *State, _ event.Event, _ event.Payload) { s.Queue = Queue{} }

func dropEnding(s *State, _ event.Event, _ event.Payload) { s.Life.Last = nil }

func keepEnding(s *State, _ event.Event, body event.Payload) { s.Life.Last = endingOf(s.Turn, body) }

func restLife(s *State, _ event.Event, body event.Payload) {
	s.Life = Life{Idle: true, Aborted: body.(event.SessionIdleData).Aborted}
}

func abortLife(s *State, _ event.Event, _ event.Payload) {
	s.Life.Aborted, s.Life.Suspended = true, false
}

func rewindLife(s *State, _ event.Event, _ event.Payload) {
	s.Life.Idle, s.Life.Suspended, s.Life.Last = true, false, nil
}

func forkLife(s *State, _ event.Event, _ event.Payload) {
	s.Life = Life{Idle: true, Aborted: s.Life.Aborted}
}

func dropTurnHooks(s *State, _ event.Event, _ event.Payload) { s.Hooks.dropTurn() }

func clearHooks(s *State, _ event.Event, _ event.Payload) { s.Hooks = Hooks{} }

func abortHooks(s *State, _ event.Event, body event.Payload) {
	if !body.(event.AbortData).KeepQueue {
		s.Hooks = Hooks{}
	}
}

func clearExchanges(s *State, _ event.Event, _ event.Payload) { s.Exchanges = Exchanges{} }

// allowAsking lets the next request ask again whether to go on.
func allowAsking(s *State, _ event.Event, _ event.Payload) { s.Budget.Refused = false }

// forkBudget leaves the question of the parent, and what was agreed to, to the parent: what
// it has spent is counted with it.
func forkBudget(s *State, _ event.Event, _ event.Payload) { s.Budget = Budget{rules: s.Budget.rules} }

func clearTasks(s *State, _ event.Event, _ event.Payload) { s.Tasks = Tasks{} }

func resetCompactions(s *State, _ event.Event, _ event.Payload) {
	s.Context.Compactions, s.Context.Full = 0, ""
}

func restContext(s *State, _ event.Event, _ event.Payload) {
	s.Context.Switched, s.Context.Compactions, s.Context.Full = false, 0, ""
	s.Context.Gate.Reset()
}

func outdateContext(s *State, _ event.Event, _ event.Payload) { s.Context.outdate() }

// forgetRequests leaves the requests of the parent's clients to the parent.
func forgetRequests(s *State, _ event.Event, _ event.Payload) {
	s.Context.Broken, s.Context.Handoffs = nil, nil
}

// forgetSkills forgets which skills the model was told: they may be in what was
// taken back.
func forgetSkills(s *State, _ event.Event, _ event.Payload) {
	s.Skills.told, s.Skills.waiting = nil, nil
}

func addRewind(s *State, _ event.Event, body event.Payload) {
	s.Rewind.add(body.(event.HistoryHiddenData))
}

// dropRestores leaves the files of the parent to the parent.
func dropRestores(s *State, _ event.Event, _ event.Payload) { s.Rewind.Restore = nil }

// beginTurn begins the turn that a message or a notification opens.
func beginTurn(s *State, _ event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.UserMessageData:
		s.Turn = &Turn{InteractionID: d.InteractionID, Prompt: d.Content}
	case event.SystemNotificationData:
		s.Turn = &Turn{InteractionID: d.InteractionID}
	}
}

func endTurn(s *State, _ event.Event, _ event.Payload) { s.Turn = nil }

func noteRewind(s *State, e event.Event, _ event.Payload) { s.Memory.Hidden = e.Seq }

// dropFindings leaves to the parent what was found in its log and is not in the
// pages of memory yet.
func dropFindings(s *State, _ event.Event, _ event.Payload) {
	s.Memory.Waiting, s.Memory.Aside = 0, nil
}

func hideTodos(s *State, e event.Event, body event.Payload) {
	s.todos.hide(e.Seq, body.(event.HistoryHiddenData))
}

// reopenTurn lets the turn that has just ended go on: a hook did not let it end.
func (s *State) reopenTurn(t Turn) { s.Turn, s.Life.Last = &t, nil }
