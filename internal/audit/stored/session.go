package stored

import (
	"context"
	"database/sql"
	"iter"
	"time"
)

// A Session is a row of the index, as it is stored.
type Session struct {
	Row      int64
	Name     string
	Seq      int64  // position of the last event of the log
	Head     []byte // the chain's hash there
	Created  time.Time
	Modified time.Time
	Parent   int64 // row of the session that it was forked from; zero for none
	Shared   int64 // number of the parent's events that come before its own
	Base     []byte
	Deleted  bool  // true if it was deleted and is kept only for its forks
	Damaged  int64 // the first damaged event, if it was set aside; else zero
	Reason   string
	Active   bool
	Info     []byte // JSON
}

const selectSession = `SELECT id, name, seq, head, created, modified, coalesce(parent, 0), shared, base, deleted, damaged, reason, active, info FROM sessions`

// page is how many rows of the index are read at once.
const page = 256

// Sessions yields the index, the oldest session first. No statement is open while
// the caller looks at one.
func (f *Folder) Sessions(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for last := int64(0); ; {
			list, err := f.sessions(ctx, " WHERE id > ? ORDER BY id LIMIT ?", last, page)
			if err != nil {
				yield(Session{}, err)
				return
			}
			for _, s := range list {
				if last = s.Row; !yield(s, nil) {
					return
				}
			}
			if len(list) < page {
				return
			}
		}
	}
}

// Session returns a row of the index by its number, and false if there is none.
func (f *Folder) Session(ctx context.Context, row int64) (Session, bool, error) {
	list, err := f.sessions(ctx, " WHERE id = ?", row)
	if err != nil || len(list) == 0 {
		return Session{}, false, err
	}
	return list[0], true, nil
}

// Named returns a session that is not deleted by its name, and false if there is
// none.
func (f *Folder) Named(ctx context.Context, name string) (Session, bool, error) {
	list, err := f.sessions(ctx, " WHERE name = ? AND NOT deleted", name)
	if err != nil || len(list) == 0 {
		return Session{}, false, err
	}
	return list[0], true, nil
}

func (f *Folder) sessions(ctx context.Context, which string, args ...any) (list []Session, err error) {
	rows, err := f.tx.QueryContext(ctx, selectSession+which, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Session
		var created, modified int64
		var damaged sql.NullInt64
		var reason sql.NullString
		err := rows.Scan(&s.Row, &s.Name, &s.Seq, &s.Head, &created, &modified, &s.Parent, &s.Shared, &s.Base, &s.Deleted, &damaged, &reason, &s.Active, &s.Info)
		if err != nil {
			return nil, err
		}
		s.Created, s.Modified, s.Damaged, s.Reason = micros(created), micros(modified), damaged.Int64, reason.String
		list = append(list, s)
	}
	return list, rows.Err()
}

// Count returns how many sessions and how many events there are, for progress.
func (f *Folder) Count(ctx context.Context) (sessions, events int64, err error) {
	err = f.tx.QueryRowContext(ctx, "SELECT count(*), coalesce(sum(seq), 0) FROM sessions").Scan(&sessions, &events)
	return sessions, events, err
}

// A Record is what one append added, as it is stored.
type Record struct {
	First int64  // position of the first event
	Head  []byte // the chain's hash after the last one
	Body  []byte // the events, one a line
}

// maxSeq is the last position that a key has room for.
const maxSeq = 1<<32 - 1

// Records yields the records of a session's own, in order. The next record may use
// the memory of the last.
func (f *Folder) Records(ctx context.Context, row int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		rows, err := f.records.QueryContext(ctx, row<<32, row<<32|maxSeq)
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var key int64
			var head, body sql.RawBytes
			if err := rows.Scan(&key, &head, &body); err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(Record{key & maxSeq, head, body}, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Record{}, err)
		}
	}
}

// Strays returns the first key of each row number that records, secrets, jobs or costs
// name and the index does not.
func (f *Folder) Strays(ctx context.Context) (list []Stray, err error) {
	for after := int64(0); ; {
		var key sql.NullInt64
		if err := f.tx.QueryRowContext(ctx, "SELECT min(key) FROM records WHERE key >= ?", after).Scan(&key); err != nil {
			return list, err
		}
		if !key.Valid {
			break
		}
		row := key.Int64 >> 32
		if _, known, err := f.Session(ctx, row); err != nil {
			return list, err
		} else if !known {
			list = append(list, Stray{Table: "records", Row: row, First: key.Int64 & maxSeq})
		}
		after = (row + 1) << 32
	}
	for _, table := range f.beside() {
		more, err := f.strays(ctx, table)
		if err != nil {
			return list, err
		}
		list = append(list, more...)
	}
	more, err := f.strayCosts(ctx)
	return append(list, more...), err
}

// strayCosts returns the names of sessions that costs are said to be of, and the index does not
// have. What deleted sessions have cost is kept without a name.
func (f *Folder) strayCosts(ctx context.Context) (list []Stray, err error) {
	if !f.costs {
		return nil, nil
	}
	rows, err := f.tx.QueryContext(ctx, "SELECT DISTINCT session FROM costs WHERE session <> '' AND session NOT IN (SELECT name FROM sessions WHERE NOT deleted)")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s := Stray{Table: "costs"}
		if err := rows.Scan(&s.Name); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// A Stray is something that belongs to a session that the index does not have.
type Stray struct {
	Table string
	Row   int64
	Name  string // name of the session, of costs, which are not stored by its number
	First int64  // position of the first event, of records
}

// beside are the tables that name sessions beside their records.
func (f *Folder) beside() []string {
	if f.jobs {
		return []string{"secrets", "jobs"}
	}
	return []string{"secrets"}
}

func (f *Folder) strays(ctx context.Context, table string) (list []Stray, err error) {
	rows, err := f.tx.QueryContext(ctx, "SELECT DISTINCT session FROM "+table+" WHERE session NOT IN (SELECT id FROM sessions WHERE NOT deleted)")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s := Stray{Table: table}
		if err := rows.Scan(&s.Row); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// A Job is a row of upkeep that is to be done.
type Job struct {
	ID, Kind    string
	First, Last int64
	Attempts    int
}

// Jobs returns the rows of a session.
func (f *Folder) Jobs(ctx context.Context, row int64) (list []Job, err error) {
	if !f.jobs {
		return nil, nil
	}
	rows, err := f.jobsOf.QueryContext(ctx, row)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var j Job
		if err := rows.Scan(&j.ID, &j.Kind, &j.First, &j.Last, &j.Attempts); err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	return list, rows.Err()
}
