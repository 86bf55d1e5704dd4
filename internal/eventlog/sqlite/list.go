package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/eventlog"
)

// Sessions implements eventlog.Store. It reads the sessions in parts, so that it holds
// no connection while the caller handles them.
func (s *Store) Sessions(ctx context.Context, q eventlog.Query) iter.Seq2[eventlog.Session, error] {
	return func(yield func(eventlog.Session, error) bool) {
		listing := eventlog.NewListing(q)
		each := func(session eventlog.Session) bool { return yield(session, nil) }
		err := listing.Walk(ctx, lister{s}, each)
		if corrupt(err) {
			err = s.yieldSalvaged(ctx, listing, each)
		}
		if err != nil {
			yield(eventlog.Session{}, s.readError("", 0, err))
		}
	}
}

// A lister is the eventlog.Lister of a store.
type lister struct{ s *Store }

// Part implements eventlog.Lister.
func (l lister) Part(ctx context.Context, q eventlog.Query, n int) ([]eventlog.Session, error) {
	where, args := conditions(q)
	return l.s.sessions(ctx, where+inOrder+" LIMIT ?", append(args, n)...)
}

// Moved implements eventlog.Lister.
func (l lister) Moved(ctx context.Context, q eventlog.Query, after time.Time) ([]eventlog.Session, error) {
	where, args := conditions(q)
	began := after.UnixMicro()
	return l.s.sessions(ctx, where+" AND s.recent >= ? >> 20 AND s.modified > ?"+inOrder, append(args, began, began)...)
}

// yieldSalvaged yields the sessions that the listing lacks when a page of the table is
// damaged, wherever the listing continues: their order is unknown.
func (s *Store) yieldSalvaged(ctx context.Context, listing *eventlog.Listing, yield func(eventlog.Session) bool) error {
	all, err := s.salvage(ctx, listing.Yields)
	for _, session := range all {
		if !yield(session) {
			break
		}
	}
	return err
}

// inOrder is the order of a listing: that of the time of the last change. The first column
// is the time in larger units, for which there is an index.
const inOrder = " ORDER BY s.recent DESC, s.modified DESC, s.id DESC"

// conditions returns the conditions of a query that SQLite can evaluate, and their
// arguments. They may select more than the query does.
func conditions(q eventlog.Query) (where string, args []any) {
	var b strings.Builder
	add := func(condition string, values ...any) {
		b.WriteString(" AND " + condition)
		args = append(args, values...)
	}
	if q.After != (eventlog.Place{}) {
		at := q.After.Modified.UnixMicro()
		add("s.recent <= ? >> 20 AND (s.modified, s.id) < (?, ?)", at, at, q.After.Row)
	}
	if q.Dir != "" {
		add("CASE WHEN json_valid(s.info) THEN s.info ->> '$.dir' = ? END", q.Dir)
	}
	if q.Busy {
		add(`(s.damaged IS NOT NULL OR CASE WHEN json_valid(s.info) THEN
			s.info ->> '$.active' IS NOT NULL OR s.info ->> '$.questions' IS NOT NULL OR s.info ->> '$.tasks' IS NOT NULL ELSE TRUE END)`)
	}
	if q.IDPrefix != "" {
		add("s.name >= ?", q.IDPrefix)
		if end := afterPrefix(q.IDPrefix); end != "" {
			add("s.name < ?", end)
		}
	}
	if !q.ModifiedSince.IsZero() {
		since := q.ModifiedSince.UnixMicro()
		add("s.recent >= ? >> 20 AND s.modified >= ?", since, since)
	}
	if !q.ModifiedBefore.IsZero() {
		before := q.ModifiedBefore.UnixMicro()
		add("s.recent <= ? >> 20 AND s.modified <= ?", before, before)
	}
	return b.String(), args
}

// afterPrefix returns a text that is greater than every text with the prefix, and not
// greater than the next one; empty if there is none that is valid UTF-8.
func afterPrefix(prefix string) string {
	last, size := utf8.DecodeLastRuneInString(prefix)
	if last >= 0x7f {
		return ""
	}
	return prefix[:len(prefix)-size] + string(last+1)
}

// maxAhead is how far the time of a change may be ahead of the clock so that later
// changes follow it. A clock that is set back by less keeps the order of changes. A time
// further ahead was a mistake of the clock, and stays that of its session alone.
const maxAhead = 24 * time.Hour

// lastChange returns the time of the last change of any session, in microseconds; zero if
// it is not known.
func lastChange(ctx context.Context, conn *sql.Conn) (int64, error) {
	var last int64
	most := time.Now().Add(maxAhead).UnixMicro()
	row := conn.QueryRowContext(ctx, `SELECT s.modified FROM sessions s WHERE NOT s.deleted
		AND s.recent <= ? >> 20 AND s.modified <= ?`+inOrder+" LIMIT 1", most, most)
	err := row.Scan(&last)
	if corrupt(err) || errors.Is(err, sql.ErrNoRows) {
		return 0, nil // of damage readers will report
	}
	return last, err
}

// brokenOrder reports whether the reason of an error may be that a page of the order, the
// index sessions_recent, is damaged.
func brokenOrder(err error) bool {
	d, damaged := errors.AsType[*eventlog.Damage](err)
	return damaged && d.Reason == brokenPage || corrupt(err)
}

// errRenewed means that the order is not to blame: it was made anew already.
var errRenewed = errors.New("the order of sessions was made anew already")

// renewOrder makes the order anew from the table, once. SQLite could not remove an index
// with a damaged page, so its entry in the schema is removed instead; its pages stay
// unused until the file is vacuumed.
func (w *writing) renewOrder() error {
	if w.renewed {
		return errRenewed
	}
	w.renewed = true
	if _, err := w.begin.Exec(); err != nil {
		return err
	}
	err := w.replaceOrder()
	if err == nil {
		_, err = w.commit.Exec()
	}
	if err != nil {
		w.rollback()
		_ = w.exec("PRAGMA writable_schema = RESET") // reads the schema again
	}
	return err
}

func (w *writing) replaceOrder() error { return w.makeAnew("name = 'sessions_recent'") }

// makeAnew drops the tables and indexes of the schema for which a condition holds, without
// reading them, and makes them again, empty: tables before their indexes.
func (w *writing) makeAnew(where string) error {
	if err := w.check(); err != nil {
		return err
	}
	var create string
	row := w.conn.QueryRowContext(context.Background(), "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE "+where+" AND sql IS NOT NULL ORDER BY type DESC)")
	if err := row.Scan(&create); err != nil {
		return err
	}
	for _, text := range []string{
		"PRAGMA writable_schema = ON", "DELETE FROM sqlite_schema WHERE " + where, "PRAGMA writable_schema = RESET", create,
	} {
		if err := w.exec(text); err != nil {
			return err
		}
	}
	return nil
}
