package eventlogtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A sessionModel is the simplest model of a session: its texts, and its parent.
type sessionModel struct {
	ends   []eventlog.End // the zero End first
	texts  []string
	parent event.SessionID
	gone   bool // true if it was deleted; its name is free when it has no forks left
}

// model makes the same random changes to a store and to a map of models, and compares
// them.
func model(t *testing.T, open func(t *testing.T) eventlog.Store) {
	rapid.Check(t, func(r *rapid.T) {
		m := &modelled{T: r, store: open(t), stories: make(map[event.SessionID]*sessionModel)}
		defer m.store.Close()
		r.Repeat(map[string]func(*rapid.T){
			"append": m.append,
			"fork":   m.fork,
			"delete": m.delete,
			"":       m.compare,
		})
	})
}

type modelled struct {
	*rapid.T
	store   eventlog.Store
	stories map[event.SessionID]*sessionModel
	said    int
}

// name draws one of a few names, so that the same ones are used again.
func (m *modelled) name(label string) event.SessionID {
	return event.SessionID(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(m.T, label))
}

// batch draws events that follow an end.
func (m *modelled) batch(after eventlog.End) (eventlog.Batch, []string) {
	var texts []string
	for range rapid.IntRange(1, 4).Draw(m.T, "events") {
		m.said++
		texts = append(texts, fmt.Sprint(m.said))
	}
	return batch(after, texts...), texts
}

// live returns the model of a session that was not deleted, or nil.
func (m *modelled) live(id event.SessionID) *sessionModel {
	if s := m.stories[id]; s != nil && !s.gone {
		return s
	}
	return nil
}

// drawEnd draws an end of a session, or sometimes one that it never had.
func (m *modelled) drawEnd(s *sessionModel) (end eventlog.End, real bool) {
	if s == nil || rapid.IntRange(0, 9).Draw(m.T, "wrong") == 0 {
		return eventlog.End{Seq: 1, Hash: eventlog.Hash{1}}, false
	}
	return rapid.SampledFrom(s.ends).Draw(m.T, "end"), true
}

// append adds a batch that was stored.
func (s *sessionModel) append(b eventlog.Batch, texts []string) {
	for i, e := range b.Events {
		s.ends = append(s.ends, s.ends[len(s.ends)-1].Next(e.Bytes))
		s.texts = append(s.texts, texts[i])
	}
}

func (m *modelled) expect(what string, err, want error) {
	if !errors.Is(err, want) {
		m.Fatalf("%s: err = %v, want %v", what, err, want)
	}
}

func (m *modelled) append(r *rapid.T) {
	m.T = r
	id := m.name("session")
	s, want := m.stories[id], error(nil)
	end := eventlog.End{}
	switch {
	case s == nil:
		s = &sessionModel{ends: []eventlog.End{{}}}
	case rapid.IntRange(0, 4).Draw(r, "stale") == 0:
		end, _ = m.drawEnd(s)
	default:
		end = s.ends[len(s.ends)-1]
	}
	if s.gone || end != s.ends[len(s.ends)-1] {
		want = eventlog.ErrConflict
	}
	b, texts := m.batch(end)
	_, err := m.store.Append(r.Context(), id, b)
	m.expect(fmt.Sprintf("append to %s after %d", id, end.Seq), err, want)
	if err == nil {
		s.append(b, texts)
		m.stories[id] = s
	}
}

func (m *modelled) fork(r *rapid.T) {
	m.T = r
	child, parent := m.name("child"), m.name("parent")
	from := m.live(parent)
	end, real := m.drawEnd(from)
	var want error
	switch {
	case from == nil:
		want = eventlog.ErrNotFound
	case !real || m.stories[child] != nil:
		want = eventlog.ErrConflict
	}
	b, texts := m.batch(end)
	_, err := m.store.Fork(r.Context(), child, parent, b)
	m.expect(fmt.Sprintf("fork %s from %s at %d", child, parent, end.Seq), err, want)
	if err == nil {
		s := &sessionModel{ends: slices.Clone(from.ends[:end.Seq+1]), texts: slices.Clone(from.texts[:end.Seq]), parent: parent}
		s.append(b, texts)
		m.stories[child] = s
	}
}

func (m *modelled) delete(r *rapid.T) {
	m.T = r
	id := m.name("session")
	s, want := m.live(id), error(nil)
	if s == nil {
		want = eventlog.ErrNotFound
	}
	err := m.store.Delete(r.Context(), id)
	m.expect("delete "+string(id), err, want)
	if err == nil {
		s.gone = true
		m.removeDeleted()
	}
}

// removeDeleted removes deleted sessions that have no forks.
func (m *modelled) removeDeleted() {
	for again := true; again; {
		again = false
		for id, s := range m.stories {
			if s.gone && !m.isParent(id) {
				delete(m.stories, id)
				again = true
			}
		}
	}
}

func (m *modelled) isParent(id event.SessionID) bool {
	for _, s := range m.stories {
		if s.parent == id {
			return true
		}
	}
	return false
}

// compare compares all sessions of the store with their models.
func (m *modelled) compare(r *rapid.T) {
	m.T = r
	listed := 0
	for s, err := range m.store.Sessions(r.Context(), eventlog.Query{}) {
		if err != nil {
			r.Fatal(err)
		}
		want := m.live(s.ID)
		if want == nil {
			r.Fatalf("%s is listed", s.ID)
		}
		if listed++; s.Parent != want.parent || s.End != want.ends[len(want.ends)-1] {
			r.Fatalf("%s: parent %q, end %v; want %q, %v", s.ID, s.Parent, s.End, want.parent, want.ends[len(want.ends)-1])
		}
		m.compareSession(s.ID, want)
	}
	for _, s := range m.stories {
		if !s.gone {
			listed--
		}
	}
	if listed != 0 {
		r.Fatalf("%d sessions are not listed", -listed)
	}
}

func (m *modelled) compareSession(id event.SessionID, want *sessionModel) {
	from := rapid.IntRange(0, len(want.texts)).Draw(m.T, "from")
	var got []string
	for e, err := range m.store.ReadFrom(m.T.Context(), id, want.ends[from]) {
		if err != nil {
			m.Fatalf("read %s from %d: %v", id, from, err)
		}
		got = append(got, message(m.T, e))
	}
	if !slices.Equal(got, want.texts[from:]) {
		m.Fatalf("%s says %q after %d, want %q", id, got, from, want.texts[from:])
	}
}
