package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
)

// maxEvents bounds a transaction, and with it how long the first of its appends
// waits for the last.
const maxEvents = 512

// An op is a change that waits to be committed.
type op struct {
	events    int                  // how many it adds
	apply     func(*writing) error // makes the change inside a transaction
	fenced    bool                 // applying it fails if we are fenced
	committed func()               // tells the process about it
	err       error
	result    chan error
}

// A refusal is the error of an op that found, before it wrote anything, that it
// must not. The others in its transaction are not touched by it.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// writing is the one connection that writes. Only who works on the queue uses it,
// and never with a context that can end: a statement runs to its end.
type writing struct {
	conn       *sql.Conn
	generation int64 // ours; a greater one in the file means that we are fenced
	clock      int64 // microseconds; of the last change

	begin, commit, fence         *sql.Stmt
	find, create, extend, insert *sql.Stmt
}

// close ends the statements first: a connection with open ones is never closed.
func (w *writing) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{w.begin, w.commit, w.fence, w.find, w.create, w.extend, w.insert} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// prepare takes the store over and prepares what an append needs.
func (w *writing) prepare(ctx context.Context) (err error) {
	if w.generation, err = takeOver(ctx, w.conn); err != nil {
		return err
	}
	return prepare(func(text string) (*sql.Stmt, error) { return w.conn.PrepareContext(ctx, text) }, map[**sql.Stmt]string{
		&w.begin:  "BEGIN IMMEDIATE",
		&w.commit: "COMMIT",
		&w.fence:  "SELECT generation FROM meta WHERE id = 1",
		&w.find:   selectHead + named,
		&w.create: `INSERT INTO sessions (name, seq, head, created, modified, parent, shared, base, active, info)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		&w.extend: `UPDATE sessions SET seq = ?, head = ?, modified = ?, active = coalesce(?, active), info = coalesce(?, info)
			WHERE id = ? AND seq = ? AND head = ? AND NOT deleted AND damaged IS NULL`,
		&w.insert: `INSERT INTO records (key, head, body)
			SELECT ?, ?, ? WHERE (SELECT generation FROM meta WHERE id = 1) = ?`,
	})
}

// takeOver counts the generation up, which fences whoever wrote before.
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

// A queue holds the changes that wait. Whoever adds one to a queue that nobody
// works on commits it for itself, together with what has arrived by then: a lone
// writer wakes nobody and waits for nobody. What arrives during that commit is
// committed next, in one group, by a goroutine of its own.
type queue struct {
	mu      sync.Mutex
	settled sync.Cond // nobody works on it
	ops     []*op
	worked  bool // somebody commits
}

// do has a change committed and waits for the outcome. It does not give up half
// way: an error means that nothing was changed.
func (s *Store) do(ctx context.Context, o *op) error {
	o.result = make(chan error, 1)
	q := &s.queue
	q.mu.Lock()
	if err := s.open(ctx); err != nil {
		q.mu.Unlock()
		return err
	}
	q.ops = append(q.ops, o)
	ours := !q.worked
	q.worked = true
	q.mu.Unlock()
	if ours {
		runtime.Gosched() // whoever is about to append can join
		s.commitGroup(q.take())
		if q.more() {
			go s.commitRest() // Close waits for it
		}
	}
	return <-o.result
}

// commitRest commits groups until nothing waits.
func (s *Store) commitRest() {
	for more := true; more; more = s.queue.more() {
		s.commitGroup(s.queue.take())
	}
}

// take removes what waits from the queue, up to a bound. It waits for nothing:
// under load, others arrive while a commit is synced.
func (q *queue) take() []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, events := 0, 0
	for n < len(q.ops) && events < maxEvents {
		events += q.ops[n].events
		n++
	}
	group := q.ops[:n:n]
	q.ops = q.ops[n:]
	return group
}

// more reports whether something waits. If not, nobody works on the queue any
// more.
func (q *queue) more() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ops) > 0 {
		return true
	}
	q.ops, q.worked = nil, false
	q.settled.Broadcast()
	return false
}

// settle waits until nobody works on the queue.
func (q *queue) settle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.worked {
		q.settled.Wait()
	}
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
	case len(group) > 1 && is[opError](err):
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
	if err := s.checkPlaces(); err != nil {
		return err
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
		if !o.fenced {
			if err := w.check(); err != nil {
				return 0, err
			}
		}
		o.err = o.apply(w)
		if errors.Is(o.err, eventlog.ErrFenced) {
			return 0, o.err
		}
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

// check fails if another process has taken the store over.
func (w *writing) check() error {
	var generation int64
	err := w.fence.QueryRow().Scan(&generation)
	if err == nil && generation != w.generation {
		err = eventlog.ErrFenced
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
	case errors.Is(err, eventlog.ErrGone):
		return fmt.Errorf("%w: %w", eventlog.ErrClosed, err)
	case fatal(err) || is[commitError](err):
		return fmt.Errorf("%w: %w", eventlog.ErrClosed, explain(path, err))
	}
	return nil
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
