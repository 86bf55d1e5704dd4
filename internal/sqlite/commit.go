package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
)

// maxEvents bounds a transaction, and with it how long the first of its appends
// waits for the last.
const maxEvents = 512

// An op is a change that waits for the committer.
type op struct {
	events    int                  // how many it adds
	apply     func(*writing) error // makes the change inside a transaction
	committed func()               // tells the process about it
	err       error
	result    chan error
}

// A refusal is the error of an op that found, before it wrote anything, that it
// must not. The others in its transaction are not touched by it.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// writing is the one connection that writes. Only the committer uses it, and
// never with a context that can end: a statement runs to its end.
type writing struct {
	conn       *sql.Conn
	generation int64 // ours; a greater one in the file means that we are fenced
	clock      int64 // microseconds; of the last change

	begin, commit, fence         *sql.Stmt
	find, create, extend, insert *sql.Stmt
}

// prepareWriting takes the store over and prepares what an append needs.
func prepareWriting(ctx context.Context, conn *sql.Conn) (*writing, error) {
	w := &writing{conn: conn}
	row := conn.QueryRowContext(ctx, "UPDATE meta SET generation = generation + 1 RETURNING generation")
	if err := row.Scan(&w.generation); err != nil {
		return nil, err
	}
	err := prepare(func(text string) (*sql.Stmt, error) { return conn.PrepareContext(ctx, text) }, map[**sql.Stmt]string{
		&w.begin:  "BEGIN IMMEDIATE",
		&w.commit: "COMMIT",
		&w.fence:  "SELECT generation FROM meta WHERE id = 1",
		&w.find:   selectHead + " WHERE name = ? AND NOT deleted",
		&w.create: `INSERT INTO sessions (name, seq, head, created, modified, parent, shared, active, info)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.extend: `UPDATE sessions SET seq = ?, head = ?, modified = ?, active = coalesce(?, active), info = coalesce(?, info)
			WHERE id = ? AND seq = ? AND head = ? AND NOT deleted AND damaged IS NULL`,
		&w.insert: "INSERT INTO records (key, head, body) VALUES (?, ?, ?)",
	})
	return w, err
}

// prepare prepares statements into the given places.
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

// now returns the time, later than ever before.
func (w *writing) now() int64 {
	w.clock = max(time.Now().UnixMicro(), w.clock+1)
	return w.clock
}

// do hands a change to the committer and waits for the outcome. It does not
// give up half way: an error means that nothing was changed.
func (s *Store) do(ctx context.Context, o *op) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	o.result = make(chan error, 1)
	select {
	case s.ops <- o:
	case <-s.closing:
		return s.cause
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.result:
		return err
	case <-s.stopped:
	}
	select { // it may have been done just before the committer stopped
	case err := <-o.result:
		return err
	default:
		return s.cause
	}
}

// commitAll is the committer: it takes what waits, commits it together, and
// begins again, until the store is closed and nothing waits any more.
func (s *Store) commitAll() {
	defer close(s.stopped)
	for {
		select {
		case first := <-s.ops:
			s.commitGroup(s.gather(first))
		case <-s.closing:
			select {
			case first := <-s.ops:
				s.commitGroup(s.gather(first))
			default:
				return
			}
		}
	}
}

// gather adds what waits already to the first op. It waits for nothing: under
// load, others arrive while a commit is synced.
func (s *Store) gather(first *op) []*op {
	group, events := []*op{first}, first.events
	for events < maxEvents {
		select {
		case o := <-s.ops:
			group = append(group, o)
			events += o.events
		default:
			return group
		}
	}
	return group
}

// commitGroup runs ops in one transaction and tells each how it went. If one of
// them cannot be carried out, the others must not suffer: each then gets a
// transaction of its own.
func (s *Store) commitGroup(group []*op) {
	err := s.broken
	if err == nil {
		err = s.transact(group)
		s.broken = hopeless(s.path, err)
	}
	switch {
	case err == nil:
	case s.broken != nil:
		s.shut(s.broken)
		fail(group, s.broken)
	case len(group) > 1 && errors.As(err, new(opError)):
		for i := range group {
			s.commitGroup(group[i : i+1])
		}
		return
	default:
		fail(group, explain(s.path, err))
	}
	for _, o := range group {
		o.result <- o.err
	}
}

func fail(group []*op, err error) {
	for _, o := range group {
		o.err = err
	}
}

// transact leaves in each op how it went. An error means that the transaction
// did not happen.
func (s *Store) transact(group []*op) error {
	w := s.write
	if err := w.start(); err != nil {
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
	s.commits.Add(1)
	for _, o := range group {
		if o.err == nil {
			o.committed()
		}
	}
	return nil
}

// apply runs the ops of a transaction and counts those that were not refused.
func (w *writing) apply(group []*op) (done int, err error) {
	for _, o := range group {
		o.err = o.apply(w)
		if r, refused := errors.AsType[refusal](o.err); refused {
			o.err = r.error
			continue
		}
		if o.err != nil {
			return 0, opError{o.err}
		}
		done++
	}
	return done, nil
}

// start begins a transaction if the store is still ours.
func (w *writing) start() error {
	if _, err := w.begin.Exec(); err != nil {
		return err
	}
	var generation int64
	err := w.fence.QueryRow().Scan(&generation)
	if err == nil && generation != w.generation {
		err = eventlog.ErrFenced
	}
	if err != nil {
		w.rollback()
	}
	return err
}

// rollback ends a transaction, which SQLite may have ended by itself.
func (w *writing) rollback() {
	_, _ = w.conn.ExecContext(context.Background(), "ROLLBACK")
}

// An opError is one that a single op is to blame for.
type opError struct{ error }

func (e opError) Unwrap() error { return e.error }

// A commitError leaves open what the disk holds now.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

// hopeless returns why the store must close after an error, or nil.
func hopeless(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, eventlog.ErrFenced):
		return fmt.Errorf("store %s: %w", path, err)
	case fatal(err) || errors.As(err, new(commitError)):
		return fmt.Errorf("%w: %w", eventlog.ErrClosed, explain(path, err))
	}
	return nil
}
