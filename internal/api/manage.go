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
	Source string `json:"source,omitempty"` // there are none that are "remote"
}

// LimitParams asks for so many; for all if nil.
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

// EnrichParams is what a client knows of sessions.
type EnrichParams struct {
	Sessions []json.RawMessage `json:"sessions"`
}

// EnrichResult is what there is to know of them.
type EnrichResult struct {
	Sessions []any `json:"sessions"`
}

// PrefixParams is the beginning of an id.
type PrefixParams struct {
	Prefix string `json:"prefix"`
}

// LastParams says where somebody works.
type LastParams struct {
	Context *Filter `json:"context,omitempty"`
}

// SizesResult tells how many bytes sessions take.
type SizesResult struct {
	Sizes map[event.SessionID]int64 `json:"sizes"`
}

// FreedResult tells how many bytes were freed by whose deletion.
type FreedResult struct {
	FreedBytes map[event.SessionID]int64 `json:"freedBytes"`
}

// PruneParams says which sessions are too old.
type PruneParams struct {
	OlderThanDays *int              `json:"olderThanDays"`
	DryRun        bool              `json:"dryRun,omitempty"`
	IncludeNamed  bool              `json:"includeNamed,omitempty"`
	Exclude       []event.SessionID `json:"excludeSessionIds,omitempty"`
}

// PruneResult tells what became of them.
type PruneResult struct {
	DryRun     bool              `json:"dryRun"`
	Candidates []event.SessionID `json:"candidates"`
	Deleted    []event.SessionID `json:"deleted"`
	Skipped    []event.SessionID `json:"skipped"`
	FreedBytes int64             `json:"freedBytes"`
}
