package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/seal"
)

// sealing is what the store needs to seal secrets.
type sealing struct {
	keys  *seal.File
	mu    sync.Mutex
	known []seal.ID // keys that the table of keys has
}

// labels are what the sealed value of a secret is bound to.
func labels(id event.SessionID, name string) []string { return []string{string(id), name} }

// seal returns secrets as they are stored.
func (s *Store) seal(ctx context.Context, id event.SessionID, secrets []eventlog.Secret) ([]eventlog.Secret, error) {
	if !slices.ContainsFunc(secrets, func(one eventlog.Secret) bool { return one.Value != nil }) {
		return secrets, nil
	}
	if err := s.recordKey(ctx); err != nil {
		return nil, err
	}
	sealed := make([]eventlog.Secret, len(secrets))
	for i, one := range secrets {
		sealed[i].Name = one.Name
		if one.Value == nil {
			continue
		}
		var err error
		if sealed[i].Value, err = s.sealing.keys.Seal(one.Value, labels(id, one.Name)...); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}

// recordKey records that the key has sealed a value, before it seals the first one.
func (s *Store) recordKey(ctx context.Context) error {
	s.sealing.mu.Lock()
	defer s.sealing.mu.Unlock()
	if ids := s.sealing.keys.IDs(); len(ids) > 0 && slices.Contains(s.sealing.known, ids[0]) {
		return nil
	}
	if err := s.open(ctx); err != nil {
		return err // a store that is closed makes no key
	}
	id, err := s.sealing.keys.Ready()
	if err != nil {
		return err
	}
	err = s.do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO keys (id) VALUES ($1) ON CONFLICT DO NOTHING", id[:])
		return err
	}})
	if err == nil {
		s.sealing.known = append(s.sealing.known, id)
	}
	return err
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
	file := s.sealing.keys
	if mode := file.Exposed(); mode != 0 {
		warn(eventlog.ExposedKey(file, mode))
	}
	for _, one := range all {
		if len(one.ID) != len(seal.ID{}) {
			continue
		}
		id := seal.ID(one.ID)
		if slices.Contains(file.IDs(), id) {
			s.sealing.known = append(s.sealing.known, id)
		} else if one.Sessions > 0 {
			warn(eventlog.UnreadableSecrets(id, one.Sessions, file))
		}
	}
	return nil
}

// PutSecrets implements eventlog.Store.
func (s *Store) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	sealed, err := s.seal(ctx, id, secrets)
	if err == nil {
		err = s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h head) error { return putSecrets(ctx, tx, h.session, sealed) })
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
	err = s.reading.QueryRow(ctx, "SELECT value FROM secrets WHERE session = $1 AND name = $2", h.session, []byte(name)).Scan(&sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, s.readError(err)
	}
	value, err := s.sealing.keys.Open(sealed, labels(id, name)...)
	if err != nil {
		return nil, fmt.Errorf("secret %q of session %s: %w: %w", name, id, eventlog.ErrSealed, err)
	}
	return value, nil
}
