package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// selectSessions selects the rows that scanSession reads. Further conditions follow it.
const selectSessions = `SELECT s.id, s.name, s.seq, s.head, s.created, s.modified, coalesce(p.name, ''), s.shared, s.damaged, s.reason, s.info
	FROM sessions s LEFT JOIN sessions p ON p.id = s.parent WHERE NOT s.deleted`

// scanSession reads a row of the index.
func scanSession(row pgx.CollectableRow) (out eventlog.Session, err error) {
	var name, head, parent, reason, info []byte
	var created, modified int64
	var damaged *int64
	if err := row.Scan(&out.Row, &name, &out.End.Seq, &head, &created, &modified, &parent, &out.Shared, &damaged, &reason, &info); err != nil {
		return out, err
	}
	out.ID, out.Parent = event.SessionID(name), event.SessionID(parent)
	out.End.Hash = record.Hash(head)
	out.Created, out.Modified = time.UnixMicro(created), time.UnixMicro(modified)
	if damaged != nil {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: event.Seq(*damaged), Reason: string(reason)}
	}
	if json.Unmarshal(info, &out.Info) != nil && out.Damage == nil {
		out.Damage = &eventlog.Damage{Session: out.ID, Seq: out.End.Seq, Reason: record.BrokenEntry}
	}
	return out, nil
}

// sessions reads the index.
func (s *Store) sessions(ctx context.Context, which string, args ...any) ([]eventlog.Session, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	return collect(ctx, s.reading, scanSession, selectSessions+which, args...)
}

// Session implements eventlog.Store.
func (s *Store) Session(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	found, err := s.sessions(ctx, " AND s.name = $1", []byte(id))
	switch {
	case err != nil:
		return eventlog.Session{}, s.readError(err)
	case len(found) == 0:
		return eventlog.Session{}, record.NotFound(id)
	}
	return found[0], nil
}

// Active implements eventlog.Store. It reads the sessions first, so that it holds no connection
// while the caller handles them.
func (s *Store) Active(ctx context.Context) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		all, err := s.sessions(ctx, " AND s.active ORDER BY s.modified DESC")
		if err != nil {
			yield(eventlog.Session{}, s.readError(err))
			return
		}
		for _, session := range all {
			if !yield(session, nil) {
				return
			}
		}
	}
}

// Reindex implements eventlog.Store.
func (s *Store) Reindex(ctx context.Context, id event.SessionID, at eventlog.End, info eventlog.Info) error {
	e, err := newEntry(info)
	if err == nil {
		err = s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h record.Head) error {
			_, err := tx.Exec(ctx, "UPDATE sessions SET active = $4, info = $5, dir = $6, busy = $7, listed = $8 WHERE id = $1 AND seq = $2 AND head = $3",
				h.Session, int64(at.Seq), at.Hash[:], e.active, e.info, e.dir, e.busy, e.listed)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("index %s: %w", id, err)
	}
	return nil
}

// inOrder is the order of a listing: that of the time of the last change.
const inOrder = " ORDER BY s.modified DESC, s.id DESC"

// Sessions implements eventlog.Store. It reads the sessions in parts, so that it holds no
// connection while the caller handles them.
func (s *Store) Sessions(ctx context.Context, q eventlog.Query) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		err := eventlog.NewListing(q).Walk(ctx, lister{s}, func(session eventlog.Session) bool { return yield(session, nil) })
		if err != nil {
			yield(eventlog.Session{}, s.readError(err))
		}
	}
}

// A lister is the eventlog.Lister of a store.
type lister struct{ s *Store }

// Part implements eventlog.Lister.
func (l lister) Part(ctx context.Context, q eventlog.Query, n int) ([]eventlog.Session, error) {
	c := conditions(q)
	return l.s.sessions(ctx, c.where.String()+inOrder+" LIMIT "+c.add(n), c.args...)
}

// Moved implements eventlog.Lister.
func (l lister) Moved(ctx context.Context, q eventlog.Query, after time.Time) ([]eventlog.Session, error) {
	c := conditions(q)
	return l.s.sessions(ctx, c.where.String()+" AND s.modified > "+c.add(after.UnixMicro())+inOrder, c.args...)
}

// A clause is a condition that is being written, and its arguments.
type clause struct {
	where strings.Builder
	args  []any
}

// add adds an argument and returns its name.
func (c *clause) add(arg any) string {
	c.args = append(c.args, arg)
	return fmt.Sprintf("$%d", len(c.args))
}

// and adds a condition, in which each question mark stands for an argument.
func (c *clause) and(condition string, args ...any) {
	c.where.WriteString(" AND ")
	for _, arg := range args {
		before, after, _ := strings.Cut(condition, "?")
		c.where.WriteString(before + c.add(arg))
		condition = after
	}
	c.where.WriteString(condition)
}

// conditions returns the conditions of a query that the database can evaluate. They may select
// more than the query does.
func conditions(q eventlog.Query) *clause {
	c := new(clause)
	if q.After != (eventlog.Place{}) {
		c.and("(s.modified, s.id) < (?, ?)", q.After.Modified.UnixMicro(), q.After.Row)
	}
	if q.Dir != "" {
		c.and("s.dir = ?", []byte(q.Dir))
	}
	if q.Busy {
		c.and("(s.busy OR s.damaged IS NOT NULL)")
	}
	if q.Listed {
		c.and("s.listed")
	}
	if q.IDPrefix != "" {
		c.and("substring(s.name FROM 1 FOR ?) = ?", len(q.IDPrefix), []byte(q.IDPrefix))
		c.and("s.name >= ?", []byte(q.IDPrefix))
	}
	if !q.ModifiedSince.IsZero() {
		c.and("s.modified >= ?", q.ModifiedSince.UnixMicro())
	}
	if !q.ModifiedBefore.IsZero() {
		c.and("s.modified <= ?", q.ModifiedBefore.UnixMicro())
	}
	return c
}
