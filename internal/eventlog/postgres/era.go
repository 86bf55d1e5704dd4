package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// An era is a time in which the database cannot have lost what it has acknowledged, with what this
// process knows to be in it.
type era struct {
	number atomic.Int64 // 0 before the first connection

	checking sync.Mutex // held while the database is compared with ends

	mu   sync.Mutex
	ends map[event.SessionID]eventlog.End // ends of sessions that this process has written to
}

// noteEnd notes that an append was acknowledged.
func (e *era) noteEnd(id event.SessionID, end eventlog.End) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ends == nil {
		e.ends = make(map[event.SessionID]eventlog.End)
	}
	if end.Seq > e.ends[id].Seq {
		e.ends[id] = end
	}
}

// forgetFamily forgets a session with its agents, which this server does not own any more.
func (e *era) forgetFamily(family event.SessionID, c *claims) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.ends {
		if of, _ := c.family(id); of == family {
			delete(e.ends, id)
		}
	}
}

// forgetEnd forgets a session that was deleted.
func (e *era) forgetEnd(id event.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ends, id)
}

// known returns the ends.
func (e *era) known() map[event.SessionID]eventlog.End {
	e.mu.Lock()
	defer e.mu.Unlock()
	ends := make(map[event.SessionID]eventlog.End, len(e.ends))
	for id, end := range e.ends {
		ends[id] = end
	}
	return ends
}

// skippedFences is how many numbers of claims are left out in a new era: so many were not given away
// since a standby was up to date.
const skippedFences = 1 << 30

// databaseOf returns the cluster that a connection leads to and its timeline. A service that hides them
// has one cluster without a name.
func databaseOf(ctx context.Context, q querier) (system string, timeline int64, err error) {
	err = q.QueryRow(ctx, "SELECT (SELECT system_identifier::text FROM pg_control_system()), ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint").Scan(&system, &timeline)
	if _, said := errors.AsType[*pgconn.PgError](err); said && !lost(err) {
		return "", 0, nil
	}
	return system, timeline, err
}

// currentEra returns the number of the era, and begins a new one if the database is not the one that
// was written to last. It holds meta until the transaction ends.
func currentEra(ctx context.Context, tx pgx.Tx) (number int64, err error) {
	system, timeline, err := databaseOf(ctx, tx)
	if err != nil {
		return 0, err
	}
	var was []byte
	var wasTimeline int64
	if err := tx.QueryRow(ctx, "SELECT system, timeline, era FROM meta WHERE id = 1 FOR UPDATE").Scan(&was, &wasTimeline, &number); err != nil {
		return 0, err
	}
	if string(was) == system && timeline == wasTimeline && number > 0 {
		return number, nil
	}
	// A standby that lags may not know of an era that another standby has begun. Timelines of one
	// cluster rise in any case.
	number += max(1, timeline-wasTimeline)
	if len(was) == 0 {
		number = max(1, timeline)
	}
	if _, err := tx.Exec(ctx, "UPDATE meta SET system = $1, timeline = $2, era = $3", []byte(system), timeline, number); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "SELECT setval('fences', nextval('fences') + $1)", int64(skippedFences))
	return number, err
}

// errLostEvents means that the database has lost events. Their sessions wait for a person.
var errLostEvents = errors.New("the database has lost events that it had acknowledged, as after a failover to a standby that lagged: their sessions wait for a person (abide sessions list)")

// checkEra compares what this process knows to be stored with the database, if that is not the one
// that it was connected with before. Sessions with events that are missing are quarantined.
func (s *Store) checkEra(ctx context.Context, conn *pgx.Conn) error {
	s.era.checking.Lock()
	defer s.era.checking.Unlock()
	var number int64
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '60s'"); err != nil {
			return err
		}
		number, err = currentEra(ctx, tx)
		return err
	})
	before := s.era.number.Load()
	if err != nil || number == before {
		return err
	}
	missing := 0
	if before != 0 {
		if missing, err = s.compareEnds(ctx, conn); err != nil {
			return err
		}
	}
	s.era.number.Store(number)
	switch {
	case missing == 0:
		return nil
	case s.life != nil:
		return fmt.Errorf("%w: %w", eventlog.ErrFenced, errLostEvents) // it drops what is in memory, and joins again
	}
	return errLostEvents
}

// compareEnds quarantines the sessions with events that are missing, and returns their number.
func (s *Store) compareEnds(ctx context.Context, conn *pgx.Conn) (missing int, err error) {
	for id, end := range s.era.known() {
		h, err := findHead(ctx, conn, id)
		if errors.Is(err, eventlog.ErrNotFound) {
			missing++ // all of it is lost; or it was deleted, and then this is one time too many
			continue
		}
		if err != nil {
			return missing, err
		}
		if is, err := reaches(ctx, conn, h, end); err != nil || is {
			if err != nil {
				return missing, err
			}
			continue
		}
		missing++
		reason := fmt.Sprintf("%d events were acknowledged, and the database has lost events since it failed over or was restored; to go on without them: abide sessions verify %s", end.Seq, id)
		if _, err := conn.Exec(ctx, "UPDATE sessions SET damaged = $2, reason = $3 WHERE id = $1 AND damaged IS NULL", h.Session, int64(min(h.End.Seq, end.Seq)+1), []byte(reason)); err != nil {
			return missing, err
		}
	}
	return missing, nil
}
