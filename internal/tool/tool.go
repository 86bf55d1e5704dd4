// Package tool is the port to what an agent can do by itself, inside the
// runtime. Tools that a client carries out are not here: they are open
// questions.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// A Replay says what may be done with a call that was begun when the runtime
// died.
type Replay int

const (
	// Once means that a second run could do harm: the model is told that the
	// call may have happened.
	Once Replay = iota
	// Keyed means that a second run with the same key has no further effect.
	Keyed
	// Pure means that a run has no effect at all.
	Pure
)

// A Tool does one kind of thing. It is safe for concurrent use.
type Tool interface {
	// Spec says what the model is told.
	Spec() Spec
	// Permission says what a call wants to do, or nil if it needs nobody's yes.
	// An error is a result for the model: the call is refused without asking. A
	// [Refusal] says all of that result.
	Permission(call Call) (*approval.Request, error)
	// Run makes the call. A failure of the tool is a Result; an error that is
	// ctx's means that the call was cancelled.
	Run(ctx context.Context, call Call) (Result, error)
}

// An Offerer is a tool that not every session is offered, or not every session
// in the same words.
type Offerer interface {
	Tool
	// Offer says what the model of a session is told of the tool. It reports
	// false if the tool is of no use in that session.
	Offer(State) (Spec, bool)
}

// A State is what the log says of a session. A tool that needs a part of it
// declares that part as an interface of its own. The state belongs to the session
// that writes the log: it may be read while the tool is asked for its offer, for
// its permission or for an instant call, and not afterwards.
type State any

// AskUser is the name of the tool by which the model asks a person. Clients can
// switch it off.
const AskUser = "ask_user"

// A Spec describes a tool.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema
	Replay      Replay
	// Detaches means that what a call does can go on without it, as a task with
	// the key of the call.
	Detaches bool
	// OnDemand means that the tool is only offered where a session or the
	// configuration names it.
	OnDemand bool
	// Instant means that a call depends on nothing but what it is given, and does
	// nothing but have something recorded. It is made where the log is written,
	// one after the other, so that its record and its result are one append.
	Instant bool
	// Agent means that a call is carried out by a session of its own, whose id is
	// the key of the call.
	Agent bool
}

// A Call is one call of a tool.
type Call struct {
	Session event.SessionID
	ID      string // the model's name for the call
	Key     string // the same for every attempt at this call, and for no other call
	Attempt int    // 1, 2, …
	// Begun is when the first attempt was recorded. It is zero if that is not
	// known.
	Begun     time.Time
	Arguments json.RawMessage
	Dir       string   // the session's working directory
	Env       []string // the session's environment

	Scope event.ScopeRules // the files that the session may use without asking, and never

	// State is what the log says of the session. It is nil when a call that is not
	// instant is run.
	State State

	// Granted means that more than the session's scope allows the call: a
	// person, an approval for the session, or a rule that allows everything.
	Granted bool
	// Asked is the request that a person said yes to, as it was shown. It is nil
	// if nobody was asked.
	Asked json.RawMessage
}

// A Result is what the model reads.
type Result struct {
	Text     string
	Detailed string          // for people, if that is different
	Contents json.RawMessage // structured parts for clients
	Binary   json.RawMessage // images for the model, in the protocol's form
	Failed   bool
	Code     string // one of event.Code…, if Failed
	Message  string // why it failed, for people, if that is less than Text
	Task     bool   // what the call began goes on without it, as a task

	Record []event.Payload // what the call has changed, recorded together with its result
	Then   []event.Payload // what follows from the result, recorded after it
	// Open means that the call has asked a question, which is part of Record. The
	// answer is the result of the call.
	Open bool
}

// AgentWork is what an agent is started for.
type AgentWork struct {
	Description string   // what it is about, in a few words
	Prompt      string   // what it is to do
	Type        string   // which agent
	Name        string   // what people are shown
	Brief       string   // what the agent is told beside its work
	Tools       []string // the tools that it has; nil for those of the session that starts it
}

// A Refusal is the error of a call that is not even asked about: the result that
// it has all the same, which need not be a failure.
type Refusal struct{ Result }

func (r *Refusal) Error() string { return r.Text }

// Fail makes the result of a call that went wrong.
func Fail(text string) Result {
	return Result{Text: text, Failed: true, Code: event.CodeFailure}
}
