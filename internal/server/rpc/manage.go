package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// These methods manage the sessions of the data folder.
var _ = register(map[string]method{
	api.SessionsList:        on((*conn).listSessions),
	api.SessionsIDs:         on((*conn).listIDs),
	api.SessionsMetadata:    on((*conn).metadata),
	api.SessionsEnrich:      on((*conn).enrich),
	api.SessionsByPrefix:    on((*conn).byPrefix),
	api.SessionsLast:        on((*conn).lastForContext),
	api.SessionsSizes:       on((*conn).sizes),
	api.SessionsSave:        on((*conn).save),
	api.SessionsClose:       on((*conn).closeSession),
	api.SessionsReleaseLock: on((*conn).releaseLock),
	api.SessionsDelete:      on((*conn).deleteSession),
	api.SessionsBulkDelete:  on((*conn).bulkDelete),
	api.SessionsPrune:       on((*conn).prune),
})

// within reports whether a session works in the folders that a filter names.
func within(f api.Filter, s eventlog.Session) bool {
	return (f.Cwd == "" || f.Cwd == s.Info.Dir) && (f.GitRoot == "" || s.Info.Workspace == nil && places.Locate(s.Info.Dir) == places.Place{Key: filepath.Clean(f.GitRoot), Kind: "repo"})
}

// A sieve applies a filter to many sessions. Git is asked once for each folder,
// and only if the filter is about what git knows: it is the repository and the
// branch that the folder has now.
type sieve struct {
	ctx   context.Context
	start func(*exec.Cmd) error // starts git
	api.Filter
	checkouts map[string]checkout
}

func (s *sieve) lets(one eventlog.Session) bool {
	if !within(s.Filter, one) {
		return false
	}
	if s.Repository == "" && s.Branch == "" {
		return true
	}
	at := s.checkout(one.Info.Dir)
	return (s.Repository == "" || strings.EqualFold(s.Repository, at.repository)) && (s.Branch == "" || s.Branch == at.branch)
}

func (s *sieve) checkout(dir string) checkout {
	if dir == "" {
		return checkout{}
	}
	if _, known := s.checkouts[dir]; !known {
		if s.checkouts == nil {
			s.checkouts = make(map[string]checkout)
		}
		s.checkouts[dir] = repository{s.ctx, dir, s.start}.checkout()
	}
	return s.checkouts[dir]
}

// noFork says why a session cannot be forked, in the words that clients look for.
func noFork(p api.ForkParams, err error) error {
	switch {
	case p.SessionID == "":
		return notFound(p.SessionID, err)
	case errors.Is(err, session.ErrNotFound):
		return said("Session %s not found or has no persisted events", p.SessionID)
	case errors.Is(err, session.ErrPosition) && p.ToEventID != "":
		return said("Event %s not found", p.ToEventID)
	}
	return err
}

func (c *conn) listSessions(ctx context.Context, p api.SessionsListParams) (api.ListResult, error) {
	if p.Source == "remote" {
		return api.ListResult{Sessions: []api.SessionInfo{}}, nil
	}
	return c.list(ctx, p.ListParams)
}

func (c *conn) listIDs(ctx context.Context, p api.LimitParams) (api.IDsResult, error) {
	result := api.IDsResult{SessionIDs: []event.SessionID{}}
	for s, err := range c.server.host.List(ctx, eventlog.Query{Listed: true}) {
		if err != nil || (p.Limit != nil && len(result.SessionIDs) >= *p.Limit) {
			return result, err
		}
		result.SessionIDs = append(result.SessionIDs, s.ID)
	}
	return result, nil
}

// enrich adds what is known of sessions to what a client knows. Of one that is
// not here, that is all.
func (c *conn) enrich(ctx context.Context, p api.EnrichParams) (api.EnrichResult, error) {
	result := api.EnrichResult{Sessions: []any{}}
	for i, raw := range p.Sessions {
		var of api.SessionParams
		if err := json.Unmarshal(raw, &of); err != nil || of.SessionID == "" {
			return result, errBadParams{fmt.Errorf("sessions[%d].sessionId: it is missing", i)}
		}
		known, err := c.metadata(ctx, of)
		if err != nil {
			return result, err
		}
		if known.Session == nil {
			result.Sessions = append(result.Sessions, raw)
		} else {
			result.Sessions = append(result.Sessions, known.Session)
		}
	}
	return result, nil
}

// byPrefix finds the session whose id begins so, if there is only one.
func (c *conn) byPrefix(ctx context.Context, p api.PrefixParams) (api.LastIDResult, error) {
	var found api.LastIDResult
	if p.Prefix == "" {
		return found, errBadParams{errors.New("prefix: it is empty")}
	}
	for s, err := range c.server.host.List(ctx, eventlog.Query{Listed: true, IDPrefix: p.Prefix}) {
		if err != nil {
			return api.LastIDResult{}, err
		}
		if found.SessionID != "" {
			return api.LastIDResult{}, nil
		}
		found.SessionID = s.ID
	}
	return found, nil
}

// lastForContext finds the session that was used last in a folder, or else in
// its repository.
func (c *conn) lastForContext(ctx context.Context, p api.LastParams) (api.LastIDResult, error) {
	if p.Context == nil {
		return c.lastID(ctx, struct{}{})
	}
	root := p.Context.GitRoot
	if root == "" && p.Context.Cwd != "" {
		if at := places.Locate(p.Context.Cwd); at.Kind == "repo" {
			root = at.Key
		}
	}
	var beside api.LastIDResult
	for s, err := range c.server.host.List(ctx, eventlog.Query{Listed: true}) {
		if err != nil {
			return api.LastIDResult{}, err
		}
		switch {
		case p.Context.Cwd != "" && s.Info.Dir == p.Context.Cwd:
			return api.LastIDResult{SessionID: s.ID}, nil
		case beside.SessionID == "" && root != "" && within(api.Filter{GitRoot: root}, s):
			beside.SessionID = s.ID
		}
	}
	return beside, nil
}

// size counts the bytes of a session's events and of its own files.
func (c *conn) size(ctx context.Context, id event.SessionID) (int64, error) {
	var total int64
	for e, err := range c.server.host.Log.Events(ctx, id, 0) {
		var damage *eventlog.Damage
		if errors.As(err, &damage) {
			break // events after the damage cannot be counted
		}
		if err != nil {
			return 0, err
		}
		total += int64(len(e.Bytes))
	}
	if c.server.opts.Workspace == nil {
		return total, nil
	}
	_ = filepath.WalkDir(c.server.opts.Workspace(id), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it need not be there
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total, nil
}

func (c *conn) sizes(ctx context.Context, _ struct{}) (api.SizesResult, error) {
	result := api.SizesResult{Sizes: make(map[event.SessionID]int64)}
	for s, err := range c.server.host.List(ctx, eventlog.Query{Listed: true}) {
		if err != nil {
			return result, err
		}
		if result.Sizes[s.ID], err = c.size(ctx, s.ID); err != nil {
			return result, err
		}
	}
	return result, nil
}

// save has nothing to do: what was acknowledged is stored.
func (c *conn) save(ctx context.Context, p api.SessionParams) (api.Nothing, error) {
	_, err := c.server.host.Status(ctx, p.SessionID)
	return api.Nothing{}, notFound(p.SessionID, err)
}

// closeSession ends the use of a session for everybody. One that nobody uses is
// closed.
func (c *conn) closeSession(ctx context.Context, p api.SessionParams) (nothing api.Nothing, err error) {
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return nothing, notFound(p.SessionID, err)
	}
	if c.server.host.Clients.InUse(p.SessionID) {
		_, err = c.shutdownSession(ctx, api.ShutdownParams{SessionID: p.SessionID})
	}
	return nothing, err
}

// releaseLock lets a session go that this client holds.
func (c *conn) releaseLock(ctx context.Context, p api.SessionParams) (nothing api.Nothing, err error) {
	if p.SessionID == "" {
		return nothing, missing("sessionId")
	}
	_, err = c.destroy(ctx, p)
	return nothing, err
}

func (c *conn) deleteSession(ctx context.Context, p api.SessionParams) (any, error) {
	c.detach(p.SessionID, false)
	return nil, notFound(p.SessionID, c.server.host.Delete(ctx, p.SessionID))
}

// remove deletes a session, and tells how much room it took.
func (c *conn) remove(ctx context.Context, id event.SessionID) (int64, error) {
	size, err := c.size(ctx, id)
	if err == nil {
		_, err = c.deleteSession(ctx, api.SessionParams{SessionID: id})
	}
	return size, err
}

// bulkDelete deletes sessions. Those that are not there are not mentioned.
func (c *conn) bulkDelete(ctx context.Context, p api.IDsParams) (api.FreedResult, error) {
	result := api.FreedResult{FreedBytes: make(map[event.SessionID]int64)}
	for _, id := range p.SessionIDs {
		_, err := c.server.host.Info(ctx, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err == nil {
			result.FreedBytes[id], err = c.remove(ctx, id)
		}
		if err != nil {
			return result, fmt.Errorf("delete session %s: %w", id, err)
		}
	}
	return result, nil
}

// prune deletes the sessions that nobody has used for so many days. Those that
// somebody uses, that have work to do or that people gave a name are skipped.
func (c *conn) prune(ctx context.Context, p api.PruneParams) (api.PruneResult, error) {
	result := api.PruneResult{
		DryRun: p.DryRun, Candidates: []event.SessionID{}, Deleted: []event.SessionID{}, Skipped: []event.SessionID{},
		Reasons: make(map[event.SessionID]string),
	}
	before, err := pruneBefore(p)
	if err != nil {
		return result, err
	}
	r := session.Age{Before: before, Named: p.IncludeNamed, Except: p.Exclude}
	for v, err := range c.server.host.Retention.Old(ctx, r) {
		if err != nil {
			return result, err
		}
		id := v.Session.ID
		result.Old = append(result.Old, c.info(v.Session))
		if v.Keep != "" {
			result.Skipped, result.Reasons[id] = append(result.Skipped, id), v.Keep
			continue
		}
		result.Candidates = append(result.Candidates, id)
	}
	return result, c.pruned(ctx, r, &result)
}

// pruneBefore returns the time before which sessions are old.
func pruneBefore(p api.PruneParams) (time.Time, error) {
	if p.ModifiedBefore != "" {
		before, err := time.Parse(time.RFC3339, p.ModifiedBefore)
		if err != nil {
			return before, errBadParams{fmt.Errorf("modifiedBefore: %q is no time in RFC 3339, like 2026-01-31T12:00:00Z", p.ModifiedBefore)}
		}
		return before, nil
	}
	if p.OlderThanDays == nil || *p.OlderThanDays < 0 {
		return time.Time{}, errBadParams{errors.New("olderThanDays: want a number of days, from 0 on")}
	}
	return time.Now().AddDate(0, 0, -*p.OlderThanDays), nil
}

// pruned deletes the candidates, or only counts what that would free.
func (c *conn) pruned(ctx context.Context, old session.Age, r *api.PruneResult) error {
	for _, id := range r.Candidates {
		size, err := c.size(ctx, id)
		keep := ""
		if err == nil && !r.DryRun {
			keep, err = c.server.host.Retention.Delete(ctx, id, old)
		}
		switch {
		case errors.Is(err, session.ErrNotFound): // somebody has deleted it meanwhile
			continue
		case err != nil:
			return fmt.Errorf("session %s: %w", id, err)
		case keep != "":
			r.Skipped, r.Reasons[id] = append(r.Skipped, id), keep
			continue
		}
		r.FreedBytes += size
		if !r.DryRun {
			r.Deleted = append(r.Deleted, id)
		}
	}
	return nil
}
