package rpc

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// These methods look at sessions and manage them.
var _ = register(map[string]method{
	api.SessionList:        on((*conn).list),
	api.SessionGetMessages: on((*conn).messages),
	api.SessionGetMetadata: on((*conn).metadata),
	api.SessionGetLastID:   on((*conn).lastID),
	api.SessionDelete:      on((*conn).delete),
	api.SessionsFork:       on((*conn).fork),
	api.Events:             on((*conn).events),
	api.Search:             on((*conn).search),
	api.Verify:             on((*conn).verify),
	api.Status:             on((*conn).status),
})

func (c *conn) info(s eventlog.Session) api.SessionInfo {
	i := api.SessionInfo{
		SessionID: s.ID, StartTime: event.FormatTime(s.Created), ModifiedTime: event.FormatTime(s.Modified),
		Summary: s.Info.Summary, Name: s.Info.Name, ClientName: s.Info.Client,
		Abide: &api.SessionAbide{
			Events: s.End.Seq, Hash: hex.EncodeToString(s.End.Hash[:]), Active: s.Info.Active, Questions: s.Info.Questions, Parent: s.Parent, Workspace: s.Info.Workspace,
		},
	}
	if s.Info.Dir != "" {
		i.Context = &event.Place{Cwd: s.Info.Dir}
	}
	i.Abide.Unattended = s.Info.Active && !s.Info.Waiting && !c.server.host.Work.GoesOn(s.ID)
	if s.Damage != nil {
		i.Abide.Damage = s.Damage.Error()
	}
	return i
}

// The number of sessions that a page has at most, and of matches that an answer has.
const (
	maxPage    = 1000
	maxMatches = 10000
)

func (c *conn) list(ctx context.Context, p api.ListParams) (api.ListResult, error) {
	result := api.ListResult{Sessions: []api.SessionInfo{}}
	q, err := listQuery(p)
	if err != nil {
		return result, err
	}
	where, last := sieve{ctx: ctx, start: c.server.opts.Start, Filter: p.Filter}, q.After
	for s, err := range c.server.host.List(ctx, q) {
		if err != nil {
			return result, err
		}
		info := c.info(s)
		if !where.lets(s) || p.Filter.State != "" && p.Filter.State != info.State() {
			continue
		}
		place := s.Place(last.Began)
		if last.Began.IsZero() {
			place = s.Place(s.Modified)
		}
		if p.Limit > 0 && len(result.Sessions) >= min(p.Limit, maxPage) && !place.Moved() {
			result.NextCursor = listCursor(last)
			break
		}
		result.Sessions, last = append(result.Sessions, info), place
	}
	return result, nil
}

// listQuery returns the query of a request for a list. It is about what the store knows;
// the rest of the filter is left to the caller.
func listQuery(p api.ListParams) (q eventlog.Query, err error) {
	f := p.Filter
	q = eventlog.Query{Listed: !f.Unlisted, Dir: f.Cwd, Text: f.Text, IDPrefix: f.IDPrefix, Busy: f.State != "" && f.State != api.StateIdle}
	if f.State != "" && !slices.Contains(api.States, f.State) {
		return q, errBadParams{fmt.Errorf("filter.state: %q is unknown; use one of %s", f.State, strings.Join(api.States, ", "))}
	}
	if p.Limit < 0 {
		return q, errBadParams{errors.New("limit: it is negative")}
	}
	for name, at := range map[string]struct {
		text string
		to   *time.Time
	}{"modifiedSince": {f.ModifiedSince, &q.ModifiedSince}, "modifiedBefore": {f.ModifiedBefore, &q.ModifiedBefore}} {
		if at.text == "" {
			continue
		}
		if *at.to, err = time.Parse(time.RFC3339, at.text); err != nil {
			return q, errBadParams{fmt.Errorf("filter.%s: %q is no time in RFC 3339, like 2026-01-31T12:00:00Z", name, at.text)}
		}
	}
	if p.Cursor != "" {
		q.After, err = parseListCursor(p.Cursor)
	}
	return q, err
}

// listCursor returns a place in a list as clients keep it.
func listCursor(p eventlog.Place) string {
	return fmt.Sprintf("%d.%d.%d", p.Began.UnixMicro(), p.Modified.UnixMicro(), p.Row)
}

func parseListCursor(text string) (eventlog.Place, error) {
	var numbers [3]int64
	parts := strings.Split(text, ".")
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(parts) != len(numbers) {
			return eventlog.Place{}, errBadParams{fmt.Errorf("cursor: %q is none of ours", text)}
		}
		numbers[i] = n
	}
	return eventlog.Place{Began: time.UnixMicro(numbers[0]), Modified: time.UnixMicro(numbers[1]), Row: numbers[2]}, nil
}

// messages are the stored bytes, mended where need be: a long history is not
// encoded again.
func (c *conn) messages(ctx context.Context, p api.SessionParams) (json.RawMessage, error) {
	list, err := c.server.host.Log.Messages(ctx, p.SessionID)
	if err != nil {
		return nil, notFound(p.SessionID, err)
	}
	for i := range list {
		list[i] = mended(list[i])
	}
	return eventsResult(list), nil
}

// eventsResult is an api.EventsResult.
func eventsResult(list []event.Event) json.RawMessage {
	size := len(`{"events":[]}`)
	for _, e := range list {
		size += len(e.Bytes) + 1
	}
	b := append(make([]byte, 0, size), `{"events":[`...)
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e.Bytes...)
	}
	return append(b, `]}`...)
}

func (c *conn) metadata(ctx context.Context, p api.SessionParams) (api.MetadataResult, error) {
	s, err := c.server.host.Info(ctx, p.SessionID)
	if errors.Is(err, session.ErrNotFound) {
		return api.MetadataResult{}, nil
	}
	i := c.info(s)
	return api.MetadataResult{Session: &i}, err
}

func (c *conn) lastID(ctx context.Context, _ struct{}) (api.LastIDResult, error) {
	for s, err := range c.server.host.List(ctx, eventlog.Query{Listed: true}) {
		return api.LastIDResult{SessionID: s.ID}, err
	}
	return api.LastIDResult{}, nil
}

func (c *conn) delete(ctx context.Context, p api.SessionParams) (api.Success, error) {
	c.detach(p.SessionID, false)
	err := c.server.host.Delete(ctx, p.SessionID)
	if errors.Is(err, session.ErrNotFound) {
		return api.Success{Error: fmt.Sprintf("Error: Session file not found for %s", p.SessionID)}, nil
	}
	return api.Success{Success: err == nil}, err
}

func (c *conn) fork(ctx context.Context, p api.ForkParams) (api.ForkResult, error) {
	at := p.At
	if p.ToEventID != "" {
		seq, err := c.position(ctx, p.SessionID, p.ToEventID)
		if err != nil {
			return api.ForkResult{}, noFork(p, err)
		}
		at = seq - 1
	}
	id, err := c.server.host.Fork(ctx, "", p.SessionID, at, p.Name)
	return api.ForkResult{SessionID: id, Name: p.Name}, noFork(p, err)
}

// position finds an event by its id.
func (c *conn) position(ctx context.Context, id event.SessionID, eventID string) (event.Seq, error) {
	for e, err := range c.server.host.Log.Events(ctx, id, 0) {
		if err != nil {
			return 0, err
		}
		if head, err := e.Head(); err == nil && head.ID == eventID {
			return e.Seq, nil
		}
	}
	return 0, fmt.Errorf("event %s: %w", eventID, session.ErrPosition)
}

// The most that one answer holds.
const (
	maxEvents     = 1000
	maxEventBytes = 4 << 20
)

// events reads the log as it is stored, page by page. Each page is verified from
// the link where it begins, so that all pages together verify each event once.
func (c *conn) events(ctx context.Context, p api.ReadParams) (api.ReadResult, error) {
	if p.Max <= 0 || p.Max > maxEvents {
		p.Max = maxEvents
	}
	result := api.ReadResult{Events: []json.RawMessage{}, Next: p.After}
	end, err := c.begin(ctx, p)
	if p.Hash == "" && errors.Is(err, eventlog.ErrConflict) {
		return result, nil // the session has no such position yet
	}
	if err != nil {
		return stopped(result, p.SessionID, err)
	}
	size := 0
	for e, err := range c.server.host.Log.EventsFrom(ctx, p.SessionID, end) {
		if err != nil {
			return stopped(result, p.SessionID, err)
		}
		if len(result.Events) == p.Max || size > maxEventBytes {
			result.More = true
			break
		}
		end = end.Next(e.Bytes)
		result.Events, result.Next, result.Hash = append(result.Events, e.Bytes), end.Seq, hex.EncodeToString(end.Hash[:])
		size += len(e.Bytes)
	}
	return result, nil
}

// begin returns the end that a page follows.
func (c *conn) begin(ctx context.Context, p api.ReadParams) (eventlog.End, error) {
	if p.Hash == "" {
		return c.server.host.Log.EndAt(ctx, p.SessionID, max(0, p.After))
	}
	hash, ok := parseHash(p.Hash)
	if !ok {
		return eventlog.End{}, errBadParams{fmt.Errorf("hash: %q is none that a page has told", p.Hash)}
	}
	return eventlog.End{Seq: p.After, Hash: hash}, nil
}

func parseHash(text string) (hash eventlog.Hash, ok bool) {
	b, err := hex.DecodeString(text)
	return hash, err == nil && copy(hash[:], b) == len(hash) && len(b) == len(hash)
}

// stopped returns a page that ends early because of an error. If the log is damaged, the page
// has the events before the damage and describes the damage.
func stopped(r api.ReadResult, id event.SessionID, err error) (api.ReadResult, error) {
	var damage *eventlog.Damage
	if errors.As(err, &damage) {
		r.Damage = damage.Error()
		return r, nil
	}
	return r, notFound(id, err)
}

// searchPatience is how long a search lets the index be brought up to date before it
// answers. A client can search again.
const searchPatience = time.Second

func (c *conn) search(ctx context.Context, p api.SearchParams) (api.SearchResult, error) {
	if p.Text == "" {
		return api.SearchResult{}, errBadParams{errors.New("text: it is empty")}
	}
	result := api.SearchResult{Matches: []api.SearchMatch{}}
	found, err := c.server.host.Log.Search(ctx, eventlog.Search{Text: p.Text, Max: min(p.Max, maxMatches), Rebuild: p.Rebuild, Patience: searchPatience})
	if errors.Is(err, eventlog.ErrNoWord) {
		return result, errBadParams{fmt.Errorf("text: %w", err)}
	}
	if err != nil {
		return result, err
	}
	result.More, result.Behind = found.More, found.Behind
	for _, m := range found.Matches {
		result.Matches = append(result.Matches, api.SearchMatch{Session: c.info(m.Session), Seq: m.Event.Seq, Type: m.Event.Type, Line: m.Line})
	}
	return result, nil
}

func (c *conn) verify(ctx context.Context, p api.SessionParams) (api.VerifyResult, error) {
	end, err := c.server.host.Log.Verify(ctx, p.SessionID)
	result := api.VerifyResult{SessionID: p.SessionID, Events: end.Seq, Hash: hex.EncodeToString(end.Hash[:])}
	var damage *eventlog.Damage
	if errors.As(err, &damage) {
		result.Damage = &api.Damage{Position: damage.Seq, Reason: damage.Reason}
		return result, nil
	}
	return result, notFound(p.SessionID, err)
}

func (c *conn) status(ctx context.Context, p api.SessionParams) (api.StatusResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.StatusResult{}, notFound(p.SessionID, err)
	}
	s, err := c.server.host.Info(ctx, p.SessionID)
	result := api.StatusResult{
		Session: c.info(s), Model: st.Model, Active: st.Active, Queued: len(st.Queue), Totals: st.Totals,
		Questions: make([]json.RawMessage, len(st.Questions)), Position: st.End.Seq,
	}
	for i, e := range st.Questions {
		result.Questions[i] = e.Bytes
	}
	return result, err
}
