package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// PutBeside stores the jobs and costs of the sessions that have arrived, in place of those that it
// has stored before.
func (a *Arrival) PutBeside(ctx context.Context, jobs []eventlog.Job, costs iter.Seq2[record.CostRow, error]) error {
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		for _, text := range []string{"DELETE FROM arriving_jobs WHERE move = $1", "DELETE FROM arriving_costs WHERE move = $1"} {
			if _, err := tx.Exec(ctx, text, a.move); err != nil {
				return err
			}
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"arriving_jobs"}, []string{"move", "id", "name", "kind", "epoch", "first", "last", "attempts", "due", "error"},
			pgx.CopyFromSlice(len(jobs), func(i int) ([]any, error) {
				j := jobs[i]
				return []any{a.move, []byte(j.ID), []byte(j.Session), []byte(j.Kind), []byte(j.Epoch), int64(j.From), int64(j.To), int32(j.Attempts), dueColumn(j.Due), []byte(j.Error)}, nil
			}))
		if err != nil {
			return err
		}
		next, stop := iter.Pull2(costs)
		defer stop()
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"arriving_costs"}, costTable, pgx.CopyFromFunc(func() ([]any, error) {
			c, err, more := next()
			if !more || err != nil {
				return nil, err
			}
			return []any{a.move, []byte(c.Of), []byte(c.Session), []byte(c.Day), []byte(c.Model), []byte(c.Purpose), c.Requests, c.Failed, c.Unpriced, c.Unreported,
				c.Input, c.Output, c.CacheRead, c.CacheWrite, c.CacheWrite1h, c.Reasoning, c.NanoUSD}, nil
		}))
		return err
	})
	return explain(a.place, err)
}

// costTable are the columns of arriving_costs.
var costTable = []string{"move", "session", "root", "day", "model", "purpose", "requests", "failed", "unpriced", "unreported",
	"input", "output", "cacheread", "cachewrite", "cachewrite1h", "reasoning", "nanousd"}

// A Broken is a session that has not arrived as it was sent.
type Broken struct {
	Session event.SessionID
	Fault   *record.Fault
}

func (b *Broken) Error() string {
	return fmt.Sprintf("session %s has not arrived as it was sent (event %d: %s)", b.Session, b.Fault.At, b.Fault.Reason)
}

// verified is the number of sessions that are read at once.
const verified = 256

// Verify reads every event that has arrived, and checks it against the chains of hashes. progress is
// called with the number of sessions so far. The error is a *Broken if a session has not arrived as
// it was sent; it will be sent again.
func (a *Arrival) Verify(ctx context.Context, progress func(done int)) (sessions int, err error) {
	for last := int64(0); ; {
		list, err := a.arrived(ctx, last)
		if err == nil {
			err = a.verify(ctx, list)
		}
		if broken, is := errors.AsType[*Broken](err); is {
			again := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
				return a.drop(ctx, tx, "session = (SELECT id FROM sessions WHERE name = $2)", []byte(broken.Session))
			})
			return sessions, errors.Join(fmt.Errorf("%s: %w", a.place, broken), explain(a.place, again))
		}
		if err != nil || len(list) == 0 {
			return sessions, explain(a.place, err)
		}
		sessions += len(list)
		progress(sessions)
		last = list[len(list)-1].Session
	}
}

// A named is a head with the name of its session.
type named struct {
	record.Head
	id event.SessionID
}

// arrived returns the next sessions that have arrived, after a row.
func (a *Arrival) arrived(ctx context.Context, last int64) ([]named, error) {
	rows, err := a.conn.Query(ctx, `SELECT s.name, s.id, s.seq, s.head, coalesce(s.parent, 0), s.shared, s.base, s.damaged FROM arrivals a JOIN sessions s ON s.id = a.session
		WHERE a.move = $1 AND a.session > $2 ORDER BY a.session LIMIT $3`, a.move, last, verified)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n named, err error) {
		var name, end, base []byte
		var damaged *int64
		err = row.Scan(&name, &n.Session, &n.End.Seq, &end, &n.Parent, &n.Shared, &base, &damaged)
		n.id, n.End.Hash, n.Base = event.SessionID(name), record.Hash(end), record.Hash(base)
		if damaged != nil {
			n.Damage = &eventlog.Damage{Session: n.id, Seq: event.Seq(*damaged)}
		}
		return n, err
	})
}

// verify checks sessions. Those that were damaged already are as good as up to the damage.
func (a *Arrival) verify(ctx context.Context, list []named) error {
	ids := make([]int64, len(list))
	for i, n := range list {
		ids[i] = n.Session
	}
	stream, err := a.conn.Query(ctx, "SELECT session, first, head, body FROM records WHERE session = ANY($1) ORDER BY session, first", ids)
	if err != nil {
		return err
	}
	defer stream.Close()
	records := &bySession{stream: stream}
	for _, n := range list {
		for _, err := range record.Follow(n.Head, records.of(n.Session)) {
			if err := n.judge(err); err != nil {
				return err
			}
		}
	}
	stream.Close()
	if err := stream.Err(); err != nil {
		return err
	}
	for _, n := range list {
		if err := n.judge(record.CheckOrigin(ctx, rows{a.conn}, n.Head)); err != nil {
			return err
		}
	}
	return nil
}

// judge returns what a fault in a session means: nothing if it was known before.
func (n named) judge(err error) error {
	f, is := errors.AsType[*record.Fault](err)
	switch {
	case !is:
		return err
	case n.Damage != nil && f.At >= n.Damage.Seq:
		return nil
	}
	return &Broken{n.id, f}
}

// A bySession splits a stream of records, which are in the order of their sessions.
type bySession struct {
	stream  pgx.Rows
	next    *record.Record // record that was read and not yielded
	session int64          // its session
}

// of yields the records of a session. It skips those of sessions before it.
func (b *bySession) of(session int64) iter.Seq2[[]record.Record, error] {
	return func(yield func([]record.Record, error) bool) {
		for {
			if b.next == nil {
				if !b.stream.Next() {
					if err := b.stream.Err(); err != nil {
						yield(nil, err)
					}
					return
				}
				var r record.Record
				if err := b.stream.Scan(&b.session, &r.First, &r.Head, &r.Body); err != nil {
					yield(nil, err)
					return
				}
				b.next = &r
			}
			if b.session > session {
				return
			}
			r := *b.next
			b.next = nil
			if b.session == session && !yield([]record.Record{r}, nil) {
				return
			}
		}
	}
}

// Show makes what has arrived visible, all of it at once, and returns the number of sessions. It can
// be called again, and then there are none.
func (a *Arrival) Show(ctx context.Context) (sessions int, err error) {
	err = pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		var done bool
		if err := tx.QueryRow(ctx, "SELECT done FROM moves WHERE name = $1 FOR UPDATE", a.move).Scan(&done); err != nil || done {
			return err
		}
		shown, err := tx.Exec(ctx, "UPDATE sessions s SET deleted = false, words = 0 FROM arrivals a WHERE a.session = s.id AND a.move = $1 AND NOT a.kept", a.move)
		if err != nil {
			return err
		}
		sessions = int(shown.RowsAffected())
		for _, text := range []string{
			`INSERT INTO jobs (id, session, kind, epoch, first, last, attempts, due, holder, error)
				SELECT j.id, s.id, j.kind, j.epoch, j.first, j.last, j.attempts, j.due, '', j.error FROM arriving_jobs j JOIN sessions s ON s.name = j.name AND NOT s.deleted WHERE j.move = $1`,
			fmt.Sprintf("INSERT INTO costs (session, %s) SELECT session, %s FROM arriving_costs WHERE move = $1", costColumns, costColumns) + onSameCost,
			"DELETE FROM arrivals WHERE move = $1",
			"DELETE FROM arriving_jobs WHERE move = $1",
			"DELETE FROM arriving_costs WHERE move = $1",
			"UPDATE moves SET done = true WHERE name = $1",
		} {
			if _, err := tx.Exec(ctx, text, a.move); err != nil {
				return err
			}
		}
		return nil
	})
	return sessions, explain(a.place, err)
}

// GiveUp removes everything that has arrived.
func (a *Arrival) GiveUp(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		if err := a.drop(ctx, tx, "true"); err != nil {
			return err
		}
		for _, text := range []string{"DELETE FROM arriving_jobs WHERE move = $1", "DELETE FROM arriving_costs WHERE move = $1", "DELETE FROM moves WHERE name = $1 AND NOT done"} {
			if _, err := tx.Exec(ctx, text, a.move); err != nil {
				return err
			}
		}
		return nil
	})
	return explain(a.place, err)
}

// warnOfMoves warns of moves to this store that are not finished: their sessions are hidden.
func (s *Store) warnOfMoves(ctx context.Context, warn func(string)) error {
	if warn == nil {
		return nil
	}
	origins, err := collect(ctx, s.reading, pgx.RowTo[[]byte], "SELECT origin FROM moves WHERE NOT done ORDER BY name")
	for _, origin := range origins {
		warn(fmt.Sprintf("sessions are being moved to %s from %s, and are not shown before that is finished: if no abide move runs there, run it again", s.place, origin))
	}
	return s.explain(err)
}
