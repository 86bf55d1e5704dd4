package cli

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// An outcome is the state of a turn, folded from its events. The same fold is used for
// live events and for stored ones.
type outcome struct {
	input string // id of the awaited input; empty for whatever is under way

	begun   bool // true when the turn of the input has begun
	done    bool // true when the turn is over
	aborted bool
	answer  string
	failure *event.SessionErrorData
	model   string // name of the model
	steps   int
	usage   usage
	cost    cost
	open    []question      // open questions, in the order in which they were asked
	calls   map[string]bool // ids of the unfinished calls
}

// usage is the number of tokens that a turn used.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// A cost is the cost of a turn in US dollars. It is known only if the cost of each
// request is known.
type cost struct {
	dollars float64
	known   int
	unknown int
}

func (c *cost) add(dollars *float64) {
	if dollars == nil {
		c.unknown++
		return
	}
	c.dollars += *dollars
	c.known++
}

// total returns the cost of the turn; nil if it is not known.
func (c cost) total() *float64 {
	if c.known == 0 || c.unknown > 0 {
		return nil
	}
	return &c.dollars
}

// expect starts to wait for the turn of an input that was just accepted.
func (o *outcome) expect(input string) {
	o.input, o.begun, o.done = input, false, false
}

// next starts another turn.
func (o *outcome) next() {
	*o = outcome{input: o.input, begun: o.begun, model: o.model, calls: make(map[string]bool)}
}

// waiting reports whether the turn cannot continue without an answer: there are open
// questions, and every unfinished call waits for one of them.
func (o *outcome) waiting() bool {
	return len(o.open) > 0 && len(o.calls) == len(o.open)
}

// apply folds an event into the outcome.
func (o *outcome) apply(e event.Event) error {
	if o.done && o.input != "" {
		return nil // the event belongs to another turn
	}
	if q, ok, err := questionOf(e); ok || err != nil {
		if q.Form == nil { // no turn waits for a form
			o.asked(q)
		}
		return err
	}
	switch e.Type {
	case event.UserMessage:
		return decodeFor(e, o.delivered)
	case event.InputAccepted:
		o.done = false
	case event.ModelCallStart:
		return decodeFor(e, func(d event.ModelCallStartData) { o.model = d.Model })
	case event.AssistantUsage:
		return decodeFor(e, o.used)
	case event.CompactionComplete:
		return decodeFor(e, o.compacted)
	case event.AssistantMessage:
		return decodeFor(e, func(d event.AssistantMessageData) { o.answer = d.Content })
	case event.ToolStart:
		return decodeFor(e, func(d event.ToolStartData) { o.calling(d.ToolCallID) })
	case event.ToolComplete:
		return decodeFor(e, func(d event.ToolCompleteData) { delete(o.calls, d.ToolCallID) })
	case event.PermissionDone, event.ExternalDone, event.UserInputDone, event.ExitPlanDone:
		return decodeFor(e, func(d struct{ RequestID string }) { o.answered(d.RequestID) })
	case event.SessionError:
		return decodeFor(e, o.failed)
	case event.HistoryHidden, event.SessionForked:
		o.next()
	case event.SessionIdle:
		return decodeFor(e, o.idle)
	}
	return nil
}

// decodeFor decodes the data of an event and calls f with it.
func decodeFor[T any](e event.Event, f func(T)) error {
	d, err := event.As[T](e)
	if err == nil {
		f(d)
	}
	return err
}

// delivered begins a turn, unless the message only steers the current one.
func (o *outcome) delivered(d event.UserMessageData) {
	mine := o.input != "" && d.InputID == o.input
	switch {
	case d.Delivery == "steering" && !mine:
		return
	case o.begun && o.input != "":
		o.done = true // the turn of another input begins, so this one is over
		return
	case d.Delivery != "steering":
		o.next()
	}
	o.begun = o.input == "" || mine
}

func (o *outcome) used(d event.AssistantUsageData) {
	o.steps++
	o.model = d.Model
	o.usage.Input += d.InputTokens
	o.usage.Output += d.OutputTokens
	o.usage.CacheRead += d.CacheReadTokens
	o.usage.CacheWrite += d.CacheWriteTokens
	o.cost.add(d.CostUSD)
}

// compacted adds the tokens of a summary. Its cost is not known.
func (o *outcome) compacted(d event.CompactionCompleteData) {
	if u := d.CompactionTokensUsed; u != nil {
		o.usage.Input += u.InputTokens
		o.usage.Output += u.OutputTokens
		o.usage.CacheRead += u.CacheReadTokens
		o.usage.CacheWrite += u.CacheWriteTokens
		o.cost.add(nil)
	}
}

func (o *outcome) calling(id string) {
	if o.calls == nil {
		o.calls = make(map[string]bool)
	}
	o.calls[id] = true
}

func (o *outcome) asked(q question) {
	if !slices.ContainsFunc(o.open, func(p question) bool { return p.RequestID == q.RequestID }) {
		o.open = append(o.open, q)
	}
	o.calling(q.CallID)
}

func (o *outcome) answered(requestID string) {
	o.open = slices.DeleteFunc(o.open, func(q question) bool { return q.RequestID == requestID })
}

func (o *outcome) failed(d event.SessionErrorData) {
	if d.EndsTurn {
		o.failure = &d
	}
}

// idle ends the turn. A session.idle before the turn of the input has begun ends another
// turn, unless that was aborted, which discards queued inputs.
func (o *outcome) idle(d event.SessionIdleData) {
	if o.input == "" || o.begun || d.Aborted {
		o.done, o.aborted = true, d.Aborted
	}
}
