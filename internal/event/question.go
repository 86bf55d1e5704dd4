package event

import "encoding/json"

// The kinds of events about questions to people.
const (
	UserInputAsked       Type = "user_input.requested"
	UserInputDone        Type = "user_input.completed"
	ElicitationAsked     Type = "elicitation.requested"
	ElicitationDone      Type = "elicitation.completed"
	QuestionsRedelivered Type = "questions.redelivered"
)

var _ = list(
	Kind{Type: UserInputAsked, body: body[UserInputAskedData], Ephemeral: true, Question: true, Answer: UserInputDone},
	Kind{Type: UserInputDone, body: body[UserInputDoneData], Ephemeral: true, Keyed: true},
	Kind{Type: ElicitationAsked, body: body[ElicitationAskedData], Ephemeral: true, Lasting: true, Keyed: true, Question: true, Answer: ElicitationDone},
	Kind{Type: ElicitationDone, body: body[ElicitationDoneData], Ephemeral: true, Lasting: true, Keyed: true},
	Kind{Type: QuestionsRedelivered, body: body[QuestionsRedeliveredData], Hidden: true, Lasting: true},
)

// Answered identifies the answer that won, so that a client whose reply was
// lost can tell whether it was its own.
type Answered struct {
	Digest string `json:"digest"`        // SHA-256 of the answer, in hexadecimal
	Key    string `json:"key,omitempty"` // the idempotency key it came with
}

// UserInputAskedData is a question of the model to a person.
type UserInputAskedData struct {
	RequestID     string   `json:"requestId"`
	Question      string   `json:"question"`
	Choices       []string `json:"choices,omitempty"`
	AllowFreeform bool     `json:"allowFreeform"`
	ToolCallID    string   `json:"toolCallId"`
}

// UserInputDoneData closes a question to a person.
type UserInputDoneData struct {
	RequestID   string    `json:"requestId"`
	Reply       string    `json:"answer,omitempty"`
	WasFreeform bool      `json:"wasFreeform"`
	Answer      *Answered `json:"winner,omitempty"`
}

// ElicitationAskedData is a form that somebody is to fill in.
type ElicitationAskedData struct {
	RequestID string          `json:"requestId"`
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	Mode      string          `json:"mode,omitempty"` // "form" if empty
	Key       string          `json:"key,omitempty"`  // ours: the idempotency key of the request
}

// ElicitationDoneData closes a form.
type ElicitationDoneData struct {
	RequestID string          `json:"requestId"`
	Action    string          `json:"action"` // "accept", "decline" or "cancel"
	Content   json.RawMessage `json:"content,omitempty"`
	Answer    *Answered       `json:"winner,omitempty"`
}

// QuestionsRedeliveredData names them. It is stored before the client sees them.
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
