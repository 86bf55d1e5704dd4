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
	"github.com/abide-run/abide/internal/eventlog/record"
)

// An Owned is the error for a write to a session that another live server owns.
type Owned struct {
	Session event.SessionID
	Server  string // id of the owner
	Address string // where the owner is reached
}

func (o *Owned) Error() string {
	return fmt.Sprintf("session %s is worked on by the server at %s", o.Session, o.Address)
}

// Is makes an Owned an eventlog.ErrNotOwner.
func (o *Owned) Is(target error) bool { return target == eventlog.ErrNotOwner }

// claims are the sessions that this server has claimed.
type claims struct {
	mu    sync.Mutex
	known map[event.SessionID]int64 // fence of each; lostClaim if another server has claimed it since
}

// lostClaim is the fence of a session that was claimed by another server. A write does not claim it
// again: what this server knows of it is old.
const lostClaim = -1

func (c *claims) get(id event.SessionID) (fence int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fence, known = c.known[id]
	return fence, known
}

func (c *claims) set(fence int64, ids ...event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[event.SessionID]int64)
	}
	for _, id := range ids {
		c.known[id] = fence
	}
}

// replace changes the fence of a session unless it has another one by now. The fence 0 forgets it.
func (c *claims) replace(id event.SessionID, old, fence int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known[id] != old:
	case fence == 0:
		delete(c.known, id)
	default:
		c.known[id] = fence
	}
}

// forget forgets a session that was deleted.
func (c *claims) forget(id event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, id)
}

// Claim makes this server the owner of sessions, all of them or none: a session and its agents
// belong together. It has to be called before their logs are read, so that nothing is read that
// another server still writes. The error is an *Owned if a live server owns one of them.
func (s *Store) Claim(ctx context.Context, ids ...event.SessionID) error {
	if s.life == nil || len(ids) == 0 {
		return s.queue.Open(ctx)
	}
	var fence int64
	err := s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) (err error) {
		fence, err = s.life.claim(ctx, tx, ids)
		return err
	}})
	if err != nil {
		return fmt.Errorf("claim %s: %w", ids[0], err)
	}
	s.claims.set(fence, ids...)
	return nil
}

// gone is the condition for owners that are dead and cannot write any more, and claimable that for
// owners whose session the server $2 can claim. They ask for the row of a dead server, and not for
// that of a live one to be missing: a statement does not see a server that has joined and claimed
// the session since the statement began. A server that is dead remains so.
const (
	gone      = "EXISTS (SELECT 1 FROM servers d WHERE d.id = o.server AND d.dead AND NOT EXISTS (SELECT 1 FROM writers w WHERE w.server = d.id))"
	claimable = "(o.server = $2 OR " + gone + ")"
)

// claim claims sessions inside a transaction, and returns their fence.
func (l *life) claim(ctx context.Context, tx pgx.Tx, ids []event.SessionID) (fence int64, err error) {
	var names [][]byte
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) { // in one order everywhere, so that two claims do not wait for each other
		names = append(names, []byte(id))
	}
	if err := tx.QueryRow(ctx, "SELECT nextval('fences')").Scan(&fence); err != nil {
		return 0, err
	}
	inner, err := tx.Begin(ctx) // a savepoint: what it did goes away if one of them cannot be claimed
	if err != nil {
		return 0, err
	}
	defer inner.Rollback(ctx) // does nothing after a commit
	done, err := inner.Exec(ctx, `INSERT INTO owners AS o (name, server, fence) SELECT unnest($1::bytea[]), $2, $3
		ON CONFLICT (name) DO UPDATE SET server = excluded.server, fence = excluded.fence WHERE `+claimable, names, []byte(l.me.ID), fence)
	if err != nil {
		return 0, err
	}
	if int(done.RowsAffected()) == len(names) {
		return fence, inner.Commit(ctx)
	}
	if err := inner.Rollback(ctx); err != nil {
		return 0, err
	}
	var name, server, address []byte
	err = tx.QueryRow(ctx, `SELECT o.name, o.server, coalesce(s.address, '') FROM owners o LEFT JOIN servers s ON s.id = o.server
		WHERE o.name = ANY($1) AND NOT `+claimable+" ORDER BY o.name LIMIT 1", names, []byte(l.me.ID)).Scan(&name, &server, &address)
	if errors.Is(err, pgx.ErrNoRows) { // it has just been freed
		return 0, refusal{eventlog.ErrNotOwner}
	}
	if err != nil {
		return 0, err
	}
	return 0, refusal{&Owned{Session: event.SessionID(name), Server: string(server), Address: string(address)}}
}

// ClaimDue claims sessions that a server has to do something for and that nobody owns, at most the
// given number, and returns them. Several servers that do this at once share them.
func (s *Store) ClaimDue(ctx context.Context, most int) (ids []event.SessionID, err error) {
	if s.life == nil {
		return nil, s.queue.Open(ctx)
	}
	var fence int64
	err = s.queue.Do(ctx, &op{apply: func(ctx context.Context, w *writing, tx pgx.Tx) (err error) {
		ids, fence, err = s.life.claimDue(ctx, tx, w.now(), most)
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("claim sessions: %w", err)
	}
	s.claims.set(fence, ids...)
	return ids, nil
}

func (l *life) claimDue(ctx context.Context, tx pgx.Tx, now int64, most int) (ids []event.SessionID, fence int64, err error) {
	if err := tx.QueryRow(ctx, "SELECT nextval('fences')").Scan(&fence); err != nil {
		return nil, 0, err
	}
	rows, err := tx.Query(ctx, `INSERT INTO owners AS o (name, server, fence)
		SELECT s.name, $2, $3 FROM sessions s
		WHERE NOT s.deleted AND (s.active OR EXISTS (SELECT 1 FROM jobs j WHERE j.session = s.id AND j.due <= $4))
			AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.name = s.name AND NOT `+gone+`)
		ORDER BY s.modified, s.id LIMIT $1 FOR UPDATE OF s SKIP LOCKED
		ON CONFLICT (name) DO UPDATE SET server = excluded.server, fence = excluded.fence
			WHERE `+gone+`
		RETURNING name`, most, []byte(l.me.ID), fence, now)
	if err != nil {
		return nil, 0, err
	}
	ids, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (event.SessionID, error) {
		var name []byte
		err := row.Scan(&name)
		return event.SessionID(name), err
	})
	return ids, fence, err
}

// Release gives up sessions that this server owns, so that any server can claim them.
func (s *Store) Release(ctx context.Context, ids ...event.SessionID) error {
	if s.life == nil {
		return s.queue.Open(ctx)
	}
	for _, id := range ids {
		fence, known := s.claims.get(id)
		if !known {
			continue
		}
		err := s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "DELETE FROM owners WHERE name = $1 AND fence = $2", []byte(id), fence)
			return err
		}})
		if err != nil {
			return fmt.Errorf("release %s: %w", id, err)
		}
		s.claims.replace(id, fence, 0)
	}
	return nil
}

// fence returns the fence that a write to a session is given, and claims the session if this is
// the first write. It is 0 if nobody else writes to the store. A session that does not exist is
// only claimed by a write that creates it.
func (s *Store) fence(ctx context.Context, id event.SessionID, creates bool) (int64, error) {
	if s.life == nil {
		return 0, nil
	}
	fence, known := s.claims.get(id)
	if !known {
		if !creates {
			if _, err := s.head(ctx, id); err != nil {
				return 0, err
			}
		}
		if err := s.Claim(ctx, id); err != nil {
			return 0, err
		}
		fence, _ = s.claims.get(id)
	}
	if fence == lostClaim {
		return 0, fmt.Errorf("session %s: %w", id, eventlog.ErrNotOwner)
	}
	return fence, nil
}

// hold checks that the fence of a session is the latest, and keeps others from claiming it until
// the transaction ends. A fence of 0 always holds.
func (s *Store) hold(ctx context.Context, tx pgx.Tx, id event.SessionID, fence int64) error {
	if s.life == nil {
		return nil
	}
	var held bool
	err := tx.QueryRow(ctx, "SELECT true FROM owners WHERE name = $1 AND fence = $2 FOR SHARE", []byte(id), fence).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return refusal{s.fenced(ctx, tx, id, fence)}
	}
	return err
}

// holding is the part of the statements of appends that does the same, with the fence as the
// argument with the given number.
func holding(fence int) string {
	return fmt.Sprintf(" AND EXISTS (SELECT 1 FROM owners WHERE name = $1::bytea AND fence = $%d::bigint FOR SHARE)", fence)
}

// fenced returns the error for a write whose fence does not hold, and nil if it does.
func (s *Store) fenced(ctx context.Context, q querier, id event.SessionID, fence int64) error {
	if s.life == nil {
		return nil
	}
	var now int64
	err := q.QueryRow(ctx, "SELECT fence FROM owners WHERE name = $1", []byte(id)).Scan(&now)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // deleted, or released
		s.claims.replace(id, fence, 0)
		return eventlog.ErrConflict
	case err != nil:
		return err
	case now == fence:
		return nil
	}
	s.claims.replace(id, fence, lostClaim)
	return fmt.Errorf("session %s: %w", id, eventlog.ErrNotOwner)
}

// jobSession returns the name of the session of a job; empty if there is no such job.
func jobSession(ctx context.Context, q querier, job string) (event.SessionID, error) {
	var name []byte
	err := q.QueryRow(ctx, "SELECT s.name FROM jobs j JOIN sessions s ON s.id = j.session WHERE j.id = $1", []byte(job)).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return event.SessionID(name), err
}

// lockParent keeps a session from being deleted until the transaction ends: another server may do
// that while this one forks it.
func (s *Store) lockParent(ctx context.Context, tx pgx.Tx, parent event.SessionID) (record.Head, error) {
	lock := ""
	if s.life != nil {
		lock = " FOR SHARE"
	}
	return scanHead(parent, tx.QueryRow(ctx, selectHead+"name = $1 AND NOT deleted"+lock, []byte(parent)))
}

// hexLiteral returns a name as a literal of SQL.
func hexLiteral(name string) string {
	return fmt.Sprintf(`'\x%x'::bytea`, name)
}
