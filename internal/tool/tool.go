// Package tool defines the tools that the runtime carries out for an agent. Tools that
// a client carries out are not here: their calls are open questions.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// A Replay says whether a call may be repeated if the runtime was killed after the call
// began.
type Replay int

const (
	// Once means that a second run could do harm: instead, the model is told that the
	// call may have had its effect.
	Once Replay = iota
	// Keyed means that a second run with the same key has no further effect.
	Keyed
	// Pure means that a run has no effect at all.
	Pure
)

// String returns the name of the class, as it is recorded.
func (r Replay) String() string {
	switch r {
	case Keyed:
		return "keyed"
	case Pure:
		return "pure"
	}
	return "once"
}

// A Tool is one tool. It is safe for concurrent use.
type Tool interface {
	// Spec returns the description of the tool for the model.
	Spec() Spec
	// Permission returns the permission request of a call, or nil if the call needs no
	// permission. With an error the call is refused without asking, and the error
	// becomes its result; a [Refusal] is the whole result. The context ends when nobody
	// needs the answer any more: what it returns then is not used.
	Permission(ctx context.Context, call Call) (*approval.Request, error)
	// Run makes the call. A failure of the tool is a Result; the error of ctx means that
	// the call was cancelled.
	Run(ctx context.Context, call Call) (Result, error)
}

// An Offerer is a tool that is not offered to every session, or not to every session
// with the same description.
type Offerer interface {
	Tool
	// Offer returns the description of the tool for the model of a session, or false if
	// the tool is of no use in that session.
	Offer(State) (Spec, bool)
}

// A Family is a tool that stands for others, which are not the same in all sessions. It is
// not offered itself.
type Family interface {
	Tool
	// Members returns the tools of a session. They are safe for concurrent use, and keep
	// nothing of the state.
	Members(State) []Tool
	// Member returns the tool of that name of a session; nil if there is none.
	Member(s State, name string) Tool
}

// A State is the state of a session that results from its log. A tool that needs a part
// of it declares an interface for that part. The state belongs to the session that
// writes the log: a tool may read it during Offer, Permission and an instant Run, and
// must not keep it.
type State any

// AskUser is the name of the tool with which the model asks a person. Clients can
// disable it.
const AskUser = "ask_user"

// A Spec describes a tool.
type Spec struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema
	Replay      Replay
	// Detaches is true if the work of a call can continue after the call, as a task with
	// the key of the call.
	Detaches bool
	// OnDemand is true if the tool is offered only where a session or the configuration
	// names it.
	OnDemand bool
	// Instant is true if a call depends only on its arguments and the state, and its
	// only effect is Result.Record. Such calls are made by the writer of the log, one
	// after the other, so that record and result are one append.
	Instant bool
	// Looks is true if Permission reads files or asks for processes. It is then called
	// beside the session, without State.
	Looks bool
	// Agent is true if a session of its own carries out a call. The ID of that session
	// is the key of the call.
	Agent bool
	// Source is where the tool comes from, for filters; "builtin" if it is empty.
	Source string
}

// A Call is one call of a tool.
type Call struct {
	Session event.SessionID
	ID      string // ID that the model gave the call
	Key     string // unique key of the call, the same for every attempt
	Attempt int    // number of the attempt; the first is 1
	// Begun is when the first attempt was recorded; zero if that is unknown.
	Begun     time.Time
	Arguments json.RawMessage
	Dir       string   // working directory of the session
	Env       []string // environment of the session
	Sealed    bool     // true if the commands of the session are sealed

	Scope event.ScopeRules // files that the session may use without asking, and files that it may never use

	// Unread are the rules of the session that deny something, and those that ask about it
	// unless a person has allowed the call. They are for tools that read all files of a
	// folder: the folder was judged, and the files in it were not.
	Unread []string

	// State is the state of the session. It is nil while a call that is not instant
	// runs.
	State State

	// Granted is true if something beyond the session's scope allows the call: a person,
	// a grant for the session, or a rule.
	Granted bool
	// Decision is what allowed the call, the same for every attempt; nil before the call
	// begins, and if an older version began it.
	Decision *event.Decision
	// Asked is the request that a person approved, as it was shown; nil if nobody was
	// asked.
	Asked json.RawMessage
	// Review is the answer to the question that an earlier run of the call asked with
	// Result.Review; nil if there was none.
	Review *Review
}

// A Review is a question about what a call has done, and its answer.
type Review struct {
	Shown    json.RawMessage // the question, as Result.Review had it
	Approved bool
	Feedback string // message of the person to the model
}

// A Result is the result of a call.
type Result struct {
	Text     string          // text for the model
	Detailed string          // text for people, if it differs
	Contents json.RawMessage // structured parts for clients
	Binary   json.RawMessage // images for the model, in the form of the protocol
	Failed   bool
	Code     string // error code, one of event.Code…, if Failed
	Message  string // short reason of a failure, for people; empty if Text is short enough
	Task     bool   // true if the work continues after the call, as a task
	// Digest tells calls that do and find the same from others, so that a model which
	// repeats itself without end can be stopped; see [Digest]. If it is empty, the
	// arguments and Text are compared.
	Digest string

	Record []event.Payload // events that the call causes, recorded together with its result
	Then   []event.Payload // events that follow from the result, recorded after it
	// Review asks a person about what the call has done, in the form of a permission
	// request. The call is run again with the answer, and only then has a result. If
	// nobody can be asked, this result counts.
	Review json.RawMessage
	// Open is true if the call has asked a question, which is part of Record. The answer
	// becomes the result of the call.
	Open bool
}

// AgentWork is the work for an agent.
type AgentWork struct {
	Description string   // short description
	Prompt      string   // task of the agent
	Type        string   // kind of agent
	Name        string   // name that people see
	Brief       string   // instructions for the agent in addition to the prompt
	Tools       []string // names of its tools; nil for those of the session that starts it
}

// A Refusal is the error of a call that is refused without asking. It has the result of
// the call, which need not be a failure.
type Refusal struct{ Result }

func (r *Refusal) Error() string { return r.Text }

// Fail returns the result of a call that failed.
func Fail(text string) Result {
	return Result{Text: text, Failed: true, Code: event.CodeFailure}
}
