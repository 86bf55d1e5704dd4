package event

// LedgerRequest is the type of the events of the ledger: what a provider has counted of a
// model request that has no assistant.usage. docs/EVENTS.md explains it.
const LedgerRequest Type = "ledger.request"

var _ = list(
	Kind{Type: LedgerRequest, body: body[LedgerRequestData], Hidden: true, Inert: true},
)

// The purposes of model requests.
const (
	PurposeTurn       = "turn"       // an answer to a person or a client
	PurposeAgent      = "agent"      // an answer of an agent to the session that started it
	PurposeCompaction = "compaction" // a summary that replaces the older part of a conversation
	PurposeHandoff    = "handoff"    // a summary for whoever takes over
	PurposeMemory     = "memory"     // finding what to remember of a session
	PurposeSampling   = "sampling"   // a request of an MCP server
)

// LedgerRequestData is the body of ledger.request. There is one for each request that a
// provider has answered, in the same append as what follows from the answer, and one for
// each failed request of which the provider has said that it counts.
type LedgerRequestData struct {
	Purpose            string    `json:"purpose"` // one of the Purpose constants
	Model              string    `json:"model"`
	InputTokens        int64     `json:"inputTokens"` // tokens of the request that did not come from the cache
	OutputTokens       int64     `json:"outputTokens"`
	CacheReadTokens    int64     `json:"cacheReadTokens"`
	CacheWriteTokens   int64     `json:"cacheWriteTokens"`
	CacheWrite1hTokens int64     `json:"cacheWrite1hTokens,omitempty"` // the part of CacheWriteTokens that is cached for an hour
	ReasoningTokens    int64     `json:"reasoningTokens,omitempty"`    // the part of OutputTokens that is reasoning
	CostUSD            *float64  `json:"costUsd,omitempty"`            // price of the request; nil if it is not known
	Failed             bool      `json:"failed,omitempty"`             // true if the request gave no answer
	RequestID          string    `json:"requestId,omitempty"`          // id that the provider gave the request
	AgentOf            SessionID `json:"agentOf,omitempty"`            // session that the request is counted with, if an agent made it
}

func (LedgerRequestData) Type() Type { return LedgerRequest }

// Counted returns the session with whose costs those of an agent are counted: the one
// that a person has started, also if there are agents between them.
func (a *AgentOf) Counted() SessionID {
	switch {
	case a == nil:
		return ""
	case a.Root != "":
		return a.Root
	}
	return a.Session
}
