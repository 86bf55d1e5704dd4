package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
)

// An op is a change that waits to be committed.
type op struct {
	group.Op
	bytes     int                  // number of bytes of the events that it adds
	apply     func(*writing) error // makes the change inside a transaction; outside of one if it is alone
	fenced    bool                 // true if apply itself fails when this process is fenced
	committed func()               // updates memory after the commit
}

// A refusal is the error of an op that failed before it wrote anything. The other ops
// in its transaction are not affected.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// writing is the only connection that writes. Only the goroutine that commits the
// queue uses it, and never with a context that can be cancelled, so that no statement
// is interrupted.
type writing struct {
	conn       *sql.Conn
	generation int64 // generation of this process; a greater one in the file means that it is fenced
	clock      int64 // time of the last change, in microseconds
	written    int   // number of bytes that were appended since the size of the write-ahead log was looked at
	renewed    bool  // true if the order was made anew because a page was damaged

	begin, commit, fence         *sql.Stmt
	find, create, extend, insert *sql.Stmt
	cost                         *sql.Stmt

	renewedCosts bool // true if the sums of costs were made anew
}

// close closes the statements first, because a connection with open statements is not
// closed.
func (w *writing) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{w.begin, w.commit, w.fence, w.find, w.create, w.extend, w.insert, w.cost} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// prepare takes the store over and prepares the statements of appends.
func (w *writing) prepare(ctx context.Context) (err error) {
	if w.generation, err = takeOver(ctx, w.conn); err != nil {
		return err
	}
	if w.clock, err = lastChange(ctx, w.conn); err != nil {
		return err
	}
	return prepare(func(text string) (*sql.Stmt, error) { return w.conn.PrepareContext(ctx, text) }, map[**sql.Stmt]string{
		&w.begin:  "BEGIN IMMEDIATE",
		&w.commit: "COMMIT",
		&w.fence:  "SELECT generation FROM meta WHERE id = 1",
		&w.find:   selectHead + named,
		&w.create: `INSERT INTO sessions (name, seq, head, created, modified, parent, shared, base, active, info)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.extend: `UPDATE sessions SET seq = ?, head = ?, modified = max(?, modified + 1), active = coalesce(?, active), info = coalesce(?, info)
			WHERE id = ? AND seq = ? AND head = ? AND NOT deleted AND damaged IS NULL`,
		&w.insert: `INSERT INTO records (key, head, body)
			SELECT ?, ?, ? WHERE (SELECT generation FROM meta WHERE id = 1) = ?`,
		&w.cost: addCost,
	})
}

// takeOver increments the generation, which fences the process that had the store open
// before.
func takeOver(ctx context.Context, conn *sql.Conn) (generation int64, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE meta SET generation = generation + 1"); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT generation FROM meta").Scan(&generation); err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	return generation, freeJobs(ctx, conn)
}

// prepare prepares statements and stores them in the given variables.
func prepare(with func(string) (*sql.Stmt, error), texts map[**sql.Stmt]string) error {
	for place, text := range texts {
		stmt, err := with(text)
		if err != nil {
			return err
		}
		*place = stmt
	}
	return nil
}

// now returns the current time in microseconds, or a later one if it was returned
// before.
func (w *writing) now() int64 {
	w.clock = max(time.Now().UnixMicro(), w.clock+1)
	return w.clock
}

// commit runs ops in one transaction and sets the outcome of each. If one of them
// fails, each op gets a transaction of its own, so that the others succeed.
func (s *Store) commit(group []*op) {
	err := s.broken
	if err == nil {
		err = s.transact(group)
		s.broken = closingError(s.path, err)
	}
	switch {
	case err == nil:
	case s.broken != nil:
		s.queue.Shut(s.broken)
		fail(group, s.broken)
	case len(group) > 1 && is[opError](err):
		for i := range group {
			s.commit(group[i : i+1])
		}
	case brokenOrder(err) && s.write.renewOrder() == nil:
		s.commit(group)
	case is[brokenCosts](err) && s.write.renewCosts() == nil:
		s.commit(group)
	default:
		fail(group, explain(s.path, err))
	}
}

func fail(group []*op, err error) {
	for _, o := range group {
		o.Err = err
	}
}

// transact runs ops in one transaction and sets the outcome of each. An error means
// that the transaction was not committed. After a panic nobody knows what was written, and
// whoever waits for an outcome gets one: a session contains the panics of its own goroutine,
// and would leave the queue busy for good.
func (s *Store) transact(group []*op) (err error) {
	w := s.write
	defer func() {
		if p := recover(); p != nil {
			w.rollback()
			err = commitError{fmt.Errorf("abide broke while it wrote (please report this): %v", p)}
		}
	}()
	if group[0].Alone {
		return w.applyAlone(group[0])
	}
	if _, err := w.begin.Exec(); err != nil {
		return err
	}
	done, err := w.apply(group)
	if err != nil || done == 0 {
		w.rollback()
		return err
	}
	if _, err := w.commit.Exec(); err != nil {
		w.rollback()
		return commitError{err}
	}
	if err := s.files.check(); err != nil {
		return err
	}
	s.commits.Add(1)
	s.countWritten(group)
	for _, o := range group {
		if o.Err == nil {
			o.committed()
		}
	}
	return nil
}

// apply runs the ops of a transaction and returns the number of those that were not
// refused.
func (w *writing) apply(group []*op) (done int, err error) {
	for _, o := range group {
		if !o.fenced {
			if err := w.check(); err != nil {
				return 0, err
			}
		}
		o.Err = o.apply(w)
		if errors.Is(o.Err, eventlog.ErrFenced) {
			return 0, o.Err
		}
		if r, refused := errors.AsType[refusal](o.Err); refused {
			o.Err = r.error
			continue
		}
		if o.Err != nil {
			return 0, opError{o.Err}
		}
		done++
	}
	return done, nil
}

// applyAlone runs an op outside a transaction.
func (w *writing) applyAlone(o *op) error {
	err := w.check()
	if err == nil {
		err = o.apply(w)
	}
	return err
}

// check fails if another process has taken the store over.
func (w *writing) check() error {
	var generation int64
	err := w.fence.QueryRow().Scan(&generation)
	if err == nil && generation != w.generation {
		err = eventlog.ErrFenced
	}
	return err
}

// rollback ends a transaction. Its error is ignored, because SQLite may have ended the
// transaction already.
func (w *writing) rollback() {
	_, _ = w.conn.ExecContext(context.Background(), "ROLLBACK")
}

// An opError is an error that was caused by a single op of a group.
type opError struct{ error }

func (e opError) Unwrap() error { return e.error }

// A commitError is an error of COMMIT: whether the disk has the transaction is unknown.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// closingError returns the reason for which the store must close after an error, or nil
// if it can go on.
func closingError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, eventlog.ErrFenced):
		return fmt.Errorf("store %s: %w", path, err)
	case errors.Is(err, eventlog.ErrGone):
		return fmt.Errorf("%w: %w", eventlog.ErrClosed, err)
	case fatal(err) || is[commitError](err):
		return fmt.Errorf("%w: %w", eventlog.ErrClosed, explain(path, err))
	}
	return nil
}

// is reports whether err is, or wraps, an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
