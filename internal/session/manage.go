package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// List yields the sessions that have a user message, the last modified first.
func (h *Host) List(ctx context.Context) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		for s, err := range h.store.Sessions(ctx) {
			if err == nil && !s.Info.Listed {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Info returns what the index knows of a session.
func (h *Host) Info(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	return h.store.Session(ctx, id)
}

// Log reads the events of sessions.
type Log struct{ host *Host }

// Events yields a session's stored events after the given position.
func (l Log) Events(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return l.host.store.Read(ctx, id, after)
}

// EventsFrom yields a session's stored events after an end that it had; the error
// is eventlog.ErrConflict if it never did.
func (l Log) EventsFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	return l.host.store.ReadFrom(ctx, id, after)
}

// EndAt returns the end that a session had after n events; the error is
// eventlog.ErrConflict if it has fewer.
func (l Log) EndAt(ctx context.Context, id event.SessionID, n event.Seq) (eventlog.End, error) {
	return l.host.store.EndAt(ctx, id, n)
}

// Messages returns the events of a session that clients are shown, without what
// was taken back.
func (l Log) Messages(ctx context.Context, id event.SessionID) ([]event.Event, error) {
	var list []event.Event
	for e, err := range l.host.store.Read(ctx, id, 0) {
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
			return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
		case err != nil:
			return nil, err
		case e.Type == event.HistoryHidden:
			d, err := event.As[event.HistoryHiddenData](e)
			if err != nil {
				return nil, err
			}
			list = without(list, d)
		case e.Type.Listed():
			list = append(list, e)
		}
	}
	return list, nil
}

func without(list []event.Event, d event.HistoryHiddenData) []event.Event {
	kept := list[:0]
	for _, e := range list {
		if e.Seq < d.From || e.Seq > d.To {
			kept = append(kept, e)
		}
	}
	return kept
}

// A Match is a place where a text was found.
type Match struct {
	Session eventlog.Session
	Event   event.Event
	Line    string // the line that has the text, cut to a readable length
}

// Search yields the messages that have a text in them, whatever its case, the
// last modified session first.
func (l Log) Search(ctx context.Context, text string) iter.Seq2[Match, error] {
	needle := strings.ToLower(text)
	return func(yield func(Match, error) bool) {
		for s, err := range l.host.List(ctx) {
			if err != nil {
				yield(Match{}, err)
				return
			}
			for e, err := range l.host.store.Read(ctx, s.ID, 0) {
				if err != nil {
					break // a damaged session hides no other
				}
				if line, ok := found(e, needle); ok && !yield(Match{s, e, line}, nil) {
					return
				}
			}
		}
	}
}

// found looks for a text, given in lower case, in what somebody said.
func found(e event.Event, needle string) (string, bool) {
	var said struct {
		Content string `json:"content"`
	}
	if e.Type != event.UserMessage && e.Type != event.AssistantMessage {
		return "", false
	}
	if e.Decode(&said) != nil {
		return "", false
	}
	for line := range strings.Lines(said.Content) {
		if strings.Contains(strings.ToLower(line), needle) {
			return excerpt(strings.TrimSpace(line), needle), true
		}
	}
	return "", false
}

// excerpt cuts a long line around the place where the text stands.
func excerpt(line, needle string) string {
	const most = 120
	runes := []rune(line)
	if len(runes) <= most {
		return line
	}
	at := len([]rune(line[:max(0, strings.Index(strings.ToLower(line), needle))]))
	from := max(0, min(at-most/3, len(runes)-most))
	return "…" + string(runes[from:min(len(runes), from+most)]) + "…"
}

// Export writes a session's events, one a line, as they are stored.
func (l Log) Export(ctx context.Context, id event.SessionID, w io.Writer) error {
	for e, err := range l.host.store.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		if _, err := w.Write(append(e.Bytes[:len(e.Bytes):len(e.Bytes)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Verify reads a whole session, checks its chain, and that its events can be read.
// Damage is an error, and the session is quarantined. One that was quarantined and
// is whole is so no longer: a version that could not read it may have set it aside.
func (l Log) Verify(ctx context.Context, id event.SessionID) (eventlog.End, error) {
	if err := l.host.release(ctx, id); err != nil {
		return eventlog.End{}, err
	}
	var end eventlog.End
	var events []event.Event
	for e, err := range l.host.store.Read(ctx, id, 0) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return end, fmt.Errorf("session %s: %w", id, ErrNotFound)
		}
		if err != nil {
			return end, l.host.unreadable(ctx, id, err)
		}
		end = end.Next(e.Bytes)
		events = append(events, e)
	}
	state := turn.New(id)
	if err := state.Load(events); err != nil {
		return end, l.host.undecodable(ctx, state, err)
	}
	return end, nil
}

// release lifts the quarantine of a session. If it is damaged, whoever reads it next
// finds that.
func (h *Host) release(ctx context.Context, id event.SessionID) error {
	s, err := h.store.Session(ctx, id)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	if s.Damage != nil && h.store.Quarantine(ctx, id, nil) != nil {
		return s.Damage // its place in the index is damaged, too
	}
	return nil
}

// ErrPosition means that a session has no such event.
var ErrPosition = errors.New("no such event in this session")

// Fork makes a new session that shares the events of another up to a position;
// zero is the end. An unfinished turn is not taken along.
func (h *Host) Fork(ctx context.Context, child, parent event.SessionID, at event.Seq, name string) (event.SessionID, error) {
	if child == "" {
		child = event.SessionID(event.NewID())
	}
	var end eventlog.End
	var events []event.Event
	for e, err := range h.store.Read(ctx, parent, 0) {
		if at > 0 && end.Seq == at {
			break // what comes after may be damaged
		}
		if err != nil {
			return "", err
		}
		events, end = append(events, e), end.Next(e.Bytes)
	}
	if end.Seq == 0 || end.Seq < at {
		return "", fmt.Errorf("position %d of session %s: %w; its last event is %d", at, parent, ErrPosition, end.Seq)
	}
	state := turn.New(child)
	if err := state.Load(events); err != nil {
		return "", err
	}
	return child, h.fork(ctx, state, parent, end, name)
}

// fork records the first events of a fork's own.
func (h *Host) fork(ctx context.Context, state *turn.State, parent event.SessionID, end eventlog.End, name string) error {
	s := newSession(h, state.ID)
	tx := &txn{s: s, State: state, now: time.Now()}
	record := turn.Interrupt(state, "The session was forked", func(*turn.Call) bool { return true })
	record = append([]event.Payload{event.SessionForkedData{Parent: parent, At: end.Seq, Hash: hex.EncodeToString(end.Hash[:])}}, record...)
	if name != "" {
		record = append(record, event.SessionNamedData{Name: name})
	}
	if err := tx.Record(record...); err != nil {
		return err
	}
	info := indexed(state)
	last, err := h.store.Fork(ctx, state.ID, parent, eventlog.Batch{After: end, Events: tx.stored, Info: &info})
	if err != nil {
		return fmt.Errorf("fork session %s: %w", parent, err)
	}
	h.told(Notice{Created, eventlog.Session{ID: state.ID, End: last, Created: tx.now, Modified: tx.now, Parent: parent, Shared: end.Seq, Info: info}})
	return nil
}
