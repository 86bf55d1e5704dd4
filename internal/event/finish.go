package event

// AssistantUnfinished is the type of the event about an answer that the model is asked
// to go on with or to give again.
const AssistantUnfinished Type = "assistant.unfinished"

var _ = list(
	Kind{Type: AssistantUnfinished, body: body[AssistantUnfinishedData], Hidden: true, Shapes: true},
)

// AssistantUnfinishedData is the body of assistant.unfinished: the model has answered, but
// the answer is not whole, and what is done about it. Its calls are never made. The
// assistant.message that ends the step after it contains the text of all parts.
type AssistantUnfinishedData struct {
	MessageID     string `json:"messageId"`
	Model         string `json:"model,omitempty"` // model that answered
	Cause         string `json:"cause"`           // one of the causes below
	Action        string `json:"action"`          // one of the actions below
	Content       string `json:"content"`         // text of this part
	InteractionID string `json:"interactionId,omitempty"`
	TurnID        string `json:"turnId,omitempty"`
	OutputTokens  int64  `json:"outputTokens"`
	RequestID     string `json:"requestId,omitempty"` // id that the provider gave the request
	// Calls are the names of the tools that the answer asked for. The calls were not made.
	Calls []string `json:"calls,omitempty"`
	// Instruction is what the model is told before it is asked again; empty for nothing.
	Instruction string `json:"instruction,omitempty"`
	// MaxOutput is the number of tokens that the answers may have from here to the end of
	// the turn; unchanged if zero.
	MaxOutput int `json:"maxOutput,omitempty"`
	// The reasoning of the model; see AssistantMessageData.
	ReasoningText    string `json:"reasoningText,omitempty"`
	ReasoningOpaque  string `json:"reasoningOpaque,omitempty"`
	EncryptedContent string `json:"encryptedContent,omitempty"`
}

// The causes of assistant.unfinished. They are also types of session.error: that of a turn
// in which asking again did not help.
const (
	CauseCutOff = "cut_off"      // the answer has reached its limit
	CauseEmpty  = "empty_answer" // the answer has neither text nor calls
	CausePaused = "paused"       // the provider has paused a long answer

	CauseOutput = "invalid_output" // the answer does not have the form of the output schema
)

// The actions of assistant.unfinished.
const (
	ActionContinue = "continue" // the answer stays in the conversation, and the model goes on where it stopped
	ActionAgain    = "again"    // the answer is dropped, and the model answers again
	ActionCorrect  = "correct"  // the answer stays in the conversation, and the model answers again
)

// The further types of session.error of a turn that ends because of how an answer ended.
const (
	ErrorRefusal = "refusal"        // the model declined to answer
	ErrorFilter  = "content_filter" // the provider has stopped the answer because of its content
)

func (AssistantUnfinishedData) Type() Type { return AssistantUnfinished }
