package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// A right is the right to write to a family: a session and its agents, which have one owner.
type right struct {
	family event.SessionID // the session that works for a person
	fence  int64           // 0 if nobody else writes to the store
}

// claims are the families that this server has claimed.
type claims struct {
	mu       sync.Mutex
	known    map[event.SessionID]int64           // fence of each; lostClaim if another server has claimed it since
	families map[event.SessionID]event.SessionID // families of agents
}

// lostClaim is the fence of a family that was claimed by another server. A write does not claim it
// again: what this server knows of it is old.
const lostClaim = -1

func (c *claims) get(family event.SessionID) (fence int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fence, known = c.known[family]
	return fence, known
}

func (c *claims) set(fence int64, families ...event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[event.SessionID]int64)
	}
	for _, id := range families {
		c.known[id] = fence
	}
}

// replace changes the fence of a family unless it has another one by now. The fence 0 forgets it.
func (c *claims) replace(old right, fence int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known[old.family] != old.fence:
	case fence == 0:
		delete(c.known, old.family)
	default:
		c.known[old.family] = fence
	}
}

// forget forgets a session that was deleted.
func (c *claims) forget(id event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.families, id)
	delete(c.known, id)
}

// family returns the family of a session, if it was noted or the session has one of its own that
// this server has claimed.
func (c *claims) family(id event.SessionID) (event.SessionID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if family, agent := c.families[id]; agent {
		return family, true
	}
	_, known := c.known[id]
	return id, known
}

// note notes the family of a session. It never changes.
func (c *claims) note(id, family event.SessionID) {
	if id == family {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.families == nil {
		c.families = make(map[event.SessionID]event.SessionID)
	}
	c.families[id] = family
}

// owned lists the families that this server owns, as far as it knows.
func (c *claims) owned() (families []event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, fence := range c.known {
		if fence != lostClaim {
			families = append(families, id)
		}
	}
	slices.Sort(families)
	return families
}

// family returns the family of a session. One that does not exist is its own.
func (s *Store) family(ctx context.Context, id event.SessionID) (family event.SessionID, exists bool, err error) {
	if family, known := s.claims.family(id); known {
		return family, true, nil
	}
	var name []byte
	err = s.reading.QueryRow(ctx, "SELECT coalesce(family, name) FROM sessions WHERE name = $1 AND NOT deleted", []byte(id)).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return id, false, nil
	}
	if err != nil {
		return "", false, s.readError(err)
	}
	s.claims.note(id, event.SessionID(name))
	return event.SessionID(name), true, nil
}

// familyOf returns the family of a session that is made with events.
func familyOf(id event.SessionID, events []event.Event) event.SessionID {
	for _, e := range events {
		if e.Type != event.SessionConfigured {
			continue
		}
		config, err := event.As[event.SessionConfiguredData](e)
		if err == nil {
			return cmp.Or(config.Agent.Counted(), id)
		}
	}
	return id
}

// Claim makes this server the owner of sessions and their agents, of all of them or none. It has to
// be called before their logs are read, so that nothing is read that another server still writes.
// The error is an *eventlog.Owned if another server owns one of them or has to, and an
// *eventlog.Away if that server does not run. A session that does not exist is not claimed: the
// append that makes it does that.
func (s *Store) Claim(ctx context.Context, ids ...event.SessionID) error {
	if s.life == nil || len(ids) == 0 {
		return s.queue.Open(ctx)
	}
	var families []event.SessionID
	for _, id := range ids {
		family, exists, err := s.family(ctx, id)
		if err != nil {
			return err
		}
		if exists {
			families = append(families, family)
		}
	}
	return s.claimFamilies(ctx, families...)
}

func (s *Store) claimFamilies(ctx context.Context, families ...event.SessionID) error {
	if len(families) == 0 {
		return s.queue.Open(ctx)
	}
	var fences map[event.SessionID]int64
	err := s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) (err error) {
		fences, err = s.life.claim(ctx, tx, families)
		return err
	}})
	if err != nil {
		return fmt.Errorf("claim %s: %w", families[0], err)
	}
	for family, fence := range fences {
		s.claims.set(fence, family)
	}
	return nil
}

// Fence returns what this server shows to change something of a session elsewhere. It claims the
// session if nobody owns it, and waits while this server must not begin anything. The fence is zero
// if no other server can write to the session: if it is not stored, or the store is open alone.
func (s *Store) Fence(ctx context.Context, id event.SessionID) (eventlog.Fence, error) {
	if s.life == nil {
		return eventlog.Fence{}, nil
	}
	r, err := s.right(ctx, id, nil)
	if errors.Is(err, eventlog.ErrNotFound) {
		return eventlog.Fence{}, nil
	}
	if err == nil {
		err = s.life.await(ctx)
	}
	if err != nil {
		return eventlog.Fence{}, err
	}
	return eventlog.Fence{Family: r.family, Era: s.era.number.Load(), Number: r.fence}, s.queue.Open(ctx)
}

// Owns reports whether this server owns a session, as far as it knows. The next write tells.
func (s *Store) Owns(id event.SessionID) bool {
	if s.life == nil {
		return true
	}
	family, _ := s.claims.family(id)
	fence, known := s.claims.get(family)
	return known && fence != lostClaim
}

// OwnedFamilies lists the sessions that this server owns, without their agents.
func (s *Store) OwnedFamilies() []event.SessionID { return s.claims.owned() }

// IsOfFamily reports whether a session that this server has written to belongs to a family.
func (s *Store) IsOfFamily(id, family event.SessionID) bool {
	of, known := s.claims.family(id)
	return known && of == family
}

// Owner returns the other live server that owns a session, or has its files and commands; nil if
// there is none.
func (s *Store) Owner(ctx context.Context, id event.SessionID) (*eventlog.Owned, error) {
	if s.life == nil || s.Owns(id) {
		return nil, s.queue.Open(ctx)
	}
	family, _, err := s.family(ctx, id)
	if err != nil {
		return nil, err
	}
	var server, address []byte
	err = s.reading.QueryRow(ctx, `SELECT s.id, s.address FROM servers s
		WHERE NOT s.dead AND s.id <> $2 AND (EXISTS (SELECT 1 FROM owners o WHERE o.name = $1 AND o.server = s.id)
			OR s.machine <> $3 AND EXISTS (SELECT 1 FROM sessions f WHERE f.name = $1 AND NOT f.deleted AND f.machine <> '' AND f.machine = s.machine)) LIMIT 1`,
		[]byte(family), []byte(s.life.me.ID), []byte(s.life.me.Machine)).Scan(&server, &address)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, s.readError(err)
	}
	return &eventlog.Owned{Session: id, Server: string(server), Address: string(address)}, nil
}

// gone is the condition for owners that are dead and cannot write any more, and claimable that for
// owners whose session the server $2 can claim. They ask for the row of a dead server, and not for
// that of a live one to be missing: a statement does not see a server that has joined and claimed
// the session since the statement began. A server that is dead remains so.
const (
	gone      = "EXISTS (SELECT 1 FROM servers d WHERE d.id = o.server AND d.dead AND NOT EXISTS (SELECT 1 FROM writers w WHERE w.server = d.id))"
	claimable = "(o.server = $2 OR " + gone + ")"
)

// claim claims families inside a transaction, and returns their fences. What the server owns already
// keeps its fence: changes elsewhere that carry it are under way.
func (l *life) claim(ctx context.Context, tx pgx.Tx, families []event.SessionID) (fences map[event.SessionID]int64, err error) {
	names := namesOf(families)
	if err := l.checkPlace(ctx, tx, names); err != nil {
		return nil, err
	}
	var next int64
	if err := tx.QueryRow(ctx, "SELECT nextval('fences')").Scan(&next); err != nil {
		return nil, err
	}
	inner, err := tx.Begin(ctx) // a savepoint: what it did goes away if one of them cannot be claimed
	if err != nil {
		return nil, err
	}
	defer inner.Rollback(ctx) // does nothing after a commit
	rows, err := inner.Query(ctx, `INSERT INTO owners AS o (name, server, fence) SELECT unnest($1::bytea[]), $2, $3
		ON CONFLICT (name) DO UPDATE SET server = excluded.server, fence = CASE WHEN o.server = excluded.server THEN o.fence ELSE excluded.fence END
		WHERE `+claimable+" RETURNING name, fence", names, []byte(l.me.ID), next)
	if err != nil {
		return nil, err
	}
	fences = make(map[event.SessionID]int64)
	var name []byte
	var fence int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &fence}, func() error {
		fences[event.SessionID(name)] = fence
		return nil
	}); err != nil {
		return nil, err
	}
	if len(fences) == len(names) {
		if err := l.settle(ctx, inner, names); err != nil {
			return nil, err
		}
		return fences, inner.Commit(ctx)
	}
	if err := inner.Rollback(ctx); err != nil {
		return nil, err
	}
	var server, address []byte
	err = tx.QueryRow(ctx, `SELECT o.name, o.server, coalesce(s.address, '') FROM owners o LEFT JOIN servers s ON s.id = o.server
		WHERE o.name = ANY($1) AND NOT `+claimable+" ORDER BY o.name LIMIT 1", names, []byte(l.me.ID)).Scan(&name, &server, &address)
	if errors.Is(err, pgx.ErrNoRows) { // it has just been freed
		return nil, refusal{eventlog.ErrNotOwner}
	}
	if err != nil {
		return nil, err
	}
	return nil, refusal{&eventlog.Owned{Session: event.SessionID(name), Server: string(server), Address: string(address)}}
}

// namesOf returns ids as they are stored, in one order everywhere, so that two claims do not wait
// for each other.
func namesOf(ids []event.SessionID) (names [][]byte) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		names = append(names, []byte(id))
	}
	return names
}

// checkPlace refuses to claim what this server cannot go on with: sessions whose files and commands
// another one has, and everything that it does not own if it is being drained.
func (l *life) checkPlace(ctx context.Context, tx pgx.Tx, names [][]byte) error {
	var name, machine, server, address []byte
	err := tx.QueryRow(ctx, `SELECT s.name, s.machine, coalesce(l.id, ''), coalesce(l.address, '') FROM sessions s
		LEFT JOIN servers l ON l.machine = s.machine AND NOT l.dead AND NOT l.draining
		WHERE s.name = ANY($1) AND NOT s.deleted AND s.machine <> '' AND s.machine <> $2 ORDER BY s.name, l.id LIMIT 1`,
		names, []byte(l.me.Machine)).Scan(&name, &machine, &server, &address)
	switch {
	case err == nil && len(server) == 0:
		return refusal{&eventlog.Away{Session: event.SessionID(name), Machine: string(machine)}}
	case err == nil:
		return refusal{&eventlog.Owned{Session: event.SessionID(name), Server: string(server), Address: string(address)}}
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	case !l.draining.Load():
		return nil
	}
	var owned int
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM owners WHERE name = ANY($1) AND server = $2", names, []byte(l.me.ID)).Scan(&owned); err != nil || owned == len(names) {
		return err
	}
	// Whoever wants to write goes to the owner, or else to the server with the least to do.
	err = tx.QueryRow(ctx, `SELECT s.id, s.address FROM servers s WHERE NOT s.dead AND NOT s.draining AND s.id <> $1
		ORDER BY EXISTS (SELECT 1 FROM owners o WHERE o.name = $2 AND o.server = s.id) DESC, s.busy, s.id LIMIT 1`, []byte(l.me.ID), names[0]).Scan(&server, &address)
	if errors.Is(err, pgx.ErrNoRows) {
		return refusal{fmt.Errorf("%w: this server hands over what it works on, and no other one runs", eventlog.ErrNotOwner)}
	}
	if err != nil {
		return err
	}
	return refusal{&eventlog.Owned{Session: event.SessionID(names[0]), Server: string(server), Address: string(address)}}
}

// settle notes where the sessions are of which that is not known yet: with this server, unless their
// workspace is elsewhere.
func (l *life) settle(ctx context.Context, tx pgx.Tx, names [][]byte) error {
	rows, err := tx.Query(ctx, "SELECT name, info FROM sessions WHERE name = ANY($1) AND machine IS NULL", names)
	if err != nil {
		return err
	}
	type unsettled struct{ Name, Info []byte }
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[unsettled])
	if err != nil {
		return err
	}
	for _, u := range list {
		var info eventlog.Info
		if err := json.Unmarshal(u.Info, &info); err != nil {
			continue // the log is read before anything is done, and tells
		}
		if _, err := tx.Exec(ctx, "UPDATE sessions SET machine = $2 WHERE name = $1", u.Name, l.placeOf(&info)); err != nil {
			return err
		}
	}
	return nil
}

// placeOf returns what the column machine says of a session that this server works on.
func (l *life) placeOf(info *eventlog.Info) []byte {
	switch {
	case l == nil:
		return nil
	case info != nil && info.Workspace != nil:
		return []byte{}
	}
	return []byte(l.me.Machine)
}

// isDue is the condition for a session s that a server has to do something for, at the time $2, that
// nobody owns, and that the server of the data folder $1 can go on with.
const isDue = `NOT s.deleted AND (s.active OR EXISTS (SELECT 1 FROM jobs j WHERE j.session = s.id AND j.due <= $2))
	AND NOT EXISTS (SELECT 1 FROM sessions r WHERE r.name = coalesce(s.family, s.name) AND r.machine <> '' AND r.machine <> $1)
	AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.name = coalesce(s.family, s.name) AND NOT ` + gone + `)`

// ClaimDue claims sessions that a server has to do something for and that nobody owns, with their
// families, and returns them with those of their agents that are due. It claims at most the given
// number of families. Several servers that do this at once share them. It only writes if there is one.
func (s *Store) ClaimDue(ctx context.Context, most int) ([]eventlog.Session, error) {
	if s.life == nil || s.life.draining.Load() {
		return nil, s.queue.Open(ctx)
	}
	var some bool
	err := s.reading.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM sessions s WHERE "+isDue+")", []byte(s.life.me.Machine), time.Now().UnixMicro()).Scan(&some)
	if err != nil || !some {
		return nil, s.readError(err)
	}
	var families []event.SessionID
	var fence int64
	err = s.queue.Do(ctx, &op{apply: func(ctx context.Context, w *writing, tx pgx.Tx) (err error) {
		families, fence, err = s.life.claimDue(ctx, tx, w.now(), most)
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("claim sessions: %w", err)
	}
	s.claims.set(fence, families...)
	names := namesOf(families)
	list, err := s.sessions(ctx, " AND (s.name = ANY($1) OR s.active AND s.family = ANY($1)) ORDER BY s.modified", names)
	return list, s.readError(err)
}

func (l *life) claimDue(ctx context.Context, tx pgx.Tx, now int64, most int) (families []event.SessionID, fence int64, err error) {
	if err := tx.QueryRow(ctx, "SELECT nextval('fences')").Scan(&fence); err != nil {
		return nil, 0, err
	}
	rows, err := tx.Query(ctx, `WITH due AS (SELECT s.name, s.family FROM sessions s WHERE `+isDue+` ORDER BY s.modified, s.id LIMIT $3 FOR UPDATE OF s SKIP LOCKED)
		INSERT INTO owners AS o (name, server, fence) SELECT DISTINCT coalesce(family, name), $4::bytea, $5::bigint FROM due ORDER BY 1
		ON CONFLICT (name) DO UPDATE SET server = excluded.server, fence = excluded.fence WHERE `+gone+`
		RETURNING name`, []byte(l.me.Machine), now, most, []byte(l.me.ID), fence)
	if err != nil {
		return nil, 0, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		families = append(families, event.SessionID(name))
	}
	return families, fence, l.settle(ctx, tx, names)
}

// Release gives up sessions that this server owns, with their families, so that any server can
// claim them.
func (s *Store) Release(ctx context.Context, ids ...event.SessionID) error {
	if s.life == nil {
		return s.queue.Open(ctx)
	}
	for _, id := range ids {
		family, _, err := s.family(ctx, id)
		if err != nil {
			return err
		}
		fence, known := s.claims.get(family)
		if !known {
			continue
		}
		err = s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "DELETE FROM owners WHERE name = $1 AND fence = $2", []byte(family), fence)
			return err
		}})
		if err != nil {
			return fmt.Errorf("release %s: %w", id, err)
		}
		s.claims.replace(right{family, fence}, 0)
		s.era.forgetFamily(family, &s.claims)
	}
	return nil
}

// right returns the right that a write to a session is given, and claims the session's family if
// this is the first write. A session that does not exist is only claimed by a write that creates it
// with the given events.
func (s *Store) right(ctx context.Context, id event.SessionID, first []event.Event) (right, error) {
	if s.life == nil {
		return right{}, nil
	}
	family, exists, err := s.family(ctx, id)
	if err != nil {
		return right{}, err
	}
	if !exists {
		if len(first) == 0 {
			return right{}, record.NotFound(id)
		}
		family = familyOf(id, first)
	}
	fence, known := s.claims.get(family)
	if !known {
		if err := s.claimFamilies(ctx, family); err != nil {
			return right{}, err
		}
		fence, _ = s.claims.get(family)
	}
	if fence == lostClaim {
		return right{}, fmt.Errorf("session %s: %w", id, eventlog.ErrNotOwner)
	}
	s.claims.note(id, family)
	return right{family, fence}, nil
}

// hold checks that the fence of a session is the latest, and keeps others from claiming it until
// the transaction ends. A fence of 0 always holds.
func (s *Store) hold(ctx context.Context, tx pgx.Tx, r right) error {
	if s.life == nil {
		return nil
	}
	var held bool
	err := tx.QueryRow(ctx, "SELECT true FROM owners WHERE name = $1 AND fence = $2 FOR SHARE", []byte(r.family), r.fence).Scan(&held)
	if errors.Is(err, pgx.ErrNoRows) {
		return refusal{s.fenced(ctx, tx, r)}
	}
	return err
}

// holding is the part of the statements of appends that does the same, with the family and the fence
// as the arguments with the given numbers.
func holding(family, fence int) string {
	return fmt.Sprintf(" AND EXISTS (SELECT 1 FROM owners WHERE name = $%d::bytea AND fence = $%d::bigint FOR SHARE)", family, fence)
}

// fenced returns the error for a write whose fence does not hold, and nil if it does.
func (s *Store) fenced(ctx context.Context, q querier, r right) error {
	if s.life == nil {
		return nil
	}
	var now int64
	err := q.QueryRow(ctx, "SELECT fence FROM owners WHERE name = $1", []byte(r.family)).Scan(&now)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // deleted, or released
		s.claims.replace(r, 0)
		return eventlog.ErrConflict
	case err != nil:
		return err
	case now == r.fence:
		return nil
	}
	s.claims.replace(r, lostClaim)
	s.era.forgetFamily(r.family, &s.claims)
	return fmt.Errorf("session %s: %w", r.family, eventlog.ErrNotOwner)
}

// disown removes the owner of a session's family that has no session any more, after one was deleted.
func (s *Store) disown(ctx context.Context, tx pgx.Tx, id event.SessionID) error {
	if s.life == nil {
		return nil
	}
	family, _ := s.claims.family(id)
	_, err := tx.Exec(ctx, `DELETE FROM owners WHERE name = $1
		AND NOT EXISTS (SELECT 1 FROM sessions WHERE (name = $1 OR family = $1) AND NOT deleted)`, []byte(family))
	return err
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
