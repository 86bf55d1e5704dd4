package api

import "github.com/abide-run/abide/internal/event"

// What is remembered, and the jobs that see to it.
const (
	MemoryShow        = "abide.memory.show"        // pages, or one of them
	MemorySearch      = "abide.memory.search"      // lines of pages
	MemoryEdit        = "abide.memory.edit"        // give a page another text
	MemoryHistory     = "abide.memory.history"     // versions of a page
	MemoryRevert      = "abide.memory.revert"      // give a page the text of a version
	MemoryForget      = "abide.memory.forget"      // remove what came only from a session
	MemoryConsolidate = "abide.memory.consolidate" // have a session remembered now
	Jobs              = "abide.jobs"               // of one session, or of all
	JobRetry          = "abide.jobRetry"           // try one again that was set aside
	JobWait           = "abide.jobWait"            // answered when it is done
)

// MemoryParams names pages: those that matter in a folder.
type MemoryParams struct {
	Cwd     string `json:"cwd,omitempty"`
	Page    string `json:"page,omitempty"`
	User    bool   `json:"user,omitempty"`    // the user's own, not those of the workspace
	Version int    `json:"version,omitempty"` // not the newest text but this one
}

// A MemoryBook is the pages in one place.
type MemoryBook struct {
	Path  string       `json:"path"`
	User  bool         `json:"user,omitempty"`
	Pages []MemoryPage `json:"pages"`
}

// A MemoryPage is a page of memory.
type MemoryPage struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Title   string `json:"title,omitempty"`
	Facts   int    `json:"facts"`
	Version int    `json:"version,omitempty"`
	Text    string `json:"text,omitempty"`   // if it was asked for by name
	Digest  string `json:"digest,omitempty"` // of the text, for an edit
	Damage  string `json:"damage,omitempty"` // why it cannot be read as a page
}

// MemoryResult answers MemoryParams, the nearest book first.
type MemoryResult struct {
	Books []MemoryBook `json:"books"`
}

// MemorySearchParams looks for lines with all words of a query.
type MemorySearchParams struct {
	Cwd   string `json:"cwd,omitempty"`
	Query string `json:"query"`
	Max   int    `json:"max,omitempty"` // 50 if zero
}

// A MemoryMatch is a line of a page.
type MemoryMatch struct {
	Page string `json:"page"`
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// MemorySearchResult answers MemorySearchParams.
type MemorySearchResult struct {
	Matches []MemoryMatch `json:"matches"`
}

// MemoryEditParams gives a page another text, unless it is not what it was any more.
type MemoryEditParams struct {
	Cwd  string `json:"cwd,omitempty"`
	Page string `json:"page"`
	User bool   `json:"user,omitempty"`
	Text string `json:"text"`
	Was  string `json:"was,omitempty"` // the digest of the text that was edited; empty for a new page
}

// MemoryEdited tells of a page that was changed.
type MemoryEdited struct {
	Path    string `json:"path"`
	Version int    `json:"version"`
}

// A MemoryVersion is what a page was.
type MemoryVersion struct {
	Version int    `json:"version"`
	Time    string `json:"time"`
	Bytes   int64  `json:"bytes"`
}

// MemoryHistoryResult lists versions, the oldest first.
type MemoryHistoryResult struct {
	Path     string          `json:"path"`
	Versions []MemoryVersion `json:"versions"`
}

// MemoryForgetParams names a session that is to be forgotten.
type MemoryForgetParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Cwd       string          `json:"cwd,omitempty"` // where it worked, if it was deleted
}

// MemoryForgotten tells how many facts are gone.
type MemoryForgotten struct {
	Facts int `json:"facts"`
}

// JobParams names a job.
type JobParams struct {
	JobID string `json:"jobId"`
}

// A Job is upkeep of a session.
type Job struct {
	JobID     string          `json:"jobId"`
	Kind      string          `json:"kind"`
	SessionID event.SessionID `json:"sessionId"`
	EpochID   string          `json:"epochId,omitempty"`
	From      event.Seq       `json:"from"`
	To        event.Seq       `json:"to"`
	Attempts  int             `json:"attempts"`
	Status    string          `json:"status"` // "waiting", "running" or "aside"
	Due       string          `json:"dueAt,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// The states of a job.
const (
	JobWaiting = "waiting"
	JobRunning = "running"
	JobAside   = "aside" // until a person wants it
)

// JobsResult lists jobs, and what became of others since the engine started.
type JobsResult struct {
	Jobs  []Job    `json:"jobs"`
	Stats JobStats `json:"stats"`
}

// JobStats counts jobs.
type JobStats struct {
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	Aside  int64 `json:"aside"`
	Turns  int64 `json:"turnsThatWaited"` // for a job: none ever should
}
