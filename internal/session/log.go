package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

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
			list = withoutHidden(list, d)
		case e.Kind().Listed():
			list = append(list, e)
		}
	}
	return list, nil
}

func withoutHidden(list []event.Event, d event.HistoryHiddenData) []event.Event {
	kept := list[:0]
	for _, e := range list {
		if e.Seq < d.From || e.Seq > d.To {
			kept = append(kept, e)
		}
	}
	return kept
}

// Search finds messages, as [eventlog.Store.Search] does.
func (l Log) Search(ctx context.Context, q eventlog.Search) (eventlog.Found, error) {
	return l.host.store.Search(ctx, q)
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

// Verify reads a whole session and checks its chain and its events. A damaged session
// is quarantined, and the damage is the error. A quarantined session that is whole is
// released: an older version may have quarantined it because it could not read it. Of a
// log in a newer version of the event format it checks the chain alone.
func (l Log) Verify(ctx context.Context, id event.SessionID) (eventlog.End, error) {
	if err := l.host.liftQuarantine(ctx, id); err != nil {
		return eventlog.End{}, err
	}
	var end eventlog.End
	var events []event.Event
	for e, err := range l.host.store.Read(ctx, id, 0) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return end, fmt.Errorf("session %s: %w", id, ErrNotFound)
		}
		if err != nil {
			return end, l.host.quarantine(ctx, id, err)
		}
		end = end.Next(e.Bytes)
		events = append(events, e)
	}
	state := turn.New(id)
	err := state.Load(events)
	if newer := new(event.NewerError); err == nil || errors.As(err, &newer) {
		return end, nil
	}
	return end, l.host.quarantineUndecodable(ctx, state, err)
}

// liftQuarantine releases a session from quarantine. If the session is damaged, the
// next reader finds that.
func (h *Host) liftQuarantine(ctx context.Context, id event.SessionID) error {
	s, err := h.store.Session(ctx, id)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	if s.Damage != nil && h.store.Quarantine(ctx, id, nil) != nil {
		return s.Damage // the session's entry in the index is damaged, too
	}
	return nil
}

// Note records an event of a client, or only sends it if it is ephemeral. It returns
// the event's id.
func (l Log) Note(ctx context.Context, id event.SessionID, p event.Payload, ephemeral bool) (string, error) {
	var noted string
	err := l.host.change(ctx, id, func(tx *txn) error {
		if ephemeral {
			tx.send(p)
		} else if err := tx.record(p); err != nil {
			return err
		}
		head, err := tx.sent[len(tx.sent)-1].Head()
		noted = head.ID
		return err
	})
	return noted, err
}

// read loads a session's log, followed by events that are not stored yet, and returns
// the state and the session's entry in the index. A damaged session is quarantined,
// so that the damage is known without reading.
func (h *Host) read(ctx context.Context, id event.SessionID, more ...event.Event) (*turn.State, eventlog.Session, error) {
	var index eventlog.Session
	var events []event.Event
	for e, err := range h.store.Read(ctx, id, 0) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return turn.New(id), index, nil
		}
		if err != nil {
			return nil, index, h.quarantine(ctx, id, err)
		}
		events = append(events, e)
	}
	index, err := h.store.Session(ctx, id) // the events were verified against the end in the index
	if err != nil {
		return nil, index, fmt.Errorf("read session %s: %w", id, err)
	}
	state := turn.New(id)
	if err := state.Load(append(events, more...)); err != nil {
		return nil, index, h.quarantineUndecodable(ctx, state, err)
	}
	return state, index, nil
}

// quarantineUndecodable quarantines a session because one of its events cannot be
// decoded. A session that only a newer version can read is not damaged, and is left as
// it is.
func (h *Host) quarantineUndecodable(ctx context.Context, state *turn.State, err error) error {
	if newer := new(event.NewerError); errors.As(err, &newer) {
		return fmt.Errorf("session %s: %w", state.ID, err)
	}
	return h.quarantine(ctx, state.ID, &eventlog.Damage{Session: state.ID, Seq: state.Seq, Reason: err.Error()})
}

func (h *Host) quarantine(ctx context.Context, id event.SessionID, err error) error {
	var damage *eventlog.Damage
	if errors.As(err, &damage) {
		h.log.Error("a session is damaged and was set aside; it can be forked before the damage", "session", id, "position", damage.Seq, "reason", damage.Reason)
		if qerr := h.store.Quarantine(ctx, id, damage); qerr != nil {
			return errors.Join(err, qerr)
		}
		return err
	}
	return fmt.Errorf("read session %s: %w", id, err)
}

// transcriptPath returns the file in which hooks can read the session's log; empty if
// the session has no folder.
func (s *Session) transcriptPath() string {
	if s.host.opts.Folder == nil {
		return ""
	}
	return filepath.Join(s.host.opts.Folder(s.id), "events.jsonl")
}

// writeTranscript copies the log to a file for a hook. Nothing depends on the copy.
func (s *Session) writeTranscript(ctx context.Context) {
	path := s.transcriptPath()
	if path == "" {
		return
	}
	if err := s.exportTo(ctx, path); err != nil {
		s.host.log.Warn("the log could not be written down for a hook", "session", s.id, "path", path, "err", err)
	}
}

func (s *Session) exportTo(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = s.host.Log.Export(ctx, s.id, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
