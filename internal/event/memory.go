package event

import "encoding/json"

// The types of events about memory: what is remembered of a session for later ones.
// docs/MEMORY.md explains them.
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

// MemoryRules say what is remembered of a session, and when.
type MemoryRules struct {
	ExtractThreshold int    `json:"extractThreshold,omitempty"` // tokens of new messages that start an extraction; zero turns memory off
	Model            string `json:"model,omitempty"`            // model that extracts; the session's if empty
	IdleMs           int64  `json:"idleMs,omitempty"`           // time without events before findings are consolidated; the default if zero
	TimeoutMs        int64  `json:"timeoutMs,omitempty"`        // time limit of one attempt at an extraction; the default if zero
	Where            string `json:"where,omitempty"`            // place where memory is stored: "workspace" or "user"; if empty, the working directory decides
	RecallTokens     *int   `json:"recallTokens,omitempty"`     // tokens of memory that a new session gets at most; the default if nil
}

// MemoryExtractedData is the body of memory.extracted: the findings of an extraction,
// which reads one part of the log. The next extraction reads the part after it.
type MemoryExtractedData struct {
	JobID   string `json:"jobId,omitempty"`   // job that did the extraction
	From    Seq    `json:"from"`              // first position of the part
	To      Seq    `json:"to"`                // last position of the part
	Hash    string `json:"hash"`              // hash of the chain at To, in hexadecimal
	Bytes   int64  `json:"bytes"`             // bytes of the messages in the part
	EpochID string `json:"epochId,omitempty"` // epoch that was current at To

	Found       int             `json:"found"`       // number of findings in the four lists
	Decisions   json.RawMessage `json:"decisions"`   // list of memory.Decision
	Discussions json.RawMessage `json:"discussions"` // list of memory.Discussion
	Attempts    json.RawMessage `json:"attempts"`    // list of memory.Attempt
	Requests    json.RawMessage `json:"requests"`    // list of memory.Request

	Day         string      `json:"day,omitempty"`   // day on which the part ends, like 2026-11-18
	Model       string      `json:"model,omitempty"` // model that extracted
	Usage       MemoryUsage `json:"usage,omitzero"`
	Quarantined bool        `json:"quarantined,omitempty"` // true if all attempts failed and the part was passed over; it can be extracted again later
	Error       string      `json:"error,omitempty"`       // error of the last attempt, if the part was passed over
}

// MemoryUsage is the cost of an extraction, over all of its attempts.
type MemoryUsage struct {
	Requests int   `json:"requests"` // number of model requests
	Input    int64 `json:"inputTokens"`
	Output   int64 `json:"outputTokens"`
	Counted  bool  `json:"counted,omitempty"` // true if each request has a ledger.request of its own
}

// MemoryConsolidatedData is the body of memory.consolidated: findings were written
// into the pages of memory, or forgotten.
type MemoryConsolidatedData struct {
	JobID   string       `json:"jobId,omitempty"` // job that did the consolidation
	Through Seq          `json:"through"`         // position of the newest memory.extracted whose findings are included
	Pages   []MemoryPage `json:"pages"`           // pages that were changed
	// Forgotten means that the findings up to Through were removed from memory
	// instead, and that messages up to Through are never extracted again.
	Forgotten bool   `json:"forgotten,omitempty"`
	Hash      string `json:"hash,omitempty"` // hash of the chain at Through, in hexadecimal; only with Forgotten
}

// A MemoryPage is a page of memory that was changed.
type MemoryPage struct {
	Path    string `json:"path"`    // path of the page in the memory folder
	Version int    `json:"version"` // number of the version that was written
	Added   int    `json:"added"`   // number of facts that are new or were confirmed
	Dropped int    `json:"dropped"` // number of old facts that were removed because the page was full
	// Superseded is the number of facts that were removed because a newer one takes their place.
	Superseded int `json:"superseded,omitempty"`
}

// MemoryRecalledData is the body of memory.recalled: what a new session was told from
// memory.
type MemoryRecalledData struct {
	Text  string   `json:"text"`  // text as the model reads it
	Pages []string `json:"pages"` // paths of the pages that it came from

	Parts []MemoryPart `json:"parts,omitempty"` // what was told of each page
}

// A MemoryPart is what a new session was told of one page: all text of people, and the newest
// facts that had room.
type MemoryPart struct {
	Path  string `json:"path"`
	Own   int    `json:"own"`   // lines of text of people
	Facts int    `json:"facts"` // facts that were told
	Of    int    `json:"of"`    // facts of the page
}

func (MemoryExtractedData) Type() Type    { return MemoryExtracted }
func (MemoryConsolidatedData) Type() Type { return MemoryConsolidated }
func (MemoryRecalledData) Type() Type     { return MemoryRecalled }
