package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// Quarantine implements eventlog.Store.
func (s *Store) Quarantine(ctx context.Context, id event.SessionID, d *eventlog.Damage) error {
	err := s.change(ctx, id, func(w *writing, session int64) error {
		if d == nil {
			return w.exec("UPDATE sessions SET damaged = NULL, reason = NULL WHERE id = ?", session)
		}
		return w.exec("UPDATE sessions SET damaged = ?, reason = ? WHERE id = ?", int64(d.Seq), d.Reason, session)
	})
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", id, err)
	}
	return nil
}

// PutSecrets implements eventlog.Store.
func (s *Store) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	sealed, err := s.sealing.Seal(ctx, id, secrets)
	if err == nil {
		err = s.change(ctx, id, func(w *writing, session int64) error { return w.putSecrets(session, sealed) })
	}
	if err != nil {
		return fmt.Errorf("store secrets of %s: %w", id, err)
	}
	return nil
}

// putSecrets changes the secrets of a session, which are sealed, inside a transaction.
func (w *writing) putSecrets(session int64, sealed []eventlog.Secret) error {
	for _, s := range sealed {
		var err error
		if s.Value == nil {
			err = w.exec("DELETE FROM secrets WHERE session = ? AND name = ?", session, s.Name)
		} else {
			err = w.exec("INSERT OR REPLACE INTO secrets (session, name, value) VALUES (?, ?, ?)", session, s.Name, s.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Secret implements eventlog.Store.
func (s *Store) Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error) {
	h, err := s.head(ctx, id)
	if err != nil {
		return nil, err
	}
	var sealed []byte
	err = s.reading.QueryRow("SELECT value FROM secrets WHERE session = ? AND name = ?", h.Session, name).Scan(&sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, s.readError(id, 0, err)
	}
	return s.sealing.Unseal(id, name, sealed)
}

// change makes a change to a session that exists.
func (s *Store) change(ctx context.Context, id event.SessionID, apply func(w *writing, session int64) error) error {
	return s.queue.Do(ctx, &op{
		apply: func(w *writing) error {
			h, err := w.session(id)
			if err != nil {
				return err
			}
			return apply(w, h.Session)
		},
		committed: func() {
			s.heads.forget(id)
			s.search.touch(id)
		},
	})
}

// session finds a session inside a transaction.
func (w *writing) session(id event.SessionID) (record.Head, error) {
	h, err := scanHead(id, w.find.QueryRow(string(id)))
	if errors.Is(err, eventlog.ErrNotFound) {
		err = refusal{err}
	}
	return h, err
}
