// Package turn is the loop of an agent: decide from the log, do, record.
//
// [State] is what a session's log says, and nothing else: folding the same
// events gives the same state, in any process. [Next] decides from it what
// comes next, and is pure. Whoever carries a step out records it before the next
// one is chosen, so that going on after a crash is the same as going on.
//
// A call goes intended → permitted → begun → finished. It is begun only after
// that was stored, and it has exactly one terminal record.
package turn

import (
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
)

// A State is what the log says of a session: one part for each feature.
type State struct {
	Position
	About      About
	Setup      Setup
	Prompt     Prompt
	Permission Permission
	Queue      Queue
	Life       Life
	Hooks      Hooks
	Exchanges  Exchanges // what clients were asked beside the model's calls
	Tasks      Tasks
	Context    Context
	Skills     Skills
	Rewind     Rewind
	Keys       Keys

	Turn    *Turn              // nil between turns
	History transcript.History // what the model sees
	Memory  Memory             // how far the session was remembered
	todos   todos              // what the model has written down to be done
}

// New returns the state before the first event.
func New(id event.SessionID) *State {
	return &State{Position: Position{ID: id}, Life: Life{Idle: true}}
}

// Active reports whether there is anything left to do.
func (s *State) Active() bool {
	return s.Turn != nil || len(s.Queue.Inputs) > 0 || !s.Life.Idle || len(s.Rewind.Restore) > 0
}

// Load folds a stored log. The state is the one that folding every event gives,
// but most of what happened before the session was last idle is never decoded.
// Two rules make that so, and whoever changes the fold has to keep them:
//
//   - What only some kinds of events change (see lasts) depends on nothing else.
//   - Everything else is cleared when the session is idle (see rest).
func (s *State) Load(events []event.Event) error {
	before, rest := cutAtIdle(events)
	for _, e := range before {
		s.count(e)
		if s.lasts(e) {
			if err := s.fold(e); err != nil {
				return err
			}
		}
	}
	if err := s.loadKeys(before); err != nil {
		return err
	}
	for _, e := range rest {
		s.count(e)
		if err := s.take(e); err != nil {
			return err
		}
	}
	s.History.Load(events)
	if err := s.measured(events); err != nil {
		return err
	}
	return s.lastShown(events)
}

// cutAtIdle cuts a log in two. The second part begins with the last session.idle,
// or is the whole log if there is none.
func cutAtIdle(events []event.Event) (before, rest []event.Event) {
	for i, e := range slices.Backward(events) {
		if e.Type == event.SessionIdle {
			return events[:i], events[i:]
		}
	}
	return nil, events
}

// lasts reports whether an event changes what an idle session still knows. A
// message does so only as long as the session has no summary, or as a skill waits
// to be told.
func (s *State) lasts(e event.Event) bool {
	return e.Kind().Lasting || (e.Type == event.UserMessage && (s.About.Summary == "" || len(s.Skills.waiting) > 0))
}

// Apply takes in the next event.
func (s *State) Apply(e event.Event) error {
	s.count(e)
	s.History.Add(e)
	return s.take(e)
}

func (s *State) take(e event.Event) error {
	if e.Kind().Listed() {
		head, err := e.Head()
		if err != nil {
			return err
		}
		s.Parent = head.ID
	}
	if err := s.foldKey(e); err != nil {
		return err
	}
	return s.fold(e)
}

// fold is the meaning of every event.
func (s *State) fold(e event.Event) error {
	switch e.Type {
	case event.SessionStart:
		return with(e, func(d event.SessionStartData) {
			s.About.Started, _ = time.Parse(time.RFC3339, d.StartTime)
			s.Setup.Model, s.Life.Entry = d.SelectedModel, "new"
		})
	case event.SessionConfigured:
		s.Setup.Offered++
		return with(e, func(d event.SessionConfiguredData) { s.Setup.Config = d })
	case event.ClientDeclared:
		s.Setup.Offered++
		return with(e, func(d event.ClientDeclaredData) { s.Setup.Declared = d })
	case event.ToolsDeclared:
		s.Setup.Offered++
		return with(e, func(d event.ToolsDeclaredData) { s.Setup.Tools = d.Tools })
	case event.SessionNamed:
		return with(e, func(d event.SessionNamedData) { s.About.Name, s.About.AutoNamed = d.Name, d.Auto })
	case event.ModeChanged:
		return with(e, func(d event.ModeChangedData) {
			s.Setup.mode = d.NewMode
			if s.Turn != nil {
				s.Turn.Mode = ""
			}
		})
	case event.SessionModelChange:
		s.Context.Gate.Reset()
		return with(e, func(d event.SessionModelChangeData) {
			s.Setup.Model, s.Context.Switched = d.NewModel, d.PreviousModel != ""
		})
	case event.CompactionStart, event.CompactionComplete, event.ContextEpoch:
		return s.foldContext(e)
	case event.InstructionsLoaded:
		return with(e, func(d event.InstructionsLoadedData) { s.Prompt.Loaded = d.Text })
	case event.SystemMessage:
		return with(e, func(d event.SystemMessageData) {
			if d.EpochID != "" {
				return // what a compaction tells is not the prompt
			}
			s.Prompt.System, s.Prompt.Context = d.Content, d.Context
			if s.Turn != nil {
				s.Turn.Words = spoken(s.Turn.Words, SourceSessionStart)
			}
		})
	case event.InputAccepted:
		return with(e, s.inputAccepted)
	case event.UserMessage:
		return with(e, s.userMessage)
	case event.SessionIdle:
		return with(e, s.rest)
	case event.SessionForked:
		s.Turn, s.Queue.Inputs, s.Life.Idle, s.Rewind.Restore = nil, nil, true, nil
		s.Tasks.Open, s.Tasks.Reports = nil, nil // the parent's
		s.Hooks.Open, s.Hooks.Inputs, s.Life.Entry, s.Life.Last = nil, nil, "", nil
		s.Exchanges, s.Queue.Paused, s.Queue.Halted, s.Life.Suspended = Exchanges{}, false, false, false
	case event.SessionResume:
		s.Life.Entry = "resume"
		return nil
	case event.HookStart:
		return with(e, s.hookStarted)
	case event.HookEnd:
		return with(e, s.hookEnded)
	case event.HistoryHidden:
		s.forgetTurn()
		s.Skills.told, s.Skills.waiting = nil, nil // what the model was told may be among it
		s.outdate()
		s.Turn, s.Life.Idle, s.Life.Suspended = nil, true, false
		return with(e, func(d event.HistoryHiddenData) {
			if d.Files {
				s.Rewind.Restore = append(s.Rewind.Restore, d)
			}
			s.todos.hide(e.Seq, d)
			s.Rewind.Hidden = append(slices.Clip(s.Rewind.Hidden), d)
		})
	case event.TaskStarted:
		return with(e, func(d event.TaskStartedData) { s.Tasks.Open = append(s.Tasks.Open, Task{Key: d.Key}) })
	case event.TaskReported:
		return with(e, func(d event.TaskReportedData) { s.reported(e.Seq, d) })
	case event.MemoryExtracted, event.MemoryConsolidated, event.MemoryRecalled:
		return s.foldMemory(e)
	case event.TodoChanged:
		return with(e, func(d event.TodoChangedData) { s.todos.changed(e.Seq, d) })
	case event.SystemNotification:
		return with(e, s.notified)
	case event.FilesRestored:
		s.Rewind.Restore = s.Rewind.Restore[min(1, len(s.Rewind.Restore)):]
	case event.SessionError:
		return with(e, func(d event.SessionErrorData) {
			if d.EndsTurn {
				s.over(EndError, d.Message)
			}
		})
	case event.Abort:
		return with(e, s.aborted)
	case event.TurnEnded:
		s.over(EndAbort, "")
	default:
		if err := s.foldExchange(e); err != nil {
			return err
		}
	}
	if s.Turn == nil {
		return s.between(e)
	}
	return s.foldTurn(e)
}

// with decodes an event's body and hands it on.
func with[T any](e event.Event, use func(T)) error {
	d, err := event.As[T](e)
	if err == nil {
		use(d)
	}
	return err
}
