package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/eventlog"
)

// maxEvents is the number of events after which a transaction takes no more ops. It limits
// how long the first append of a transaction waits for the last.
const maxEvents = 512

// patience is how long changes wait for a server that is away before the store closes.
const patience = 2 * time.Minute

// An op is a change that waits to be committed. It is a single statement, which goes to the
// server together with those of other ops, or a function that talks to it.
type op struct {
	events int
	// statement returns the text and the arguments of the change. It has the fence of the
	// writing among its conditions, and returns a row if it has changed something.
	statement func(*writing) (string, []any)
	// refused returns the reason why the statement has changed nothing. It is called after the
	// transaction.
	refused func() error
	// apply makes the change inside a transaction, if it is not a single statement. A refusal
	// is an error before anything was changed.
	apply func(context.Context, *writing, pgx.Tx) error
	// stored reports whether the change is in the store, after the connection was lost while
	// it was committed. If it is nil, the change can be made again.
	stored func(context.Context, *pgx.Conn) (bool, error)

	changed changed    // whether the statement has changed something
	err     error      // outcome, set by the writer
	result  chan error // receives err once
}

// A refusal is the error of an op that failed before it changed anything. The other ops in its
// transaction are not affected.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// writing is the only connection that writes. Only the goroutine that commits the queue uses
// it, and never with a context that can be cancelled.
type writing struct {
	conn       *pgx.Conn
	generation int64 // generation of this process; another one in the database means that it is fenced
	clock      int64 // time of the last change, in microseconds
}

// now returns the current time in microseconds, or a later one if it was returned before.
func (w *writing) now() int64 {
	w.clock = max(time.Now().UnixMicro(), w.clock+1)
	return w.clock
}

// A queue holds the changes that wait to be committed, as in package sqlite: if no goroutine
// is committing, the caller that adds a change commits it itself.
type queue struct {
	mu   sync.Mutex
	idle sync.Cond // signals that busy became false
	ops  []*op
	busy bool // true while a goroutine commits
}

// do commits a change and waits for the outcome. ctx is only checked at the start: an error
// means that nothing was changed.
func (s *Store) do(ctx context.Context, o *op) error {
	o.result = make(chan error, 1)
	q := &s.queue
	q.mu.Lock()
	if err := s.open(ctx); err != nil {
		q.mu.Unlock()
		return err
	}
	q.ops = append(q.ops, o)
	ours := !q.busy
	q.busy = true
	q.mu.Unlock()
	if ours {
		runtime.Gosched() // lets callers that are about to append join the group
		s.commitGroup(q.take())
		if q.more() {
			go s.commitRest() // Close waits for it
		}
	}
	return <-o.result
}

// commitRest commits groups until the queue is empty.
func (s *Store) commitRest() {
	for more := true; more; more = s.queue.more() {
		s.commitGroup(s.queue.take())
	}
}

// take removes the next group from the queue.
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

// more reports whether ops wait. If none do, the queue is no longer busy.
func (q *queue) more() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ops) > 0 {
		return true
	}
	q.ops, q.busy = nil, false
	q.idle.Broadcast()
	return false
}

// waitIdle waits until no goroutine is committing.
func (q *queue) waitIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy {
		q.idle.Wait()
	}
}

// commitGroup commits ops and sends each its outcome. If one of them fails, each gets a
// transaction of its own, so that the others succeed.
func (s *Store) commitGroup(group []*op) {
	left := group
	for len(left) > 0 && s.broken == nil {
		err := s.transact(left)
		switch {
		case err == nil:
			left = nil
		case errors.Is(err, eventlog.ErrFenced):
			s.broken = fmt.Errorf("%s: %w", s.place, err)
		case lost(err):
			left, s.broken = s.recover(left, err)
		case len(left) > 1:
			for i := range left {
				s.commitGroup(left[i : i+1])
			}
			return
		default:
			left[0].err, left = s.explain(err), nil
		}
	}
	if s.broken != nil {
		s.shut(s.broken)
		for _, o := range left {
			o.err = s.broken
		}
	}
	for _, o := range group {
		if o.err == nil && o.refused != nil && o.changed == no {
			o.err = o.refused()
		}
		o.result <- o.err
	}
}

// transact runs ops in one transaction. An error means that it was not committed, or, if the
// connection was lost, that nobody knows.
func (s *Store) transact(group []*op) (err error) {
	defer func() {
		if p := recover(); p != nil {
			closeConn(s.write.conn) // so that nothing of the transaction can be committed
			err = fmt.Errorf("abide broke while it wrote (please report this): %v", p)
		}
	}()
	for _, o := range group {
		o.err, o.changed = nil, unknown
		if o.statement == nil {
			return s.transactSteps(group)
		}
	}
	return s.write.pipeline(group)
}

// fence fails unless this process may write, and keeps others from taking over until the
// transaction ends.
const fence = "SELECT generation FROM meta WHERE id = 1 FOR SHARE"

// pipeline commits ops that are single statements in one round trip.
func (w *writing) pipeline(group []*op) error {
	ctx := context.Background()
	var b pgx.Batch
	b.Queue("BEGIN")
	var generation int64
	b.Queue(fence).QueryRow(func(row pgx.Row) error { return row.Scan(&generation) })
	for _, o := range group {
		text, args := o.statement(w)
		b.Queue(text, args...).Query(func(rows pgx.Rows) error { return o.count(rows) })
	}
	b.Queue("COMMIT")
	err := w.conn.SendBatch(ctx, &b).Close()
	if err != nil && !lost(err) {
		_, _ = w.conn.Exec(ctx, "ROLLBACK") // its connection may be gone by now: the next transaction notices
	}
	if err == nil && generation != w.generation {
		err = eventlog.ErrFenced // the statements have the fence, too, and have changed nothing
	}
	return err
}

// changed says whether the statement of an op has changed something.
type changed int

const (
	unknown changed = iota
	no
	yes
)

// count notes whether a statement has returned a row.
func (o *op) count(rows pgx.Rows) error {
	o.changed = no
	for rows.Next() {
		o.changed = yes
	}
	return rows.Err()
}

// transactSteps commits ops one after the other in one transaction.
func (s *Store) transactSteps(group []*op) error {
	ctx := context.Background()
	tx, err := s.write.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) // does nothing after a commit
	var generation int64
	if err := tx.QueryRow(ctx, fence).Scan(&generation); err != nil {
		return err
	}
	if generation != s.write.generation {
		return eventlog.ErrFenced
	}
	for _, o := range group {
		if err := s.step(ctx, tx, o); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// step makes the change of an op inside a transaction.
func (s *Store) step(ctx context.Context, tx pgx.Tx, o *op) error {
	if o.statement != nil {
		text, args := o.statement(s.write)
		rows, err := tx.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return o.count(rows)
	}
	err := o.apply(ctx, s.write, tx)
	if r, refused := errors.AsType[refusal](err); refused {
		o.err, err = r.error, nil
	}
	return err
}

// recover connects again after a transaction whose outcome nobody knows. It returns the ops
// that have to be made again, or the reason for which the store has to close.
func (s *Store) recover(group []*op, cause error) (again []*op, broken error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		again, err := s.reconnect(ctx, group)
		switch {
		case err == nil:
			return again, nil
		case errors.Is(err, eventlog.ErrFenced):
			return group, fmt.Errorf("%s: %w", s.place, err)
		case !lost(err) && !isTemporary(err):
			return group, fmt.Errorf("%w: %w", eventlog.ErrClosed, s.explain(err))
		}
		select {
		case <-ctx.Done():
			return group, fmt.Errorf("%w: the server was away for more than %s: %w", eventlog.ErrClosed, patience, s.explain(errors.Join(err, cause)))
		case <-time.After(pause):
		}
	}
}

// reconnect makes a new connection, ends what the old one may still be doing, and returns the
// ops that are not in the store.
func (s *Store) reconnect(ctx context.Context, group []*op) (again []*op, err error) {
	w := s.write
	old := w.conn.PgConn().PID()
	closeConn(w.conn)
	conn, err := dial(ctx, s.config)
	if err != nil {
		return nil, err
	}
	w.conn = conn
	// A backend whose client is gone may hold its locks until it notices. It is ours if it
	// works for abide in this database.
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid = $1 AND pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user AND application_name = current_setting('application_name')`, int32(old))
	if err != nil {
		return nil, err
	}
	var generation int64
	err = conn.QueryRow(ctx, "UPDATE meta SET generation = generation + 1 WHERE generation = $1 RETURNING generation", w.generation).Scan(&generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, eventlog.ErrFenced
	}
	if err != nil {
		return nil, err
	}
	w.generation = generation
	for _, o := range group {
		is := false
		if o.stored != nil {
			if is, err = o.stored(ctx, conn); err != nil {
				return nil, err
			}
		}
		if is {
			o.err, o.changed = nil, yes
		} else {
			again = append(again, o)
		}
	}
	return again, nil
}
