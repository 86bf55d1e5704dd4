package event

import "encoding/json"

// The types of events about the context of the model: what the model sees of the
// conversation, and how full its window is. docs/CONTEXT.md explains them.
const (
	CompactionStart    Type = "session.compaction_start"
	CompactionComplete Type = "session.compaction_complete"
	ContextEpoch       Type = "context.epoch"
	UsageInfo          Type = "session.usage_info"
)

var _ = list(
	Kind{Type: CompactionStart, body: body[CompactionStartData], Lasting: true, Keyed: true, Answer: CompactionComplete},
	Kind{Type: CompactionComplete, body: body[CompactionCompleteData], Lasting: true},
	Kind{Type: ContextEpoch, body: body[ContextEpochData], Hidden: true, Lasting: true, Shapes: true},
	Kind{Type: UsageInfo, body: body[UsageInfoData], Sent: true, Silent: true},
)

// CompactionStartData is the body of session.compaction_start: the older part of the
// conversation is about to be replaced by a summary. One session.compaction_complete
// with the same CompactionID always follows. Token counts are those of the next
// request to the model.
type CompactionStartData struct {
	ConversationTokens    int    `json:"conversationTokens"`    // tokens of the messages
	SystemTokens          int    `json:"systemTokens"`          // tokens of the system prompt
	ToolDefinitionsTokens int    `json:"toolDefinitionsTokens"` // tokens of the descriptions of tools
	CurrentTokens         int    `json:"currentTokens"`         // tokens of the whole request
	TokenLimit            int    `json:"tokenLimit"`            // tokens that a request may have
	Trigger               string `json:"trigger"`               // one of the Trigger constants below
	Model                 string `json:"model,omitempty"`       // model that writes the summary

	// These fields are ours.
	CompactionID   string `json:"compactionId"`
	Point          string `json:"point"`                 // one of the Point constants below
	BaseEpochID    string `json:"baseEpochId,omitempty"` // epoch that is compacted; empty for the whole log
	Through        Seq    `json:"through"`               // position of the newest message that is compacted or kept
	EstimateSource string `json:"estimateSource"`        // "usage" if a provider counted the tokens, or "estimate"
	Must           bool   `json:"must,omitempty"`        // true if the next request does not fit without it
	Key            string `json:"key,omitempty"`         // idempotency key of the request that asked for it
}

// CompactionRules say when and how a session is compacted. A field that is nil, zero
// or empty means the default.
type CompactionRules struct {
	Threshold        *int   `json:"threshold,omitempty"`        // tokens at which a session is compacted before a turn
	RequestThreshold *int   `json:"requestThreshold,omitempty"` // tokens at which it is compacted between two requests of a turn
	Retained         *int   `json:"retainedTokens,omitempty"`   // tokens of the newest messages that are kept as they are
	Model            string `json:"model,omitempty"`            // model that writes summaries; the session's if empty
	TimeoutMs        int64  `json:"timeoutMs,omitempty"`        // time limit of one request for a summary; five minutes if zero
	KeepAll          bool   `json:"keepAll,omitempty"`          // true if old results of tools are not shortened in requests
}

// The triggers of a compaction: why it was started.
const (
	TriggerThreshold = "threshold"           // a threshold was reached
	TriggerManual    = "manual"              // a person or a client asked for it
	TriggerRetry     = "context_limit_retry" // a provider refused a request as too large
	TriggerModel     = "model_switch"        // the new model has a smaller window
)

// The points at which a session is compacted.
const (
	PointBeforeRun  = "before_run"       // before the first request of a turn
	PointBetween    = "between_requests" // between two requests of a turn
	PointBackground = "background"       // beside a turn, which does not wait
)

// CompactionCompleteData is the body of session.compaction_complete: the result of a
// compaction. It may be recorded after session.idle.
type CompactionCompleteData struct {
	Success              bool             `json:"success"`
	PreTokens            int              `json:"preCompactionTokens"`            // tokens of the request before
	ConversationTokens   int              `json:"conversationTokens"`             // tokens of its messages
	PreMessages          int              `json:"preCompactionMessagesLength"`    // number of its messages
	PostTokens           int              `json:"postCompactionTokens,omitempty"` // tokens of the request after
	MessagesRemoved      int              `json:"messagesRemoved"`
	TokensRemoved        int              `json:"tokensRemoved"`
	SummaryContent       string           `json:"summaryContent,omitempty"`       // summary as the model wrote it
	CheckpointNumber     int              `json:"checkpointNumber,omitempty"`     // number of the new epoch
	CheckpointPath       string           `json:"checkpointPath,omitempty"`       // file in the session's own folder that contains the summary
	TokenLimit           int              `json:"tokenLimit,omitempty"`           // tokens that a request may have
	Trigger              string           `json:"trigger"`                        // one of the Trigger constants
	CustomInstructions   string           `json:"customInstructions,omitempty"`   // wishes of a person or a hook for the summary
	CompactionTokensUsed *CompactionUsage `json:"compactionTokensUsed,omitempty"` // cost of the requests for the summary
	Error                string           `json:"error,omitempty"`                // reason of a failure

	// These fields are ours.
	CompactionID   string `json:"compactionId"`
	Outcome        string `json:"outcome"`                  // one of the Outcome constants below
	EpochID        string `json:"epochId,omitempty"`        // epoch that is current from here on, whatever the outcome; empty if there was none yet
	ItemsKept      int    `json:"itemsKept"`                // number of messages that are kept as they are
	Digest         bool   `json:"digest,omitempty"`         // true if no model wrote a summary, and extracts of the messages replace it
	DurationMs     int64  `json:"durationMs"`               // time since session.compaction_start
	EstimateSource string `json:"estimateSource,omitempty"` // same as in CompactionStartData
	Must           bool   `json:"must,omitempty"`           // same as in CompactionStartData
	Cause          string `json:"cause,omitempty"`          // one of the Cause constants below; empty if the compaction itself succeeded or failed
}

// The outcomes of a compaction.
const (
	OutcomeDone    = "done"    // a new epoch was opened
	OutcomeFailed  = "failed"  // the old epoch stays
	OutcomeSkipped = "skipped" // there was nothing to compact, or a hook prevented it
)

// The causes from outside for which a compaction ended without a new epoch.
const (
	CauseInterrupted = "interrupted" // the program ended during the compaction
	CauseAborted     = "aborted"     // a person or a client stopped it
	CauseStale       = "stale"       // the conversation changed during the compaction, so that the summary is wrong
	CauseBudget      = "budget"      // the budget did not let a request for the summary be made
)

// CompactionUsage is the cost of the requests for a summary.
type CompactionUsage struct {
	InputTokens      int64  `json:"inputTokens"`
	OutputTokens     int64  `json:"outputTokens"`
	CacheReadTokens  int64  `json:"cacheReadTokens"`
	CacheWriteTokens int64  `json:"cacheWriteTokens"`
	Model            string `json:"model,omitempty"`
	Duration         int64  `json:"duration"` // milliseconds

	// These fields are ours.
	CostUSD *float64 `json:"costUsd,omitempty"` // price of the requests; nil if that of one is not known
	Counted bool     `json:"counted,omitempty"` // true if each request has a ledger.request of its own
}

// ContextEpochData is the body of context.epoch, which opens an epoch: a view of the
// log. From here on the model sees the head of the epoch, and then every message from
// the position From on.
type ContextEpochData struct {
	EpochID     string          `json:"epochId"`
	Number      int             `json:"number"`                // number of the epoch in the session, never used twice
	Kind        string          `json:"kind"`                  // EpochCompaction or EpochUndo
	BaseEpochID string          `json:"baseEpochId,omitempty"` // epoch that was current before
	From        Seq             `json:"from"`                  // position of the first message that is kept
	Through     Seq             `json:"through"`               // position of the newest message when the epoch was made
	Most        int             `json:"most,omitempty"`        // bytes that are shown of each result of a tool up to Through; zero for all
	Earlier     []Reduction     `json:"earlier,omitempty"`     // limits like Most of earlier epochs that still apply, oldest first
	Head        json.RawMessage `json:"head,omitempty"`        // a compact.Head: what the view begins with; if missing, the view begins with the messages
	Tokens      int             `json:"tokens,omitempty"`      // tokens of the next request; only set by an undo
}

// A Reduction limits how much the model sees of the results of tools that were
// recorded up to a position.
type Reduction struct {
	Through Seq `json:"through"` // last position that the limit applies to
	Most    int `json:"most"`    // bytes that are shown of each result
}

// Reductions returns all limits that apply in the epoch, oldest first.
func (d ContextEpochData) Reductions() []Reduction {
	if d.Most == 0 {
		return d.Earlier
	}
	return append(d.Earlier[:len(d.Earlier):len(d.Earlier)], Reduction{d.Through, d.Most})
}

// The kinds of epochs.
const (
	EpochCompaction = "compaction" // opened by a compaction
	EpochUndo       = "undo"       // opened by undoing a compaction
)

// An Anchor compares our estimate of a request with what the provider counted. It is
// stored so that the next request can be measured as well after a restart as before.
type Anchor struct {
	Counted   int `json:"counted"`   // tokens that the provider counted
	Estimated int `json:"estimated"` // tokens that we estimated for the same request
	Messages  int `json:"messages"`  // number of messages of the request
	// Rates is how many tokens the provider has counted so far for each that we estimate,
	// for each script in the order of package window; zero for a script that is not known.
	Rates [7]float64 `json:"rates,omitzero"`
}

// UsageInfoData is the body of session.usage_info: how full the model's window is.
type UsageInfoData struct {
	TokenLimit     int   `json:"tokenLimit"`     // tokens that fit into the window
	CurrentTokens  int64 `json:"currentTokens"`  // tokens of the last request
	MessagesLength int   `json:"messagesLength"` // number of its messages, with the system prompt
	IsInitial      bool  `json:"isInitial"`      // true for the first request of the session
}

func (CompactionStartData) Type() Type    { return CompactionStart }
func (CompactionCompleteData) Type() Type { return CompactionComplete }
func (ContextEpochData) Type() Type       { return ContextEpoch }
func (UsageInfoData) Type() Type          { return UsageInfo }

func (d CompactionStartData) Request() Request { return Request{Key: d.Key, ID: d.CompactionID} }
