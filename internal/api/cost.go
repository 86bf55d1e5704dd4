package api

import "github.com/abide-run/abide/internal/event"

// Cost is the method that sums up what model requests have cost.
const Cost = "abide.cost"

// CostParams say which requests are summed up, and by what.
type CostParams struct {
	SessionID event.SessionID `json:"sessionId,omitempty"` // only this session and its agents; all if empty
	Since     string          `json:"since,omitempty"`     // first day, like 2026-01-31; all if empty
	By        []string        `json:"by,omitempty"`        // any of "session", "day", "model" and "purpose"; one sum if empty
}

// CostResult is the answer to CostParams.
type CostResult struct {
	Costs  []CostSum `json:"costs"`
	Unread int       `json:"unread,omitempty"` // number of sessions of older versions that cannot be read, and are not counted
}

// A CostSum is what some requests have cost. A field that is not asked for is missing.
type CostSum struct {
	SessionID event.SessionID `json:"sessionId,omitempty"` // empty for deleted sessions
	Day       string          `json:"day,omitempty"`
	Model     string          `json:"model,omitempty"`
	Purpose   string          `json:"purpose,omitempty"`

	Requests           int64    `json:"requests"`
	Failed             int64    `json:"failedRequests"`     // part of Requests: they gave no answer
	Unpriced           int64    `json:"unpricedRequests"`   // part of Requests: their price is not known, and not in CostUSD
	Unreported         int64    `json:"unreportedRequests"` // part of Unpriced: the provider has not counted them
	InputTokens        int64    `json:"inputTokens"`        // tokens that did not come from the cache
	OutputTokens       int64    `json:"outputTokens"`
	CacheReadTokens    int64    `json:"cacheReadTokens"`
	CacheWriteTokens   int64    `json:"cacheWriteTokens"`
	CacheWrite1hTokens int64    `json:"cacheWrite1hTokens"` // part of CacheWriteTokens
	ReasoningTokens    int64    `json:"reasoningTokens"`    // part of OutputTokens
	CostUSD            *float64 `json:"costUsd"`            // price of the requests whose price is known; null if that of none is
}
