package event

import "encoding/json"

// The types of events about questions to people.
const (
	UserInputAsked       Type = "user_input.requested"
	UserInputDone        Type = "user_input.completed"
	ElicitationAsked     Type = "elicitation.requested"
	ElicitationDone      Type = "elicitation.completed"
	QuestionsRedelivered Type = "questions.redelivered"
)

var _ = list(
	Kind{Type: UserInputAsked, body: body[UserInputAskedData], Ephemeral: true, Question: true, Answer: UserInputDone},
	Kind{Type: UserInputDone, body: body[UserInputDoneData], Ephemeral: true, Inert: true, Keyed: true},
	Kind{Type: ElicitationAsked, body: body[ElicitationAskedData], Ephemeral: true, Lasting: true, Keyed: true, Question: true, Answer: ElicitationDone},
	Kind{Type: ElicitationDone, body: body[ElicitationDoneData], Ephemeral: true, Lasting: true, Keyed: true, Silent: true},
	Kind{Type: QuestionsRedelivered, body: body[QuestionsRedeliveredData], Hidden: true, Lasting: true},
)

// Answered identifies the answer to a question that counted: the first one. With it, a
// client that lost the reply to its answer can find out whether its own was the first.
type Answered struct {
	Digest string `json:"digest"`        // SHA-256 of the answer, in hexadecimal
	Key    string `json:"key,omitempty"` // idempotency key of the request that contained the answer
}

// UserInputAskedData is the body of user_input.requested: the model asks a person a
// question.
type UserInputAskedData struct {
	RequestID     string   `json:"requestId"`
	Question      string   `json:"question"`
	Choices       []string `json:"choices,omitempty"` // answers to choose from
	AllowFreeform bool     `json:"allowFreeform"`     // true if the answer may be any text
	ToolCallID    string   `json:"toolCallId"`
}

// UserInputDoneData is the body of user_input.completed, which closes the question.
type UserInputDoneData struct {
	RequestID   string    `json:"requestId"`
	Reply       string    `json:"answer,omitempty"` // text of the answer
	WasFreeform bool      `json:"wasFreeform"`      // true if it is not one of the choices
	Answer      *Answered `json:"winner,omitempty"` // ours: answer that counted; nil if no client gave it
}

// ElicitationAskedData is the body of elicitation.requested: a client asks for a form to
// be shown to a person, who fills it in.
type ElicitationAskedData struct {
	RequestID string          `json:"requestId"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`   // JSON schema of the form
	Mode      string          `json:"mode,omitempty"`              // "form" if empty
	Source    string          `json:"elicitationSource,omitempty"` // MCP server that asks; empty if none does
	Key       string          `json:"key,omitempty"`               // ours: idempotency key of the request
	Sampling  bool            `json:"sampling,omitempty"`          // ours: true if the server that asks wants to ask the model
	Budget    *BudgetReached  `json:"budget,omitempty"`            // ours: set if the session itself asks whether to go on; the turn waits for the answer
}

// ElicitationDoneData is the body of elicitation.completed, which closes the form.
type ElicitationDoneData struct {
	RequestID string          `json:"requestId"`
	Action    string          `json:"action"`            // "accept", "decline" or "cancel"
	Content   json.RawMessage `json:"content,omitempty"` // the filled-in form, an object that follows the schema
	Answer    *Answered       `json:"winner,omitempty"`  // ours: answer that counted; nil if no client gave it
}

// QuestionsRedeliveredData is the body of questions.redelivered: open questions are sent
// again to a client that asked for them. It is stored before they are sent.
type QuestionsRedeliveredData struct {
	RequestIDs []string `json:"requestIds"`
}

func (UserInputAskedData) Type() Type       { return UserInputAsked }
func (UserInputDoneData) Type() Type        { return UserInputDone }
func (ElicitationAskedData) Type() Type     { return ElicitationAsked }
func (ElicitationDoneData) Type() Type      { return ElicitationDone }
func (QuestionsRedeliveredData) Type() Type { return QuestionsRedelivered }

func (d UserInputDoneData) Request() Request    { return answerTo(d.RequestID, d.Answer) }
func (d ElicitationAskedData) Request() Request { return Request{Key: d.Key, ID: d.RequestID} }
func (d ElicitationDoneData) Request() Request  { return answerTo(d.RequestID, d.Answer) }
