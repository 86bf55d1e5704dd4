package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
	"github.com/abide-run/abide/internal/seal"
)

// keyTable is the eventlog.KeyTable of a store.
type keyTable struct{ s *Store }

// Ready implements eventlog.KeyTable.
func (t keyTable) Ready(ctx context.Context) error { return t.s.queue.Open(ctx) }

// AddKey implements eventlog.KeyTable.
func (t keyTable) AddKey(ctx context.Context, id seal.ID) error {
	return t.s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO keys (id) VALUES ($1) ON CONFLICT DO NOTHING", id[:])
		return err
	}})
}

// checkKeys reads which keys have sealed values, and warns of values that cannot be opened.
func (s *Store) checkKeys(ctx context.Context, warn func(string)) error {
	if warn == nil {
		warn = func(string) {}
	}
	type used struct {
		ID       []byte
		Sessions int
	}
	all, err := collect(ctx, s.reading, pgx.RowToStructByPos[used],
		"SELECT k.id, (SELECT count(DISTINCT session) FROM secrets WHERE substring(value FROM 2 FOR $1) = k.id) FROM keys k", len(seal.ID{}))
	if err != nil {
		return s.explain(err)
	}
	file := s.sealing.Keys()
	if mode := file.Exposed(); mode != 0 {
		warn(eventlog.ExposedKey(file, mode))
	}
	var known []seal.ID
	for _, one := range all {
		if len(one.ID) != len(seal.ID{}) {
			continue
		}
		id := seal.ID(one.ID)
		if slices.Contains(file.IDs(), id) {
			known = append(known, id)
		} else if one.Sessions > 0 {
			warn(eventlog.UnreadableSecrets(id, one.Sessions, file))
		}
	}
	s.sealing.Known(known...)
	return nil
}

// PutSecrets implements eventlog.Store.
func (s *Store) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	sealed, err := s.sealing.Seal(ctx, id, secrets)
	if err == nil {
		err = s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h record.Head) error {
			return putSecrets(ctx, tx, h.Session, sealed)
		})
	}
	if err != nil {
		return fmt.Errorf("store secrets of %s: %w", id, err)
	}
	return nil
}

// putSecrets changes the secrets of a session, which are sealed, inside a transaction.
func putSecrets(ctx context.Context, tx pgx.Tx, session int64, sealed []eventlog.Secret) error {
	for _, one := range sealed {
		var err error
		if one.Value == nil {
			_, err = tx.Exec(ctx, "DELETE FROM secrets WHERE session = $1 AND name = $2", session, []byte(one.Name))
		} else {
			_, err = tx.Exec(ctx, "INSERT INTO secrets (session, name, value) VALUES ($1, $2, $3) ON CONFLICT (session, name) DO UPDATE SET value = excluded.value",
				session, []byte(one.Name), one.Value)
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
	err = s.reading.QueryRow(ctx, "SELECT value FROM secrets WHERE session = $1 AND name = $2", h.Session, []byte(name)).Scan(&sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, s.readError(err)
	}
	return s.sealing.Unseal(id, name, sealed)
}
