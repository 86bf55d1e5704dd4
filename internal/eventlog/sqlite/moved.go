package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// movedVersion is the first schema version of stores whose sessions can be moved.
const movedVersion = 8

// The states of a move.
const (
	stateHere = iota
	stateMoved
	stateFinished
)

// A Departure is what a store says of the move of its sessions to another store.
type Departure struct {
	Name     string // name of the move; empty if there was none
	Moved    bool   // true if the sessions are in the other store, and not here any more
	Finished bool   // true if they are shown there
	Place    string // the other store, for people
	At       time.Time
	Sessions int // number of sessions, with those kept for their forks
}

// errMoved is the error of opening a store whose sessions are in another one.
func (d Departure) err(path string) error {
	if !d.Finished {
		return fmt.Errorf("store %s: its sessions are being moved to %s, and that is not finished: run abide move again, with the same database as --to", path, d.Place)
	}
	return fmt.Errorf("store %s: its sessions were moved to %s on %s: name that database in store.url of the configuration, and keep this data folder, which has their files and commands",
		path, d.Place, d.At.Format("2006-01-02 15:04"))
}

// departure reads what a store of a version says of a move.
func departure(ctx context.Context, q querier, version int) (d Departure, err error) {
	if version < movedVersion {
		return d, nil
	}
	var state int
	var at int64
	err = q.QueryRowContext(ctx, "SELECT name, state, place, at FROM moved").Scan(&d.Name, &state, &d.Place, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return d, nil
	}
	d.Moved, d.Finished, d.At = state >= stateMoved, state >= stateFinished, time.UnixMicro(at)
	return d, err
}

// refuseMoved returns an error if the sessions of a store are in another one.
func refuseMoved(ctx context.Context, q querier, path string, version int) error {
	d, err := departure(ctx, q, version)
	switch {
	case err != nil:
		return explain(path, err)
	case d.Moved:
		return d.err(path)
	}
	return nil
}

// DepartureOf returns what the store in a file says of the move of its sessions. It changes
// nothing, and also reads a store whose sessions are in another one.
func DepartureOf(ctx context.Context, path string) (Departure, error) {
	src, err := openEvenMoved(ctx, path)
	if err != nil {
		return Departure{}, err
	}
	defer src.close()
	d, err := departure(ctx, src.conn, src.version)
	if err == nil && d.Moved {
		err = src.conn.QueryRowContext(ctx, "SELECT count(*) FROM sessions").Scan(&d.Sessions)
	}
	return d, explain(path, err)
}

// NameMove returns the name of the move of this store. It is made the first time, and stays.
func (s *Store) NameMove(ctx context.Context) (string, error) {
	const insert = "INSERT OR IGNORE INTO moved (id, name, state, place, at) VALUES (1, CAST(? AS BLOB), 0, '', ?)"
	err := s.queue.Do(ctx, &op{
		apply:     func(w *writing) error { return w.exec(insert, rand.Text(), w.now()) },
		committed: func() {},
	})
	if err != nil {
		return "", err
	}
	d, err := departure(ctx, s.reading, movedVersion)
	return d.Name, explain(s.path, err)
}

// Depart marks the store as moved to a place. From then on, nothing can be written to it, and it
// cannot be opened.
func (s *Store) Depart(ctx context.Context, place string) error {
	return s.queue.Do(ctx, &op{
		apply: func(w *writing) error {
			if err := w.exec("UPDATE moved SET state = ?, place = ?, at = ?", stateMoved, place, w.now()); err != nil {
				return err
			}
			return w.exec("UPDATE meta SET generation = generation + 1") // this process is fenced, too
		},
		committed: func() {},
	})
}

// FinishMove notes that the sessions of a store are shown in the other one. The store must not be
// open elsewhere.
func FinishMove(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, Options{}, "_txlock=immediate"))
	if err != nil {
		return explain(path, err)
	}
	_, err = db.ExecContext(ctx, "UPDATE moved SET state = ? WHERE state = ?", stateFinished, stateMoved)
	return explain(path, errors.Join(err, db.Close()))
}

// Entries returns the first n sessions after a row, in the order in which they were made, so that
// a parent comes before its forks. Those that are only kept for their forks are among them.
func (s *Store) Entries(ctx context.Context, after int64, n int) ([]record.Entry, error) {
	rows, err := s.reading.QueryContext(ctx, `SELECT s.id, s.name, s.seq, s.head, s.created, s.modified, coalesce(s.parent, 0), s.shared, s.base, s.deleted, s.damaged, s.reason, s.info, u.session IS NULL
		FROM sessions s LEFT JOIN uncounted u ON u.session = s.id WHERE s.id > ? ORDER BY s.id LIMIT ?`, after, n)
	if err != nil {
		return nil, explain(s.path, err)
	}
	defer rows.Close()
	var list []record.Entry
	for rows.Next() {
		var e record.Entry
		var head, base []byte
		var damaged sql.NullInt64
		var reason sql.NullString
		err := rows.Scan(&e.Session, &e.ID, &e.End.Seq, &head, &e.Created, &e.Modified, &e.Parent, &e.Shared, &base, &e.Deleted, &damaged, &reason, &e.Info, &e.Counted)
		if err != nil {
			return nil, explain(s.path, err)
		}
		e.End.Hash, e.Base = record.Hash(head), record.Hash(base)
		if damaged.Valid {
			e.Damage = &eventlog.Damage{Session: e.ID, Seq: event.Seq(damaged.Int64), Reason: reason.String}
		}
		list = append(list, e)
	}
	if err := rows.Err(); err != nil || len(list) == 0 {
		return nil, explain(s.path, err)
	}
	return list, s.addSealed(ctx, list)
}

// addSealed adds the secrets of sessions, as they are stored.
func (s *Store) addSealed(ctx context.Context, list []record.Entry) error {
	at := make(map[int64]*record.Entry, len(list))
	for i := range list {
		at[list[i].Session] = &list[i]
	}
	rows, err := s.reading.QueryContext(ctx, "SELECT session, name, value FROM secrets WHERE session >= ? AND session <= ? ORDER BY session, name", list[0].Session, list[len(list)-1].Session)
	if err != nil {
		return explain(s.path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var session int64
		var one eventlog.Secret
		if err := rows.Scan(&session, &one.Name, &one.Value); err != nil {
			return explain(s.path, err)
		}
		if e := at[session]; e != nil {
			e.Secrets = append(e.Secrets, one)
		}
	}
	return explain(s.path, rows.Err())
}

// Records yields the records of a session itself, without those of its parent. An error that is a
// *record.Fault is damage to the session.
func (s *Store) Records(ctx context.Context, e record.Entry) iter.Seq2[[]record.Record, error] {
	return func(yield func([]record.Record, error) bool) {
		at := e.Shared + 1
		for page, err := range s.reader().Pages(ctx, e.Session, at, math.MaxInt64) {
			if len(page) > 0 {
				at = page[len(page)-1].Last() + 1
			}
			if corrupt(err) {
				err = &record.Fault{At: at, Reason: brokenPage}
			}
			if !yield(page, explain(s.path, err)) {
				return
			}
		}
	}
}

// CheckOrigin returns a *record.Fault unless the parent of a session has the chain that the
// session was forked from.
func (s *Store) CheckOrigin(ctx context.Context, e record.Entry) error {
	err := record.CheckOrigin(ctx, rows{s.reading}, e.Head)
	if corrupt(err) {
		err = &record.Fault{At: 1, Reason: brokenPage}
	}
	return err
}

// CostRows yields the sums of costs as they are stored.
func (s *Store) CostRows(ctx context.Context) iter.Seq2[record.CostRow, error] {
	return func(yield func(record.CostRow, error) bool) {
		rows, err := s.reading.QueryContext(ctx, "SELECT session, root, day, model, purpose, requests, failed, unpriced, unreported, input, output, cacheread, cachewrite, cachewrite1h, reasoning, nanousd FROM costs")
		if err != nil {
			yield(record.CostRow{}, costError(s.path, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var c record.CostRow
			err := rows.Scan(&c.Of, &c.Session, &c.Day, &c.Model, &c.Purpose, &c.Requests, &c.Failed, &c.Unpriced, &c.Unreported,
				&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.CacheWrite1h, &c.Reasoning, &c.NanoUSD)
			if !yield(c, costError(s.path, err)) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(record.CostRow{}, costError(s.path, err))
		}
	}
}

// costError explains an error of reading the sums of costs, which can be counted again.
func costError(path string, err error) error {
	if corrupt(err) {
		return fmt.Errorf("store %s: the sums of costs are damaged: run abide cost, which counts them again", path)
	}
	return explain(path, err)
}
