package event

import "encoding/json"

// The kinds of events about memory.
const (
	MemoryExtracted    Type = "memory.extracted"
	MemoryConsolidated Type = "memory.consolidated"
	MemoryRecalled     Type = "memory.recalled"
)

var _ = list(
	Kind{Type: MemoryExtracted, body: body[MemoryExtractedData], Hidden: true, Lasting: true},
	Kind{Type: MemoryConsolidated, body: body[MemoryConsolidatedData], Hidden: true, Lasting: true},
	Kind{Type: MemoryRecalled, body: body[MemoryRecalledData], Hidden: true, Lasting: true},
)

// MemoryRules say what is remembered of a session, and when. What is zero is off, or
// as it usually is.
type MemoryRules struct {
	ExtractThreshold int    `json:"extractThreshold,omitempty"` // tokens of new history
	Model            string `json:"model,omitempty"`            // that extracts; the session's own if empty
	IdleMs           int64  `json:"idleMs,omitempty"`           // without events, before what was extracted is consolidated
	TimeoutMs        int64  `json:"timeoutMs,omitempty"`        // of one attempt at an extraction
	Where            string `json:"where,omitempty"`            // MemoryWorkspace, MemoryUser, or empty: as the folder is
	RecallTokens     *int   `json:"recallTokens,omitempty"`     // that a new session is told at most; nil is the usual
}

// Where memory is kept.
const (
	MemoryWorkspace = "workspace"
	MemoryUser      = "user"
)

// MemoryExtractedData is what was found in a part of the log. The next part begins
// right after it.
type MemoryExtractedData struct {
	JobID   string `json:"jobId,omitempty"`
	From    Seq    `json:"from"`
	To      Seq    `json:"to"`
	Hash    string `json:"hash"`  // of the chain after To
	Bytes   int64  `json:"bytes"` // of the messages in it
	EpochID string `json:"epochId,omitempty"`

	Found       int             `json:"found"` // how many findings there are
	Decisions   json.RawMessage `json:"decisions"`
	Discussions json.RawMessage `json:"discussions"`
	Attempts    json.RawMessage `json:"attempts"`
	Requests    json.RawMessage `json:"requests"`

	Model string      `json:"model,omitempty"`
	Usage MemoryUsage `json:"usage,omitzero"`
	// Quarantined means that nobody could read this part. It can be tried again.
	Quarantined bool   `json:"quarantined,omitempty"`
	Error       string `json:"error,omitempty"`
}

// MemoryUsage is what an extraction has cost, in tokens.
type MemoryUsage struct {
	Requests int   `json:"requests"`
	Input    int64 `json:"inputTokens"`
	Output   int64 `json:"outputTokens"`
}

// MemoryConsolidatedData tells that what was found is in the pages of memory.
type MemoryConsolidatedData struct {
	JobID   string       `json:"jobId,omitempty"`
	Through Seq          `json:"through"` // the newest memory.extracted that is
	Pages   []MemoryPage `json:"pages"`   // that were changed
	// Forgotten means that what was found up to here was removed instead, and that
	// what was said up to here is not looked at again.
	Forgotten bool   `json:"forgotten,omitempty"`
	Hash      string `json:"hash,omitempty"` // of the chain after Through, if it was forgotten
}

// A MemoryPage is a page that was changed.
type MemoryPage struct {
	Path    string `json:"path"`
	Version int    `json:"version"`
	Added   int    `json:"added"`   // facts that are new, or were seen again
	Dropped int    `json:"dropped"` // facts that there was no room for any more
}

// MemoryRecalledData is what a new session was told of memory.
type MemoryRecalledData struct {
	Text  string   `json:"text"`
	Pages []string `json:"pages"`
}

func (MemoryExtractedData) Type() Type    { return MemoryExtracted }
func (MemoryConsolidatedData) Type() Type { return MemoryConsolidated }
func (MemoryRecalledData) Type() Type     { return MemoryRecalled }
