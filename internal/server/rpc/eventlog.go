package rpc

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// These methods read what happened in a session, and wait for what happens.
var _ = register(map[string]method{
	api.EventLogRead:     on((*conn).readLog),
	api.EventLogTail:     on((*conn).tail),
	api.RegisterInterest: on((*conn).registerInterest),
	api.ReleaseInterest:  on((*conn).releaseInterest),
})

const (
	defaultBatch = 200
	maxWait      = 30 * time.Second
	backward     = "backward"
)

// A cursor is a place in a session's log. One that goes forward stands after an
// event and knows its link, so that what comes is read without all before it;
// one that goes backward stands before an event.
type cursor struct {
	end      eventlog.End
	linked   bool // the hash of end is known
	backward bool
}

func (c cursor) String() string {
	switch {
	case c.backward:
		return "b" + strconv.FormatInt(int64(c.end.Seq), 10)
	case c.linked && c.end.Seq > 0:
		return strconv.FormatInt(int64(c.end.Seq), 10) + "." + hex.EncodeToString(c.end.Hash[:])
	}
	return strconv.FormatInt(int64(c.end.Seq), 10)
}

func parseCursor(text string) (c cursor, err error) {
	bad := errBadParams{fmt.Errorf("cursor: %q is none of ours", text)}
	rest, back := strings.CutPrefix(text, "b")
	number, link, linked := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return c, bad
	}
	c = cursor{end: eventlog.End{Seq: event.Seq(n)}, backward: back, linked: linked}
	if !linked {
		return c, nil
	}
	hash, ok := parseHash(link)
	if !ok || back {
		return c, bad
	}
	c.end.Hash = hash
	return c, nil
}

// A reading is a request for events.
type reading struct {
	max   int
	wait  time.Duration
	types []event.Type // all if nil
	brief bool         // true if ephemeral events are left out
	none  bool         // true if events of agents are asked for, of which there are none
}

func (c *conn) reading(p api.LogReadParams) (reading, error) {
	r := reading{max: defaultBatch, wait: min(time.Duration(p.WaitMs)*time.Millisecond, maxWait), none: len(p.AgentIDs) > 0}
	if p.Max != nil {
		r.max = *p.Max
	}
	if r.max < 1 || r.max > maxEvents {
		return r, errBadParams{fmt.Errorf("max: use 1 to %d", maxEvents)}
	}
	if p.WaitMs < 0 {
		return r, errBadParams{errors.New("waitMs: it is negative")}
	}
	r.brief = p.IncludeEphemeral != nil && !*p.IncludeEphemeral
	if len(p.Types) > 0 && string(p.Types) != `"*"` && string(p.Types) != "null" {
		if json.Unmarshal(p.Types, &r.types) != nil || len(r.types) == 0 {
			return r, errBadParams{errors.New(`types: want "*" or a list of types`)}
		}
	}
	return r, nil
}

// wants reports whether an event is asked for.
func (r reading) wants(e event.Event) bool {
	switch {
	case r.none || e.Type.Hidden() || (r.brief && e.Kind().Ephemeral):
		return false
	case r.types == nil:
		return true
	}
	return slices.Contains(r.types, e.Type)
}

// readLog reads a page of what happened. If there is nothing yet it waits as
// long as the client says, and then has also what is never stored.
func (c *conn) readLog(ctx context.Context, p api.LogReadParams) (api.LogReadResult, error) {
	r, err := c.reading(p)
	if err != nil {
		return api.LogReadResult{}, err
	}
	switch p.Direction {
	case "", "forward", backward:
	default:
		return api.LogReadResult{}, errBadParams{fmt.Errorf("direction: %q is unknown; use forward or backward", p.Direction)}
	}
	at := cursor{backward: p.Direction == backward, linked: true}
	if p.Cursor != "" {
		if at, err = parseCursor(p.Cursor); err != nil {
			return api.LogReadResult{}, err
		}
	}
	if at.backward {
		return c.readBack(ctx, p.SessionID, at, r)
	}
	page, err := c.readOn(ctx, p.SessionID, at, r)
	if err != nil || len(page.list) > 0 || r.wait == 0 {
		return page.result(), noSession(p.SessionID, err)
	}
	return c.waitFor(ctx, p.SessionID, page, r)
}

// A page is a part of a log.
type page struct {
	list    []event.Event
	at      cursor
	expired bool
	more    bool
}

func (p page) result() api.LogReadResult {
	r := api.LogReadResult{Events: make([]json.RawMessage, len(p.list)), Cursor: p.at.String(), CursorStatus: "ok", HasMore: p.more}
	if p.expired {
		r.CursorStatus = "expired"
	}
	for i, e := range p.list {
		r.Events[i] = mended(e).Bytes
	}
	return r
}

// readOn reads the events after a cursor. One that the log does not know is as
// good as none.
func (c *conn) readOn(ctx context.Context, id event.SessionID, at cursor, r reading) (page, error) {
	p, err := c.readPage(ctx, id, at, r)
	if errors.Is(err, eventlog.ErrConflict) {
		p, err = c.readPage(ctx, id, cursor{linked: true}, r)
		p.expired = true
	}
	return p, err
}

// readPage reads a page from its cursor on, and no further than it has to: what
// was taken back later is known without reading on.
func (c *conn) readPage(ctx context.Context, id event.SessionID, at cursor, r reading) (page, error) {
	p := page{at: at}
	st, err := c.server.host.Status(ctx, id)
	if err != nil {
		return p, err
	}
	end := at.end
	if !at.linked {
		end, err = c.server.host.Log.EndAt(ctx, id, end.Seq)
	}
	if end.Seq > st.End.Seq {
		err = eventlog.ErrConflict
	}
	if err != nil {
		return p, err
	}
	size := 0
	for e, err := range c.server.host.Log.EventsFrom(ctx, id, end) {
		if err != nil {
			return p, err
		}
		if e.Seq > st.End.Seq {
			break
		}
		wanted := r.wants(e) && !st.Hides(e.Seq)
		if p.more = wanted && (len(p.list) == r.max || size > maxEventBytes); p.more {
			break
		}
		end = end.Next(e.Bytes)
		p.at = cursor{end: end, linked: true}
		if wanted {
			p.list, size = append(p.list, e), size+len(e.Bytes)
		}
	}
	return p, nil
}

// readBack reads the events before a cursor, or the last ones. They come in the
// order in which they happened.
func (c *conn) readBack(ctx context.Context, id event.SessionID, at cursor, r reading) (api.LogReadResult, error) {
	st, err := c.server.host.Status(ctx, id)
	if err != nil {
		return api.LogReadResult{}, notFound(id, err)
	}
	before := st.End.Seq + 1
	if at.end.Seq > 0 {
		before = min(before, at.end.Seq)
	}
	list, err := c.lastBefore(ctx, st, before, r)
	if err != nil {
		return api.LogReadResult{}, notFound(id, err)
	}
	p := page{list: list, at: cursor{backward: true, end: at.end}}
	if len(list) > r.max {
		p.list, p.more = list[len(list)-r.max:], true
	}
	if len(p.list) > 0 {
		p.at.end.Seq = p.list[0].Seq
	}
	return p.result(), nil
}

// lastBefore returns the last events before a position that are asked for: one
// more than a page has, if there are so many. It reads back in parts that grow,
// so that it reads little more than it finds, and little often if that is rare.
func (c *conn) lastBefore(ctx context.Context, st session.Status, before event.Seq, r reading) ([]event.Event, error) {
	var list []event.Event
	for length := event.Seq(r.max + 1); before > 1 && len(list) <= r.max; length *= 2 {
		from := max(1, before-length)
		var part []event.Event
		for e, err := range c.server.host.Log.Events(ctx, st.ID, from-1) {
			if err != nil {
				return nil, err
			}
			if e.Seq >= before {
				break
			}
			if e.Kind().Listed() && r.wants(e) && !st.Hides(e.Seq) {
				part = append(part, e)
			}
		}
		list, before = append(part, list...), from
	}
	return list, nil
}

// waitFor waits for an event after the end of a page.
func (c *conn) waitFor(ctx context.Context, id event.SessionID, p page, r reading) (api.LogReadResult, error) {
	w := &waiter{reading: r, came: make(chan struct{}, 1)}
	view, done, err := c.server.host.Clients.Follow(ctx, id, p.at.end.Seq, w)
	if err != nil {
		return api.LogReadResult{}, noSession(id, err)
	}
	defer done()
	if err := view.CatchUp(ctx); err != nil {
		return api.LogReadResult{}, err
	}
	if err := withoutSlot(ctx, func() error { return w.await(ctx, r.wait) }); err != nil {
		return api.LogReadResult{}, err
	}
	var end eventlog.End
	end, p.at.linked = view.Reached()
	p.at.end = end
	p.list, p.more = w.events()
	return p.result(), nil
}

// A waiter is a viewer that wants one page.
type waiter struct {
	reading
	came chan struct{}

	mu   sync.Mutex
	list []event.Event
	full bool
}

// await waits for an event, at most for a time.
func (w *waiter) await(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.came:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Event takes an event, unless the page is full.
func (w *waiter) Event(_ event.SessionID, e event.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.wants(e) {
		return true
	}
	if w.full = w.full || len(w.list) == w.max; w.full {
		return false
	}
	w.list = append(w.list, e)
	select {
	case w.came <- struct{}{}:
	default:
	}
	return true
}

func (w *waiter) events() ([]event.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list, w.full
}

func (c *conn) tail(ctx context.Context, p api.SessionParams) (api.CursorResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.CursorResult{Cursor: cursor{end: st.End, linked: true}.String()}, noSession(p.SessionID, err)
}

// registerInterest tells that this client looks after a kind of events.
func (c *conn) registerInterest(ctx context.Context, p api.InterestParams) (api.HandleResult, error) {
	if p.EventType == "" {
		return api.HandleResult{}, errBadParams{errors.New("eventType: it is empty")}
	}
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return api.HandleResult{}, noSession(p.SessionID, err)
	}
	handle := cmp.Or(p.Key, event.NewID()) // a relay that asks again gets the same
	if here := c.attachedTo(p.SessionID); here != nil {
		open, err := c.askedBefore(ctx, p, here)
		c.server.host.Clients.AddInterest(p.SessionID, here.client, handle, p.EventType, open)
		if err = errors.Join(noSession(p.SessionID, err), c.remind(ctx, p.SessionID, open)); err != nil {
			return api.HandleResult{}, err
		}
	}
	return api.HandleResult{Handle: handle}, nil
}

// askedBefore returns the open questions of a kind that were asked before a client came
// that wants to be asked them.
func (c *conn) askedBefore(ctx context.Context, p api.InterestParams, here *attached) ([]session.Reminder, error) {
	if !p.EventType.Question() {
		return nil, nil
	}
	open, err := c.server.host.Questions.Open(ctx, p.SessionID, func(kind event.Type) bool { return kind == p.EventType })
	return slices.DeleteFunc(open, here.live), err
}

func (c *conn) releaseInterest(_ context.Context, p api.HandleParams) (api.Success, error) {
	if client := c.clientOf(p.SessionID); client != nil {
		c.server.host.Clients.RemoveInterest(p.SessionID, client, p.Handle)
	}
	return api.Success{Success: true}, nil
}
