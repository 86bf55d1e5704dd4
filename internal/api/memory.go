package api

import "github.com/abide-run/abide/internal/event"

// The methods about memory, and about the jobs that maintain it.
const (
	MemoryShow        = "abide.memory.show"        // pages, or one of them
	MemorySearch      = "abide.memory.search"      // lines of pages
	MemoryEdit        = "abide.memory.edit"        // replace the text of a page
	MemoryHistory     = "abide.memory.history"     // versions of a page
	MemoryRevert      = "abide.memory.revert"      // restore an earlier version of a page
	MemoryForget      = "abide.memory.forget"      // remove what came only from a session
	MemoryConsolidate = "abide.memory.consolidate" // add a session to memory now
	Jobs              = "abide.jobs"               // jobs of one session, or of all
	JobRetry          = "abide.jobRetry"           // retry a job that was set aside
	JobWait           = "abide.jobWait"            // wait until a job is done
)

// MemoryParams selects the pages for a directory.
type MemoryParams struct {
	Cwd     string `json:"cwd,omitempty"`
	Page    string `json:"page,omitempty"`
	User    bool   `json:"user,omitempty"`    // true for the user's own pages
	Version int    `json:"version,omitempty"` // version of the page; zero for the latest one
}

// A MemoryBook is the pages in one directory.
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
	Text    string `json:"text,omitempty"`   // set if the page was requested by name
	Digest  string `json:"digest,omitempty"` // digest of the text, for MemoryEditParams
	Damage  string `json:"damage,omitempty"` // reason why the file is not a valid page
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

// MemoryEditParams replaces the text of a page, unless it was changed meanwhile.
type MemoryEditParams struct {
	Cwd  string `json:"cwd,omitempty"`
	Page string `json:"page"`
	User bool   `json:"user,omitempty"`
	Text string `json:"text"`
	Was  string `json:"was,omitempty"` // digest of the text before the edit; empty for a new page
}

// MemoryEdited is the path and the new version of a page.
type MemoryEdited struct {
	Path    string `json:"path"`
	Version int    `json:"version"`
}

// A MemoryVersion describes a version of a page.
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

// MemoryForgetParams names a session to forget.
type MemoryForgetParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Cwd       string          `json:"cwd,omitempty"` // directory of the session, if it was deleted
}

// MemoryForgotten is the number of facts that were removed.
type MemoryForgotten struct {
	Facts int `json:"facts"`
}

// JobParams names a job.
type JobParams struct {
	JobID string `json:"jobId"`
}

// A Job is a background job of a session.
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
	JobAside   = "aside" // the job waits until a person retries it
)

// JobsResult lists jobs, and counts those since the engine started.
type JobsResult struct {
	Jobs  []Job    `json:"jobs"`
	Stats JobStats `json:"stats"`
}

// JobStats counts jobs.
type JobStats struct {
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`
	Aside  int64 `json:"aside"`
	Turns  int64 `json:"turnsThatWaited"` // number of turns that waited for a job, which should be zero
}
