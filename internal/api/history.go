package api

import "github.com/abide-run/abide/internal/event"

// CompactParams asks for a compaction.
type CompactParams struct {
	SessionID          event.SessionID `json:"sessionId"`
	CustomInstructions string          `json:"customInstructions,omitempty"`
	TokenLimit         int             `json:"tokenLimit,omitempty"`
	Key                string          `json:"abideKey,omitempty"`
}

// HandoffParams asks for a summary for whoever takes over.
type HandoffParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Key       string          `json:"abideKey,omitempty"`
}

// CompactResult is the result of a compaction.
type CompactResult struct {
	Success         bool           `json:"success"`
	MessagesRemoved int            `json:"messagesRemoved"`
	TokensRemoved   int            `json:"tokensRemoved"`
	SummaryContent  string         `json:"summaryContent,omitempty"`
	ContextWindow   *ContextWindow `json:"contextWindow,omitempty"`
	// Fields of abide.
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	EpochID string `json:"epochId,omitempty"`
	Digest  bool   `json:"digest,omitempty"` // true if no model was available for the summary
}

// ContextWindow is the use of the model's window, in tokens.
type ContextWindow struct {
	ConversationTokens    int `json:"conversationTokens"`
	CurrentTokens         int `json:"currentTokens"`
	MessagesLength        int `json:"messagesLength"`
	SystemTokens          int `json:"systemTokens"`
	TokenLimit            int `json:"tokenLimit"`
	ToolDefinitionsTokens int `json:"toolDefinitionsTokens"`
}

// ContextResult is the use of the model's window by parts, in tokens.
type ContextResult struct {
	ContextWindow
	Model     string `json:"model"`
	Source    string `json:"source"` // source of the numbers: "usage" or "estimate"
	Window    int    `json:"window"`
	Reserved  int    `json:"reserved"` // reserved for the answer
	Summary   int    `json:"summaryTokens"`
	Asked     int    `json:"askedTokens"`
	Answered  int    `json:"answeredTokens"`
	Gave      int    `json:"toolOutputTokens"`
	Tail      int    `json:"tailTokens"`
	Pruned    int    `json:"prunedTokens"` // tokens that are left out of requests
	EpochID   string `json:"epochId,omitempty"`
	Epoch     int    `json:"epoch"`                   // number of the epoch; zero before the first compaction
	BeforeRun int    `json:"compactThreshold"`        // zero: off
	Between   int    `json:"compactRequestThreshold"` // zero: off
	Ahead     int    `json:"backgroundThreshold"`     // zero: off
}

// CancelledResult, AbortedResult and HandoffResult answer their methods.
type (
	CancelledResult struct {
		Cancelled bool `json:"cancelled"`
	}
	AbortedResult struct {
		Aborted bool `json:"aborted"`
	}
	HandoffResult struct {
		Summary string `json:"summary"`
	}
	UncompactResult struct {
		EpochID string `json:"epochId"`
	}
)
