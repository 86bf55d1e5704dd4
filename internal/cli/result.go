package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// A result is the result of a run, in JSON output.
type result struct {
	Type       string          `json:"type"` // "result"
	Subtype    string          `json:"subtype"`
	IsError    bool            `json:"is_error"` // true if the exit code is not zero
	Result     string          `json:"result"`   // the answer
	SessionID  event.SessionID `json:"session_id,omitempty"`
	NumTurns   int             `json:"num_turns"` // number of model requests that were answered
	Usage      usage           `json:"usage"`
	Cost       *float64        `json:"total_cost_usd,omitempty"` // with that of agents; nil if a price is not known
	Agents     *agentCost      `json:"agents,omitempty"`         // nil if there were none
	DurationMs int64           `json:"duration_ms"`
	Model      string          `json:"model,omitempty"`
	AnsweredBy string          `json:"answered_by,omitempty"`   // the provider's name of the model that answered, if it is not that of Model
	Finish     string          `json:"finish_reason,omitempty"` // reason why the model ended its last answer: model.FinishStop or another
	Error      *problem        `json:"error,omitempty"`
	Questions  []questionJSON  `json:"questions,omitempty"`

	Structured json.RawMessage `json:"structured_output,omitempty"` // the answer as a value, if it was to match a schema and does
}

// A problem is the reason why there is no answer.
type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // HTTP status
}

// The subtypes of a result.
const (
	subtypeSuccess     = "success"
	subtypeError       = "error_during_execution"
	subtypeMaxTurns    = "error_max_turns"
	subtypeNeedsInput  = "needs_input"
	subtypeInterrupted = "interrupted"
	subtypeDetached    = "detached"
)

// newResult returns the result of a run. err is nil if the turn ended with an answer.
func newResult(id event.SessionID, o *outcome, took time.Duration, err error) result {
	r := result{
		Type: "result", Subtype: subtypeSuccess, IsError: err != nil, SessionID: id,
		NumTurns: o.steps, Usage: o.usage, Cost: o.cost.total(), Agents: o.agents, DurationMs: took.Milliseconds(), Model: o.model, AnsweredBy: o.answeredBy, Finish: o.finish,
	}
	var needs *needsInput
	var failed *turnFailed
	var refused *turnRefused
	var signal stopSignal
	switch {
	case err == nil:
		r.Result, r.Structured = o.answer, o.structured()
	case errors.As(err, &needs):
		r.Subtype = subtypeNeedsInput
		for _, q := range needs.questions {
			r.Questions = append(r.Questions, q.forJSON())
		}
	case errors.As(err, &refused):
		r.Subtype = subtypeError
		r.Error = &problem{Type: "refused", Message: err.Error()}
	case errors.As(err, &failed):
		r.Subtype, r.Result = failed.subtype(), o.answer
		r.Error = &problem{Type: failed.ErrorType, Message: failed.Message, Status: failed.StatusCode}
	case errors.As(err, &signal):
		r.Subtype = subtypeInterrupted
	default:
		r.Subtype = subtypeError
		r.Error = &problem{Type: "abide", Message: err.Error()}
	}
	return r
}

// ending returns the error of a turn that is over; nil if it has an answer.
func (o *outcome) ending(id event.SessionID) error {
	switch {
	case o.failure != nil:
		return &exitError{failureCode(*o.failure), &turnFailed{*o.failure}}
	case o.aborted:
		return fmt.Errorf("the turn was stopped by another client; to go on, send a message: abide run --resume %s \"…\"", id)
	case o.refused != "":
		return &turnRefused{id, o.refused}
	}
	return o.wrongForm()
}

// turnFailed is the session.error that ended a turn.
type turnFailed struct{ event.SessionErrorData }

func (e *turnFailed) Error() string { return e.Message }

func (e *turnFailed) subtype() string {
	if e.ErrorType == turn.ErrorStepLimit {
		return subtypeMaxTurns
	}
	return subtypeError
}

// needsInput is the error of a session that waits for an answer, without a person at a
// terminal who could be asked.
type needsInput struct {
	session   event.SessionID
	questions []question
	unsent    bool // true if the prompt was not sent
	left      bool // true if a person was asked, and has left with Ctrl-D
}

func (e *needsInput) Error() string {
	why := "and there is no terminal to ask at"
	if e.left {
		why = "as long as it takes"
	}
	text := fmt.Sprintf("session %s is waiting for an answer, %s:\n", e.session, why)
	for _, q := range e.questions {
		text += fmt.Sprintf("  %s  %s\n", q.RequestID, q.inLine())
		for _, line := range q.reasons() {
			text += "    " + line + "\n"
		}
	}
	if e.unsent {
		text += "The prompt was not sent.\n"
	}
	text += fmt.Sprintf("Answer with: abide answer %s%s %s", e.session, e.request(), e.questions[0].words())
	if e.left {
		text += fmt.Sprintf("\nTo be asked again here: abide run --resume %s", e.session)
	}
	return text
}

// request returns what names the question in the command that answers it. A yes names its
// question: by then another one may be open, which nobody has seen.
func (e *needsInput) request() string {
	switch {
	case len(e.questions) > 1:
		return " REQUEST"
	case e.questions[0].approves():
		return " " + e.questions[0].RequestID
	}
	return ""
}

// turnRefused is the error of a turn that ended because a permission was refused.
type turnRefused struct {
	session event.SessionID
	what    string // what was asked
}

func (e *turnRefused) Error() string {
	return fmt.Sprintf("the turn ended without an answer, because this was refused: %s; to go on, say what to do instead: abide run --resume %s \"…\"", e.what, e.session)
}
