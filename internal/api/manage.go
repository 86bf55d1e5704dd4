package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The methods that manage the sessions of a data folder.
const (
	SessionsList        = "sessions.list"
	SessionsIDs         = "sessions.listNonEmptySessionIds"
	SessionsMetadata    = "sessions.getMetadata"
	SessionsEnrich      = "sessions.enrichMetadata"
	SessionsByPrefix    = "sessions.findByPrefix"
	SessionsLast        = "sessions.getLastForContext"
	SessionsSizes       = "sessions.getSizes"
	SessionsSave        = "sessions.save"
	SessionsClose       = "sessions.close"
	SessionsReleaseLock = "sessions.releaseLock"
	SessionsDelete      = "sessions.delete"
	SessionsBulkDelete  = "sessions.bulkDelete"
	SessionsPrune       = "sessions.pruneOld"
)

// SessionsListParams asks for the sessions of a data folder.
type SessionsListParams struct {
	ListParams
	Source string `json:"source,omitempty"` // no session is "remote"
}

// LimitParams is the maximum number of results; no limit if nil.
type LimitParams struct {
	Limit *int `json:"limit,omitempty"`
}

// IDsResult names sessions.
type IDsResult struct {
	SessionIDs []event.SessionID `json:"sessionIds"`
}

// IDsParams names sessions.
type IDsParams struct {
	SessionIDs []event.SessionID `json:"sessionIds"`
}

// EnrichParams lists sessions as a client knows them.
type EnrichParams struct {
	Sessions []json.RawMessage `json:"sessions"`
}

// EnrichResult lists the sessions with all their metadata.
type EnrichResult struct {
	Sessions []any `json:"sessions"`
}

// PrefixParams is the start of a session id.
type PrefixParams struct {
	Prefix string `json:"prefix"`
}

// LastParams is the directory or repository of a client.
type LastParams struct {
	Context *Filter `json:"context,omitempty"`
}

// SizesResult is the size of each session, in bytes.
type SizesResult struct {
	Sizes map[event.SessionID]int64 `json:"sizes"`
}

// FreedResult is the number of bytes that each deletion freed.
type FreedResult struct {
	FreedBytes map[event.SessionID]int64 `json:"freedBytes"`
}

// PruneParams selects old sessions to delete.
type PruneParams struct {
	OlderThanDays *int              `json:"olderThanDays"`
	DryRun        bool              `json:"dryRun,omitempty"`
	IncludeNamed  bool              `json:"includeNamed,omitempty"`
	Exclude       []event.SessionID `json:"excludeSessionIds,omitempty"`
	// ModifiedBefore is a time in RFC 3339 before which sessions are old, instead of
	// the number of days. It is of abide.
	ModifiedBefore string `json:"modifiedBefore,omitempty"`
}

// PruneResult lists the sessions that were deleted and those that were skipped.
type PruneResult struct {
	DryRun     bool              `json:"dryRun"`
	Candidates []event.SessionID `json:"candidates"`
	Deleted    []event.SessionID `json:"deleted"`
	Skipped    []event.SessionID `json:"skipped"`
	FreedBytes int64             `json:"freedBytes"`
	// Reasons are the reasons why sessions were skipped, and Old describes all sessions
	// that are old. They are of abide.
	Reasons map[event.SessionID]string `json:"reasons,omitempty"`
	Old     []SessionInfo              `json:"old,omitempty"`
}
