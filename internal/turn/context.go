package turn

import (
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window"
)

// Context is how full the model's window is, and what is done about it.
type Context struct {
	Compaction *Compaction // the compaction that was begun and has not ended
	Epochs     int         // number of epochs that were opened, hidden ones included
	Gate       window.Gate // keeps thresholds from firing for nothing
	Measured   Measured
	Switched   bool // the model was changed and has not answered yet
}

// A Compaction is one that was begun and has not ended. It does not go on after a
// crash: the old epoch is still current, and whether another one is needed is
// decided anew.
type Compaction struct {
	event.CompactionStartData
	Stale bool // the history that it is about has changed
}

// Waited reports whether the turn waits for it.
func (c *Compaction) Waited() bool { return c.Point != event.PointBackground }

// Measured is what a provider has counted last.
type Measured struct {
	event.Anchor
	Stale bool // what it counted is no longer what the model sees
}

// maxCompactions is how often the model's context is compacted for one request.
const maxCompactions = 3

// ErrorOverflow is the type of the session.error of a turn whose next request
// does not fit.
const ErrorOverflow = "context_overflow"

type (
	// Compact: the older part of the conversation is to be summarised.
	Compact struct {
		Point   string
		Verdict window.Verdict
	}
	// Interrupted: a compaction was begun by a runtime that is no more.
	Interrupted struct{}
)

func (Compact) step()     {}
func (Interrupted) step() {}

// foldContext is the meaning of the events about what the model sees.
func (s *State) foldContext(e event.Event) error {
	switch e.Type {
	case event.CompactionStart:
		return with(e, s.compactionStarted)
	case event.CompactionComplete:
		head, err := e.Head()
		if err != nil {
			return err
		}
		return with(e, func(d event.CompactionCompleteData) { s.compactionEnded(d, head.Time) })
	case event.ContextEpoch:
		s.Context.Measured.outdate()
		return with(e, func(d event.ContextEpochData) {
			s.Context.Epochs = max(s.Context.Epochs, d.Number)
			if d.Kind == event.EpochUndo {
				s.Context.Gate.Settled(d.Tokens)
			}
		})
	}
	return nil
}

func (s *State) compactionStarted(d event.CompactionStartData) {
	s.Context.Compaction = &Compaction{CompactionStartData: d}
	if d.Trigger == event.TriggerManual {
		s.Context.Gate.Reset()
	}
	if s.Turn != nil && s.Context.Compaction.Waited() {
		s.Turn.Compactions++
	}
}

func (s *State) compactionEnded(d event.CompactionCompleteData, at time.Time) {
	open := s.Context.Compaction
	s.Context.Compaction = nil
	switch {
	case d.Cause == event.CauseInterrupted, d.Cause == event.CauseStale:
		if open != nil && s.Turn != nil && open.Waited() {
			s.Turn.Compactions-- // it says nothing about whether the next one helps
		}
		return
	case d.Outcome == event.OutcomeDone:
		s.Context.Gate.Settled(d.PostTokens)
	case d.Outcome == event.OutcomeSkipped:
		s.Context.Gate.Skipped(d.PreTokens, d.ConversationTokens)
	default:
		s.Context.Gate.Failed(d.PreTokens, at)
	}
	if s.Turn != nil {
		if s.Turn.Full = ""; d.Must && d.Outcome != event.OutcomeDone {
			s.Turn.Full = d.Error
		}
	}
}

// outdate takes in that the history has changed.
func (s *State) outdate() {
	s.Context.Measured.outdate()
	if s.Context.Compaction != nil {
		s.Context.Compaction.Stale = true
	}
}

func (m *Measured) outdate() { m.Stale = m.Counted > 0 }

// used takes in what an answer took.
func (s *State) used(d event.AssistantUsageData) {
	s.About.Totals.Add(d)
	s.anchored(d)
}

func (s *State) anchored(d event.AssistantUsageData) {
	if d.Anchor != nil {
		s.Context.Measured = Measured{Anchor: *d.Anchor}
	}
}

// measured finds what a provider has counted last. The rest of a log need not be
// decoded for that.
func (s *State) measured(events []event.Event) error {
	s.Context.Measured = Measured{}
	stale := false
	for i := len(events) - 1; i >= 0; i-- {
		switch events[i].Type {
		case event.ContextEpoch, event.HistoryHidden:
			stale = true
		case event.AssistantUsage:
			d, err := event.As[event.AssistantUsageData](events[i])
			if err != nil {
				return err
			}
			if d.Anchor != nil {
				if s.Context.Measured.Anchor = *d.Anchor; stale {
					s.Context.Measured.outdate()
				}
				return nil
			}
		}
	}
	return nil
}

// EpochID returns the id of the current epoch; empty for the first.
func (s *State) EpochID() string {
	d, _ := s.History.Epoch()
	return d.EpochID
}

// fitting is what comes before a request: it has to fit the model's window.
func fitting(s *State, now Now, request Step) Step {
	if now.Room == nil {
		return request
	}
	v := now.Room()
	switch {
	case v.Action == window.Go:
		return request
	case v.Action == window.Prepare:
		if s.Context.Compaction != nil {
			return request
		}
		return Compact{event.PointBackground, v}
	case s.Context.Compaction != nil:
		return Wait{}
	case v.Action == window.Must && s.Turn.Full != "":
		return GiveUp{ErrorOverflow, s.Turn.Full}
	case !s.Turn.Spent():
		return Compact{point(s.Turn), v}
	case v.Action == window.Must:
		return GiveUp{ErrorOverflow, "The conversation does not fit the model's window, although it was compacted several times. Choose a model with a larger window, or begin a new session."}
	}
	return request
}

// Spent reports whether the next request has waited for as many compactions as it
// may.
func (t *Turn) Spent() bool { return t.Compactions >= maxCompactions }

// At is where a turn stands between its requests.
func (t *Turn) At() window.Point {
	if t.Step == 0 {
		return window.BeforeRun
	}
	return window.BetweenRequests
}

func point(t *Turn) string {
	if t.At() == window.BeforeRun {
		return event.PointBeforeRun
	}
	return event.PointBetween
}
