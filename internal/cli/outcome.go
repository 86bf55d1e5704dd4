package cli

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// An outcome is the state of one turn, folded from the events of a session: the turn of
// the input that the caller waits for, or the newest turn if the caller names no input.
// Stored events and live ones are folded alike.
type outcome struct {
	input string // id of the input that the caller waits for; empty for the newest turn
	begun bool   // true when that input was delivered: what follows belongs to its turn
	done  bool   // true when the turn is over

	aborted    bool
	answer     string                  // newest text of the model
	failure    *event.SessionErrorData // error that ends the turn; nil if there is none
	refused    string                  // what a person refused after the newest text of the model, without saying what to do instead; empty if nothing
	model      string                  // name of the model
	answeredBy string                  // the provider's name of the model that answered, if it is another
	finish     string                  // reason why the model ended its newest answer
	steps      int                     // number of answers of the model
	usage      usage
	cost       cost
	agents     *agentCost // what its agents have cost; nil if it has none
	open       []question // open questions, in the order in which they were asked

	unanswered bool            // true if nobody answered the question that was closed last: the turn was stopped
	calls      map[string]bool // ids of the unfinished calls
	spentMore  bool            // true if agents were started or requests made again, whose cost is not in the events

	schema  json.RawMessage            // JSON schema of the answer; empty if its form is free
	schemas map[string]json.RawMessage // schemas of accepted inputs, by their ids
}

// usage is the number of tokens that a turn used.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (u *usage) add(more usage) {
	u.Input += more.Input
	u.Output += more.Output
	u.CacheRead += more.CacheRead
	u.CacheWrite += more.CacheWrite
}

// A cost is the cost of a turn in US dollars. It is known only if the cost of each
// request is known.
type cost struct {
	dollars float64
	known   int // number of requests whose cost is known
	unknown int // number of the others
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

// expect makes o the outcome of the turn of an input that was just accepted.
func (o *outcome) expect(input string) {
	o.input, o.begun, o.done = input, false, false
}

// restart forgets the turn so far, because another one begins or because its events do
// not count any more.
func (o *outcome) restart() {
	*o = outcome{input: o.input, begun: o.begun, model: o.model, schemas: o.schemas}
}

// waiting reports whether the turn cannot continue without an answer: there are open
// questions, and every unfinished call waits for one of them. A call that an agent makes
// waits if the agent has asked something. If the budget is reached, no model is asked before
// the answer, whatever else goes on.
func (o *outcome) waiting() bool {
	asking, samplings := make(map[string]bool), 0 // own calls and agents; requests of MCP servers for calls
	for _, q := range o.open {
		if q.asksBudget() {
			return true
		}
		if q.asksSampling() {
			samplings++
			continue
		}
		asking[cmp.Or(q.Agent, q.CallID)] = true
	}
	if samplings > 0 { // nothing says which call each is for
		return len(o.calls) <= len(asking)+samplings
	}
	return len(asking) > 0 && len(o.calls) == len(asking)
}

// apply folds an event into the outcome.
func (o *outcome) apply(e event.Event) error {
	if o.done && o.input != "" {
		return nil // the event belongs to a later turn
	}
	q, isQuestion, err := questionOf(e)
	if err != nil {
		return err
	}
	if isQuestion {
		if q.Form == nil || q.asksBudget() || q.asksSampling() { // no turn waits for another form
			o.asked(q)
		}
		return nil
	}
	switch e.Type {
	case event.UserMessage:
		return decodeFor(e, o.delivered)
	case event.InputAccepted:
		o.done = false // the turn of this input will be the newest one
		return decodeFor(e, o.accepted)
	case event.ModelCallStart:
		return decodeFor(e, func(d event.ModelCallStartData) { o.model = d.Model })
	case event.AssistantUsage:
		return decodeFor(e, o.used)
	case event.CompactionComplete:
		return decodeFor(e, o.compacted)
	case event.AssistantMessage:
		return decodeFor(e, func(d event.AssistantMessageData) { o.answer, o.refused = d.Content, "" })
	case event.SubagentStarted:
		o.spentMore = true
	case event.SessionInfo:
		return decodeFor(e, func(d event.SessionInfoData) { o.spentMore = o.spentMore || d.InfoType == "model_retry" })
	case event.ToolStart:
		return decodeFor(e, func(d event.ToolStartData) { o.calling(d.ToolCallID) })
	case event.ToolComplete:
		return decodeFor(e, func(d event.ToolCompleteData) { delete(o.calls, d.ToolCallID) })
	case event.PermissionDone:
		return decodeFor(e, o.decided)
	case event.ExternalDone, event.UserInputDone, event.ExitPlanDone, event.ElicitationDone:
		return decodeFor(e, o.closed)
	case event.SessionError:
		return decodeFor(e, o.failed)
	case event.HistoryHidden, event.SessionForked:
		o.restart()
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

// delivered handles a message that was given to the model. It begins a turn, unless it
// steers the one that is under way.
func (o *outcome) delivered(d event.UserMessageData) {
	steers, awaited := d.Delivery == "steering", o.input != "" && d.InputID == o.input
	if steers && !awaited {
		return
	}
	if o.input != "" && o.begun {
		o.done = true // another turn begins, so that of the input is over
		return
	}
	if !steers {
		o.restart()
	}
	o.begun = o.input == "" || awaited
	if own := o.schemas[d.InputID]; own != nil {
		o.schema = own
	}
}

func (o *outcome) used(d event.AssistantUsageData) {
	o.steps++
	o.model, o.answeredBy, o.finish = d.Model, d.AnsweredBy, d.FinishReason
	o.usage.add(usage{d.InputTokens, d.OutputTokens, d.CacheReadTokens, d.CacheWriteTokens})
	if d.InputTokens+d.OutputTokens+d.CacheReadTokens+d.CacheWriteTokens == 0 && d.CostUSD != nil && *d.CostUSD == 0 {
		d.CostUSD = nil // the provider has counted nothing, which is not to say that it bills nothing
	}
	o.cost.add(d.CostUSD)
}

// compacted adds the tokens and the cost of a summary.
func (o *outcome) compacted(d event.CompactionCompleteData) {
	if u := d.CompactionTokensUsed; u != nil {
		o.usage.add(usage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens})
		o.cost.add(u.CostUSD)
	}
}

func (o *outcome) calling(id string) {
	if o.calls == nil {
		o.calls = make(map[string]bool)
	}
	o.calls[id] = true
}

func (o *outcome) asked(q question) {
	if slices.ContainsFunc(o.open, func(p question) bool { return p.RequestID == q.RequestID }) {
		return // the question is put to this client again, without the name of the agent that asks
	}
	o.open = append(o.open, q)
	if q.Agent == "" && q.CallID != "" { // the calls of agents are not shown
		o.calling(q.CallID)
	}
}

// decided closes a permission request. A no without a reason ends the turn, unless the
// model goes on all the same.
func (o *outcome) decided(d event.PermissionDoneData) {
	at := slices.IndexFunc(o.open, func(q question) bool { return q.RequestID == d.RequestID })
	if at >= 0 && d.Result.Kind == event.DeniedByUser && d.Result.Feedback == "" {
		o.refused = clip(o.open[at].inLine(), maxRefused)
	}
	o.open = slices.DeleteFunc(o.open, func(q question) bool { return q.RequestID == d.RequestID })
	o.unanswered = d.Answer == nil
}

// A closing is the end of a question of whatever kind: answers are in one field or the
// other.
type closing struct {
	RequestID string
	Answer    any
	Winner    any
}

// closed removes a question that is not open any more.
func (o *outcome) closed(d closing) {
	o.open = slices.DeleteFunc(o.open, func(q question) bool { return q.RequestID == d.RequestID })
	o.unanswered = d.Answer == nil && d.Winner == nil
}

// maxRefused is the maximum width of what was refused in the message about it.
const maxRefused = 200

func (o *outcome) failed(d event.SessionErrorData) {
	if d.EndsTurn {
		o.failure = &d
	}
}

// idle ends the turn. Before the turn of the input has begun, it is another turn that
// ends; but if that was aborted, the input was discarded with it and will have no turn.
func (o *outcome) idle(d event.SessionIdleData) {
	if o.input == "" || o.begun || d.Aborted {
		o.done, o.aborted = true, d.Aborted
	}
}
