package event

import "encoding/json"

// The kinds of events about what the model sees, and how full its window is.
const (
	CompactionStart    Type = "session.compaction_start"
	CompactionComplete Type = "session.compaction_complete"
	ContextEpoch       Type = "context.epoch"
	UsageInfo          Type = "session.usage_info"
)

var _ = list(
	Kind{Type: CompactionStart, body: body[CompactionStartData], Lasting: true, Answer: CompactionComplete},
	Kind{Type: CompactionComplete, body: body[CompactionCompleteData], Lasting: true},
	Kind{Type: ContextEpoch, body: body[ContextEpochData], Hidden: true, Lasting: true, Shapes: true},
	Kind{Type: UsageInfo, body: body[UsageInfoData], Sent: true},
)

// CompactionStartData tells that the older part of the conversation is about to
// be summarised. It is always followed by one CompactionCompleteData with the
// same id.
type CompactionStartData struct {
	ConversationTokens    int    `json:"conversationTokens"`
	SystemTokens          int    `json:"systemTokens"`
	ToolDefinitionsTokens int    `json:"toolDefinitionsTokens"`
	CurrentTokens         int    `json:"currentTokens"`
	TokenLimit            int    `json:"tokenLimit"`
	Trigger               string `json:"trigger"`
	Model                 string `json:"model,omitempty"`

	// Ours:
	CompactionID   string `json:"compactionId"`
	Point          string `json:"point"` // one of the Point constants
	BaseEpochID    string `json:"baseEpochId,omitempty"`
	Through        Seq    `json:"through"` // the newest message that is part of it
	EstimateSource string `json:"estimateSource"`
	// Must means that the next request does not fit without it.
	Must bool `json:"must,omitempty"`
}

// CompactionRules say when a session is compacted, and how. What is nil was not
// said.
type CompactionRules struct {
	Threshold        *int   `json:"threshold,omitempty"`        // tokens, before a run
	RequestThreshold *int   `json:"requestThreshold,omitempty"` // tokens, between two requests
	Retained         *int   `json:"retainedTokens,omitempty"`
	Model            string `json:"model,omitempty"`     // that writes summaries; the session's own if empty
	TimeoutMs        int64  `json:"timeoutMs,omitempty"` // of one request for a summary; five minutes if zero
	KeepAll          bool   `json:"keepAll,omitempty"`   // old output of tools stays in requests
}

// The triggers of a compaction.
const (
	TriggerThreshold = "threshold"
	TriggerManual    = "manual"
	TriggerRetry     = "context_limit_retry" // a provider refused a request as too large
	TriggerModel     = "model_switch"
)

// The points of a session's life at which it is compacted.
const (
	PointBeforeRun  = "before_run"
	PointBetween    = "between_requests"
	PointBackground = "background" // nothing waits for it
)

// CompactionCompleteData tells what became of a compaction.
type CompactionCompleteData struct {
	Success              bool             `json:"success"`
	PreTokens            int              `json:"preCompactionTokens"`
	ConversationTokens   int              `json:"conversationTokens"` // of these
	PreMessages          int              `json:"preCompactionMessagesLength"`
	PostTokens           int              `json:"postCompactionTokens,omitempty"`
	MessagesRemoved      int              `json:"messagesRemoved"`
	TokensRemoved        int              `json:"tokensRemoved"`
	SummaryContent       string           `json:"summaryContent,omitempty"`
	CheckpointNumber     int              `json:"checkpointNumber,omitempty"`
	CheckpointPath       string           `json:"checkpointPath,omitempty"`
	TokenLimit           int              `json:"tokenLimit,omitempty"`
	Trigger              string           `json:"trigger"`
	CustomInstructions   string           `json:"customInstructions,omitempty"`
	CompactionTokensUsed *CompactionUsage `json:"compactionTokensUsed,omitempty"`
	RequestID            string           `json:"requestId,omitempty"`
	Error                string           `json:"error,omitempty"`

	// Ours:
	CompactionID   string `json:"compactionId"`
	Outcome        string `json:"outcome"`           // done, failed or skipped
	EpochID        string `json:"epochId,omitempty"` // that is current now, also if it failed; none for the first
	ItemsKept      int    `json:"itemsKept"`
	Digest         bool   `json:"digest,omitempty"` // no model could be had for the summary
	DurationMs     int64  `json:"durationMs"`
	EstimateSource string `json:"estimateSource,omitempty"`
	Must           bool   `json:"must,omitempty"`
	Cause          string `json:"cause,omitempty"` // why it came to nothing, if not for its own sake
}

// The outcomes of a compaction.
const (
	OutcomeDone    = "done"    // there is a new epoch
	OutcomeFailed  = "failed"  // the old one stays
	OutcomeSkipped = "skipped" // there was nothing to do
)

// The causes for which a compaction ends without having failed.
const (
	CauseInterrupted = "interrupted" // the runtime ended
	CauseAborted     = "aborted"     // somebody wanted that
	CauseStale       = "stale"       // the history has changed meanwhile
)

// CompactionUsage is what a compaction has cost.
type CompactionUsage struct {
	InputTokens      int64  `json:"inputTokens"`
	OutputTokens     int64  `json:"outputTokens"`
	CacheReadTokens  int64  `json:"cacheReadTokens"`
	CacheWriteTokens int64  `json:"cacheWriteTokens"`
	Model            string `json:"model,omitempty"`
	Duration         int64  `json:"duration"` // milliseconds
}

// ContextEpochData opens an epoch: from here on the model sees its head, and every
// message from a position on.
type ContextEpochData struct {
	EpochID     string          `json:"epochId"`
	Number      int             `json:"number"` // never the same twice
	Kind        string          `json:"kind"`   // EpochCompaction or EpochUndo
	BaseEpochID string          `json:"baseEpochId,omitempty"`
	From        Seq             `json:"from"`              // the first message that is kept
	Through     Seq             `json:"through"`           // the newest one that was there
	Most        int             `json:"most,omitempty"`    // bytes that are shown of what calls gave, up to Through; zero for all
	Earlier     []Reduction     `json:"earlier,omitempty"` // what epochs before have left out of what is still shown, oldest first
	Head        json.RawMessage `json:"head,omitempty"`    // none: everything is shown
	Tokens      int             `json:"tokens,omitempty"`  // of the request that follows; of an undo
}

// A Reduction says that of what calls gave, up to a position, so many bytes are
// shown.
type Reduction struct {
	Through Seq `json:"through"`
	Most    int `json:"most"`
}

// Reductions are all that apply to what an epoch shows, oldest first.
func (d ContextEpochData) Reductions() []Reduction {
	if d.Most == 0 {
		return d.Earlier
	}
	return append(d.Earlier[:len(d.Earlier):len(d.Earlier)], Reduction{d.Through, d.Most})
}

// The kinds of epochs.
const (
	EpochCompaction = "compaction"
	EpochUndo       = "undo"
)

// An Anchor is a request that a provider has counted, so that how full the window
// is can be told after a restart.
type Anchor struct {
	Counted   int `json:"counted"`
	Estimated int `json:"estimated"`
	Messages  int `json:"messages"`
}

// UsageInfoData tells how full the model's window is.
type UsageInfoData struct {
	TokenLimit     int   `json:"tokenLimit"`
	CurrentTokens  int64 `json:"currentTokens"`
	MessagesLength int   `json:"messagesLength"`
	IsInitial      bool  `json:"isInitial"`
}

func (CompactionStartData) Type() Type    { return CompactionStart }
func (CompactionCompleteData) Type() Type { return CompactionComplete }
func (ContextEpochData) Type() Type       { return ContextEpoch }
func (UsageInfoData) Type() Type          { return UsageInfo }
