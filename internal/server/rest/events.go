package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// maxPage is how many events a page has at most.
const maxPage = 1000

// A Placed is an event with its position.
type Placed struct {
	Position event.Seq       `json:"position"`
	Event    json.RawMessage `json:"event" doc:"the event as it is stored; docs/EVENTS.md has the kinds"`
}

// Page is a part of what happened in a session.
type Page struct {
	Events []Placed  `json:"events"`
	Next   event.Seq `json:"next" doc:"position after which the next page begins"`
	More   bool      `json:"more" doc:"true if there are events after this page"`
	First  event.Seq `json:"first,omitempty" doc:"position of the first event of the page; only with last and before"`
	Before event.Seq `json:"before,omitempty" doc:"give it as before to read further back; missing at the beginning"`
}

// events sends what happened in a session and then what happens, as a stream or as a page.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	streams, err := wantsStream(r)
	if err != nil {
		return err
	}
	if !streams && (q.Has("last") || q.Has("before")) {
		return s.earlier(w, r)
	}
	after, err := position(r)
	if err != nil {
		return err
	}
	id := sessionID(r)
	end, err := s.end(r.Context(), id)
	if err != nil {
		return err
	}
	if after > end {
		return conflict("position_ahead", "session %s ends at position %d, and not at %d: it is not the log that you have read before; read it from 0", id, end, after)
	}
	if !streams {
		return s.page(w, r, id, after)
	}
	f := newFollower()
	defer s.hub.follow(id, f)()
	view, done, err := s.host.Clients.Follow(r.Context(), id, after, f)
	if err != nil {
		return err
	}
	defer done()
	out := startStream(w, r)
	s.pump(r.Context(), out, f, []*session.View{view}, one{})
	return nil
}

// wantsStream reports whether a request asks for a stream of events.
func wantsStream(r *http.Request) (bool, error) {
	asked, err := flag(r, "stream")
	return asked || strings.Contains(r.Header.Get("Accept"), "text/event-stream"), err
}

// position returns the position after which a reader goes on.
func position(r *http.Request) (event.Seq, error) {
	text, name := r.URL.Query().Get("after"), "after"
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		text, name = last, "Last-Event-ID"
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("%s is %q: give the position of an event, or 0", name, text)
	}
	return event.Seq(n), nil
}

// end returns the last position of a session. A reader with a later one has seen events
// that are not in this log.
func (s *Server) end(ctx context.Context, id event.SessionID) (event.Seq, error) {
	info, err := s.host.Info(ctx, id)
	return info.End.Seq, err
}

// A form is how events are written to a stream.
type form interface {
	event(out *sender, id event.SessionID, e event.Event)
	deleted(out *sender, id event.SessionID) (over bool)
	notice(out *sender, n session.Notice)
}

// one is the form of a stream of one session.
type one struct{}

func (one) event(out *sender, _ event.SessionID, e event.Event) {
	if e.Seq == 0 {
		out.frame("delta", e.Bytes)
		return
	}
	out.id(int64(e.Seq))
	out.frame("event", e.Bytes)
}

func (one) deleted(out *sender, _ event.SessionID) bool {
	out.frame("deleted", []byte("{}"))
	return true
}

func (one) notice(*sender, session.Notice) {}

// pump writes what a follower is shown until the reader leaves, the stream is over or the
// server stops.
func (s *Server) pump(ctx context.Context, out *sender, f *follower, views []*session.View, as form) {
	defer f.endWith(ctx)()
	beat := time.AfterFunc(heartbeat, func() { f.beats.Store(true); f.hint() })
	defer beat.Stop()
	var spare []shown
	for behind := true; out.err == nil; {
		if behind {
			for _, v := range views {
				if err := v.CatchUp(ctx); err != nil && ctx.Err() == nil {
					s.log.Error("a stream could not be continued", "err", err)
					return // the reader comes back
				}
			}
		}
		t := f.take(spare)
		for i, e := range t.events {
			as.event(out, e.session, e.event)
			t.events[i] = shown{} // its bytes must not be kept in memory
		}
		for _, n := range t.notices {
			as.notice(out, n)
		}
		for _, id := range t.removed {
			if as.deleted(out, id) {
				out.flush()
				return
			}
		}
		out.flush()
		spare, behind = t.events, t.full
		if behind {
			continue
		}
		<-f.ready // one channel for all reasons: waiting for several costs as much as a short write
		if f.ended.Load() {
			return
		}
		if f.beats.Swap(false) {
			out.comment("still here")
			beat.Reset(heartbeat)
		}
	}
}

// maxWait is how long a request may wait for something to happen.
const maxWait = 60

// page answers with stored events after a position, and waits for the first one if the
// request says so.
func (s *Server) page(w http.ResponseWriter, r *http.Request, id event.SessionID, after event.Seq) error {
	limit, err := number(r, "limit", 1, maxPage, 500)
	if err != nil {
		return err
	}
	wait, err := number(r, "wait", 0, maxWait, 0)
	if err != nil {
		return err
	}
	f := newFollower()
	defer s.hub.follow(id, f)()
	view, done, err := s.host.Clients.Follow(r.Context(), id, after, f)
	if err != nil {
		return err
	}
	defer done()
	p := Page{Events: []Placed{}, Next: after}
	timer := time.NewTimer(time.Duration(wait) * time.Second)
	defer timer.Stop()
	for {
		if err := view.CatchUp(r.Context()); err != nil {
			return err
		}
		deleted := p.collect(view.Position, f, int(limit))
		if len(p.Events) > 0 || wait == 0 {
			break
		}
		if deleted {
			return fmt.Errorf("session %s: %w", id, session.ErrNotFound)
		}
		select {
		case <-f.ready:
			continue
		case <-timer.C:
			wait = 0
		case <-r.Context().Done():
			return nil
		case <-leaving(r.Context()):
			wait = 0
		}
	}
	return reply(w, http.StatusOK, p)
}

// collect adds what a follower was shown, and reports whether it was told that the session is
// deleted. A page without events goes on where the reader of the log had come to before: what
// was shown since then belongs to the next page.
func (p *Page) collect(position func() event.Seq, f *follower, limit int) (deleted bool) {
	reached := position()
	t := f.take(nil)
	p.add(t, limit)
	if !p.More && len(p.Events) == 0 {
		p.Next = max(p.Next, reached)
	}
	return len(t.removed) > 0
}

// add adds stored events to a page, up to its limit.
func (p *Page) add(t taken, limit int) {
	p.More = p.More || t.full
	for _, e := range t.events {
		if e.event.Seq == 0 {
			continue
		}
		if len(p.Events) == limit {
			p.More = true
			return
		}
		p.Events = append(p.Events, Placed{e.event.Seq, e.event.Bytes})
		p.Next = e.event.Seq
	}
}

// earlier answers with the last events of a session, or the last ones before a position.
func (s *Server) earlier(w http.ResponseWriter, r *http.Request) error {
	last, err := number(r, "last", 1, maxPage, 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 1, maxPage, 200)
	if err != nil {
		return err
	}
	if last > 0 {
		limit = last
	}
	info, err := s.host.Info(r.Context(), sessionID(r))
	if err != nil {
		return err
	}
	end := int64(info.End.Seq) + 1
	before, err := number(r, "before", 1, 1<<62, end)
	if err != nil {
		return err
	}
	before = min(before, end)
	list, err := s.backwards(r.Context(), sessionID(r), event.Seq(before), int(limit))
	if err != nil {
		return err
	}
	p := Page{Events: []Placed{}, Next: event.Seq(before - 1), More: before < end, First: event.Seq(before)}
	for _, e := range list {
		p.Events = append(p.Events, Placed{e.Seq, e.Bytes})
	}
	if len(list) > 0 {
		p.First = list[0].Seq
	}
	if p.First > 1 && len(list) == int(limit) {
		p.Before = p.First
	}
	return reply(w, http.StatusOK, p)
}

// backwards returns the last shown events before a position, in order. It reads a longer
// part of the log each time, until it has enough.
func (s *Server) backwards(ctx context.Context, id event.SessionID, before event.Seq, limit int) ([]event.Event, error) {
	var list []event.Event
	for length := event.Seq(limit + 1); before > 1 && len(list) < limit; length *= 2 {
		from := max(1, before-length)
		var part []event.Event
		for e, err := range s.host.Log.Events(ctx, id, from-1) {
			if err != nil {
				return nil, err
			}
			if e.Seq >= before {
				break
			}
			if !e.Type.Hidden() {
				part = append(part, e)
			}
		}
		list, before = append(part, list...), from
	}
	return list[max(0, len(list)-limit):], nil
}

// many is the form of a stream of many sessions.
type many struct {
	server *Server
	ctx    context.Context
}

var (
	openingOf = []byte(`{"sessionId":`)
	closing   = []byte(`}`)
)

func (many) event(out *sender, id event.SessionID, e event.Event) {
	name, _ := json.Marshal(id) // a string cannot fail
	if e.Seq == 0 {
		out.frame("delta", openingOf, name, []byte(`,"event":`), e.Bytes, closing)
		return
	}
	at := strconv.AppendInt([]byte(`,"position":`), int64(e.Seq), 10)
	out.frame("event", openingOf, name, at, []byte(`,"event":`), e.Bytes, closing)
}

func (many) deleted(out *sender, id event.SessionID) bool {
	name, _ := json.Marshal(id) // a string cannot fail
	out.frame("deleted", openingOf, name, closing)
	return false
}

// A Change is a change in the list of sessions.
type Change struct {
	Change  string  `json:"change" enum:"created,updated,deleted"`
	Session Session `json:"session"`
}

func (m many) notice(out *sender, n session.Notice) {
	c := Change{strings.TrimPrefix(n.Kind, "session."), m.server.plain(n.Session)}
	if b, err := json.Marshal(c); err == nil {
		out.frame("session", b)
	}
}

// maxFollowed is how many sessions one stream follows.
const maxFollowed = 100

// allEvents is the one stream of a browser: events of the sessions that it names, and
// changes in the list of all sessions. A session that does not exist is reported as
// deleted, one whose log ends before the position of the reader as replaced, and the events
// of the others follow.
func (s *Server) allEvents(w http.ResponseWriter, r *http.Request) error {
	places, err := followed(r.URL.Query()["sessions"])
	if err != nil {
		return err
	}
	f := newFollower()
	var views []*session.View
	var replaced []event.SessionID
	for _, p := range places {
		end, err := s.end(r.Context(), p.id)
		if errors.Is(err, session.ErrNotFound) { // it was deleted while the reader was away
			f.deleted(p.id)
			continue
		}
		if err != nil {
			return err
		}
		if p.after > end {
			replaced = append(replaced, p.id)
			continue
		}
		defer s.hub.follow(p.id, f)()
		view, done, err := s.host.Clients.Follow(r.Context(), p.id, p.after, f)
		if errors.Is(err, session.ErrNotFound) {
			f.deleted(p.id)
			continue
		}
		if err != nil {
			return err
		}
		defer done()
		views = append(views, view)
	}
	defer s.hub.followList(f)()
	out := startStream(w, r)
	ready, err := json.Marshal(struct {
		Version string `json:"version"`
		Time    string `json:"time"`
	}{s.opts.Version, event.FormatTime(time.Now())})
	if err != nil {
		return err
	}
	out.frame("ready", ready)
	for _, id := range replaced {
		name, _ := json.Marshal(id) // a string cannot fail
		out.frame("replaced", openingOf, name, closing)
	}
	out.flush()
	s.pump(r.Context(), out, f, views, many{s, r.Context()})
	return nil
}

// A place is a session and the position after which a reader goes on.
type place struct {
	id    event.SessionID
	after event.Seq
}

// followed reads a list of ID@POSITION.
func followed(lists []string) ([]place, error) {
	var places []place
	for _, list := range lists {
		for text := range strings.SplitSeq(list, ",") {
			if text == "" {
				continue
			}
			p := place{id: event.SessionID(text)}
			if i := strings.LastIndexByte(text, '@'); i >= 0 {
				n, err := strconv.ParseInt(text[i+1:], 10, 64)
				if err != nil || n < 0 {
					return nil, invalid("sessions has %q: give ID@POSITION", text)
				}
				p = place{event.SessionID(text[:i]), event.Seq(n)}
			}
			if slices.ContainsFunc(places, func(other place) bool { return other.id == p.id }) {
				return nil, invalid("sessions has %s twice", p.id)
			}
			places = append(places, p)
		}
	}
	if len(places) > maxFollowed {
		return nil, invalid("sessions has %d sessions: follow at most %d in one stream", len(places), maxFollowed)
	}
	return places, nil
}
