package turn

import (
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window"
)

// Context is what the log says of how full the model's window is, and of compactions.
type Context struct {
	Compaction *Compaction                  // the compaction that is open; nil if there is none
	Broken     []event.CompactionStartData  // compactions that ended with the engine and that their clients may ask for again, the oldest first
	Handoffs   []event.HandoffRequestedData // summaries for whoever takes over that have not ended, the oldest first
	Epochs     int                          // number of epochs that were opened, hidden ones included
	Gate       window.Gate                  // keeps compactions from following each other too closely
	Measured   Measured
	Switched   bool // the model was changed, and the new one has not answered yet

	Compactions int    // number of compactions that the turn has waited for since its last model request
	Full        string // reason that the turn's next request cannot be made to fit; empty if it can
}

// A Compaction is a compaction that was begun and has not ended. It does not go on
// after a crash: the old epoch is still current, and Next decides anew whether a
// compaction is needed.
type Compaction struct {
	event.CompactionStartData
	Stale bool // the history has changed since the compaction was begun
}

// Waited reports whether the turn waits for the compaction.
func (c *Compaction) Waited() bool { return c.Point != event.PointBackground }

// Measured is the last count of tokens that a provider has returned.
type Measured struct {
	event.Anchor
	Stale bool // the conversation was compacted or rewound since
}

// maxCompactions is how many compactions one request may wait for.
const maxCompactions = 3

// ErrorOverflow is the type of the session.error of a turn whose next request
// does not fit.
const ErrorOverflow = "context_overflow"

type (
	// Measure: find out what the size of the next request asks for.
	Measure struct{}
	// Compact: begin to summarise the older part of the conversation.
	Compact struct {
		Point   string
		Verdict window.Verdict
	}
	// Interrupted: record the end of a compaction that another process has begun.
	Interrupted struct{}
)

func (Measure) step()     {}
func (Compact) step()     {}
func (Interrupted) step() {}

func (c *Context) fold(e event.Event, body event.Payload) error {
	switch d := body.(type) {
	case event.CompactionStartData:
		c.startCompaction(d)
	case event.CompactionCompleteData:
		head, err := e.Head()
		if err != nil {
			return err
		}
		c.endCompaction(d, head.Time)
	case event.HandoffRequestedData:
		c.Handoffs = append(slices.Clip(c.Handoffs), d)
		c.Handoffs = c.Handoffs[max(0, len(c.Handoffs)-maxRecent):]
	case event.HandoffCompletedData:
		c.Handoffs = slices.DeleteFunc(slices.Clone(c.Handoffs), func(h event.HandoffRequestedData) bool { return h.HandoffID == d.HandoffID })
	case event.ContextEpochData:
		c.Measured.outdate()
		c.Epochs = max(c.Epochs, d.Number)
		if d.Kind == event.EpochUndo {
			c.Gate.Settled(d.Tokens)
		}
	case event.SessionModelChangeData:
		c.Gate.Reset()
		c.Switched = d.PreviousModel != ""
	case event.UserMessageData:
		c.Gate.Reset()
	case event.AssistantTurnStartData:
		c.Compactions = 0
	case event.AssistantUsageData:
		if d.Anchor != nil {
			c.Measured = Measured{Anchor: *d.Anchor}
		}
	case event.AssistantMessageData, event.AssistantUnfinishedData:
		c.Switched = false
	}
	return nil
}

// startCompaction takes in that a compaction is begun.
func (c *Context) startCompaction(d event.CompactionStartData) {
	c.Compaction = &Compaction{CompactionStartData: d}
	c.Broken = slices.DeleteFunc(slices.Clone(c.Broken), func(b event.CompactionStartData) bool { return b.Key == d.Key })
	if d.Trigger == event.TriggerManual {
		c.Gate.Reset()
	}
	if c.Compaction.Waited() {
		c.Compactions++
	}
}

// endCompaction takes in how a compaction ended.
func (c *Context) endCompaction(d event.CompactionCompleteData, at time.Time) {
	open := c.Compaction
	c.Compaction = nil
	if open != nil && open.Key != "" && d.Cause == event.CauseInterrupted {
		c.Broken = append(c.Broken, open.CompactionStartData)
		c.Broken = c.Broken[max(0, len(c.Broken)-maxRecent):]
	}
	switch {
	case d.Cause == event.CauseInterrupted, d.Cause == event.CauseStale, d.Cause == event.CauseBudget:
		if open != nil && open.Waited() {
			c.Compactions-- // the next compaction may still help
		}
		return
	case d.Outcome == event.OutcomeDone:
		c.Gate.Settled(d.PostTokens)
	case d.Outcome == event.OutcomeSkipped:
		c.Gate.Skipped(d.PreTokens, d.ConversationTokens)
	default:
		c.Gate.Failed(d.PreTokens, at)
	}
	if c.Full = ""; d.Must && d.Outcome != event.OutcomeDone {
		c.Full = d.Error
	}
}

// outdate takes in that the history was rewound.
func (c *Context) outdate() {
	c.Measured.outdate()
	if c.Compaction != nil {
		c.Compaction.Stale = true
	}
}

func (m *Measured) outdate() { m.Stale = m.Counted > 0 }

// loadMeasured finds the last count of tokens in a log. It decodes only the events
// that can hold one.
func (c *Context) loadMeasured(events []event.Event) error {
	c.Measured = Measured{}
	stale := false
	for _, e := range slices.Backward(events) {
		switch e.Type {
		case event.ContextEpoch, event.HistoryHidden:
			stale = true
		case event.AssistantUsage:
			if !e.Mentions("anchor") {
				continue // the provider did not count this request
			}
			d, err := event.As[event.AssistantUsageData](e)
			if err != nil {
				return err
			}
			if d.Anchor != nil {
				if c.Measured.Anchor = *d.Anchor; stale {
					c.Measured.outdate()
				}
				return nil
			}
		}
	}
	return nil
}

// EpochID returns the id of the current epoch, which is empty for the first one.
func (s *State) EpochID() string {
	d, _ := s.History.Epoch()
	return d.EpochID
}

// requestIfItFits returns the given request, or what has to be done first to make it
// fit the model's window.
func requestIfItFits(s *State, now Now, request Step) Step {
	if now.Verdict == nil {
		return Measure{}
	}
	switch v := *now.Verdict; {
	case v.Action == window.Go:
		return request
	case v.Action == window.Prepare:
		if s.Context.Compaction != nil {
			return request
		}
		return Compact{event.PointBackground, v}
	case s.Context.Compaction != nil:
		return Wait{}
	case v.Action == window.Must && s.Context.Full != "":
		return GiveUp{ErrorOverflow, s.Context.Full}
	case !s.Context.Spent():
		return Compact{point(s.Turn), v}
	case v.Action == window.Must:
		return GiveUp{ErrorOverflow, "The conversation does not fit the model's window, although it was compacted several times. Choose a model with a larger window, or begin a new session."}
	}
	return request
}

// Spent reports whether the turn may not wait for another compaction before its next
// request.
func (c *Context) Spent() bool { return c.Compactions >= maxCompactions }

// At returns the point of the turn at which the next request is measured.
func (t *Turn) At() window.Point {
	if t.Step == 0 {
		return window.BeforeRun
	}
	return window.BetweenRequests
}

// point returns the name of that point in events.
func point(t *Turn) string {
	if t.At() == window.BeforeRun {
		return event.PointBeforeRun
	}
	return event.PointBetween
}
