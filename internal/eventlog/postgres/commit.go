package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
)

// patience is how long changes wait for a server that is away before the store closes. Tests make
// it shorter.
var patience = 2 * time.Minute

// An op is a change that waits to be committed. It is a single statement, which goes to the
// server together with those of other ops, or a function that talks to it.
type op struct {
	group.Op
	// statement returns the text and the arguments of the change. It has the fence of the
	// writing among its conditions, and returns a row if it has changed something.
	statement func(*writing) (string, []any)
	// refused returns the reason why the statement has changed nothing. It is called after the
	// transaction.
	refused func() error
	// apply makes the change inside a transaction, if it is not a single statement. A refusal
	// is an error before anything was changed.
	apply func(context.Context, *writing, pgx.Tx) error
	// stored reports whether the change of the statement is in the store, after the reply to it
	// was lost.
	stored func(context.Context, *pgx.Conn) (bool, error)

	changed changed // whether the statement has changed something
}

// A refusal is the error of an op that failed before it changed anything. The other ops in its
// transaction are not affected.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// writing is the only connection that writes. Only the goroutine that commits the queue uses
// it, and never with a context that can be cancelled.
type writing struct {
	conn       *pgx.Conn
	generation int64  // generation of this process; another one in the database means that it is fenced
	clock      int64  // time of the last change, in microseconds
	last       string // name of the transaction that was begun last
	fence      string // statement that names a transaction, see below
	current    string // expression for the generation of the process that may write
}

// now returns the current time in microseconds, or a later one if it was returned before.
func (w *writing) now() int64 {
	w.clock = max(time.Now().UnixMicro(), w.clock+1)
	return w.clock
}

// commitGroup commits ops and sets the outcome of each.
func (s *Store) commitGroup(group []*op) {
	if s.life != nil {
		_ = s.life.await(context.Background()) // only its context ends it with an error
	}
	s.commit(group)
	for _, o := range group {
		if o.Err == nil && o.refused != nil && o.changed == no {
			o.Err = o.refused()
		}
	}
}

// maxLosses is how often the connection may be lost while the same ops are committed before
// they are suspected to be the reason.
const maxLosses = 3

// commit commits ops and sets the outcome of each. If one of them fails, each gets a
// transaction of its own, so that the others succeed.
func (s *Store) commit(group []*op) {
	for losses, deadlocks := 0, 0; s.broken == nil; {
		err := s.transact(group)
		if isDeadlock(err) && deadlocks < maxLosses {
			deadlocks++
			continue
		}
		done := err == nil
		if lost(err) {
			losses++
			done, s.broken = s.recover(group, err)
		}
		switch {
		case done:
			return
		case errors.Is(err, eventlog.ErrFenced):
			s.broken = fmt.Errorf("%s: %w", s.place, err)
			setAll(group, s.broken)
		case s.broken != nil: // recover has set the outcomes
		case lost(err) && losses < maxLosses:
			continue
		case len(group) > 1:
			for i := range group {
				s.commit(group[i : i+1])
			}
			return
		default:
			group[0].Err = s.explain(err)
			return
		}
		s.queue.Shut(s.broken)
		return
	}
	setAll(group, s.broken)
}

// isDeadlock reports whether the server has ended a transaction because it and another one, of
// another server of ours, waited for each other. It can be tried again.
func isDeadlock(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == deadlock
}

// setAll sets the outcome of all ops.
func setAll(group []*op, err error) {
	for _, o := range group {
		o.Err = err
	}
}

// transact runs ops in one transaction. An error means that it was not committed, or, if the
// connection was lost, that nobody knows.
func (s *Store) transact(group []*op) (err error) {
	defer func() {
		if p := recover(); p != nil {
			closeConn(s.write.conn) // without its connection, the transaction cannot be committed
			err = fmt.Errorf("abide broke while it wrote (please report this): %v", p)
		}
	}()
	for _, o := range group {
		o.Err, o.changed = nil, unknown
	}
	s.write.last = rand.Text()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if slices.ContainsFunc(group, func(o *op) bool { return o.statement == nil }) {
		return s.transactSteps(ctx, group)
	}
	return s.write.pipeline(ctx, group)
}

// The statements around those of ops. The second names the transaction, fails to if this process
// is fenced, and keeps others from taking over until the transaction ends.
const (
	begin   = "BEGIN ISOLATION LEVEL READ COMMITTED"
	fence   = "UPDATE meta SET last = $1 WHERE id = 1 AND generation = $2 RETURNING generation"
	current = "(SELECT generation FROM meta WHERE id = 1)"
)

// fenceOf and currentOf are the same for a server. Others wait for a transaction of its only if
// they bury the server, or claim a session that the transaction changes.
func fenceOf(server string) string {
	return "UPDATE writers SET last = $1 WHERE server = " + hexLiteral(server) + " AND generation = $2 RETURNING generation"
}

func currentOf(server string) string {
	return "(SELECT generation FROM writers WHERE server = " + hexLiteral(server) + ")"
}

// pipeline commits ops that are single statements in one round trip.
func (w *writing) pipeline(ctx context.Context, group []*op) error {
	var b pgx.Batch
	b.Queue(begin)
	fenced := true
	b.Queue(w.fence, []byte(w.last), w.generation).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			fenced = false
		}
		return rows.Err()
	})
	for _, o := range group {
		text, args := o.statement(w)
		b.Queue(text, args...).Query(func(rows pgx.Rows) error { return o.count(rows) })
	}
	b.Queue("COMMIT")
	err := w.conn.SendBatch(ctx, &b).Close()
	if err != nil && !lost(err) {
		_, _ = w.conn.Exec(ctx, "ROLLBACK") // its connection may be gone by now: the next transaction notices
	}
	if err == nil && fenced {
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
func (s *Store) transactSteps(ctx context.Context, group []*op) error {
	tx, err := s.write.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) // does nothing after a commit
	var generation int64
	err = tx.QueryRow(ctx, s.write.fence, []byte(s.write.last), s.write.generation).Scan(&generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return eventlog.ErrFenced
	}
	if err != nil {
		return err
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
		o.Err, err = r.error, nil
	}
	return err
}

// recover connects again after a transaction whose outcome nobody knows. It reports whether the
// transaction was committed, and then the ops have their outcomes; or the reason for which the
// store has to close, and then they have it as theirs.
func (s *Store) recover(group []*op, cause error) (committed bool, broken error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	next := s.write.generation + 1 + int64(mathrand.Uint32()) // no other process chooses the same
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		committed, err := s.reconnect(ctx, next, group)
		switch {
		case err == nil:
			return committed, nil
		case errors.Is(err, eventlog.ErrFenced):
			broken = fmt.Errorf("%s: %w", s.place, err)
			s.lookUp(ctx, group, broken)
			return false, broken
		case !lost(err) && !isTemporary(err):
			broken = fmt.Errorf("%w: %w", eventlog.ErrClosed, s.explain(err))
			setAll(group, broken)
			return false, broken
		}
		select {
		case <-ctx.Done():
			broken = fmt.Errorf("%w: the server was away for more than %s: %w", eventlog.ErrClosed, patience, s.explain(errors.Join(err, cause)))
		case <-s.queue.Closed(): // nobody waits for the server any more
			broken = fmt.Errorf("%w: %w", s.queue.Err(), s.explain(errors.Join(err, cause)))
		case <-time.After(pause):
			continue
		}
		setAll(group, broken)
		return false, broken
	}
}

// reconnect makes a new connection, ends what the old one may still be doing, and reports whether
// the last transaction was committed.
func (s *Store) reconnect(ctx context.Context, next int64, group []*op) (committed bool, err error) {
	w := s.write
	old := w.conn.PgConn().PID()
	closeConn(w.conn)
	conn, err := dial(ctx, s.config, s.sync)
	if err != nil {
		return false, err
	}
	w.conn = conn
	// A backend whose client is gone may hold its locks until it notices. It is ours if it
	// works for abide in this database.
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE pid = $1 AND pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user AND application_name = current_setting('application_name')`, int32(old))
	if err != nil {
		return false, err
	}
	if err := s.checkEra(ctx, conn); err != nil {
		return false, err
	}
	var last []byte
	renew := "UPDATE meta SET generation = $2 WHERE generation IN ($1, $2) RETURNING last"
	if s.life != nil {
		renew = "UPDATE writers SET generation = $2 WHERE server = " + hexLiteral(s.life.me.ID) + " AND generation IN ($1, $2) RETURNING last"
	}
	err = conn.QueryRow(ctx, renew, w.generation, next).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, eventlog.ErrFenced
	}
	if err != nil {
		return false, err
	}
	w.generation = next
	if string(last) != w.last {
		return false, nil
	}
	return true, learn(ctx, conn, group)
}

// learn sets the outcomes of statements of a transaction that was committed, as far as the replies
// to them were lost.
func learn(ctx context.Context, conn *pgx.Conn, group []*op) error {
	for _, o := range group {
		if o.statement == nil || o.changed != unknown {
			continue
		}
		stored, err := o.stored(ctx, conn)
		if err != nil {
			return err
		}
		if o.changed = no; stored {
			o.changed = yes
		}
	}
	return nil
}

// lookUp sets the outcomes of a transaction that was in doubt when another process took over.
// Nothing of it can be under way any more. Appends are looked up; of other changes it is unknown
// whether they were made.
func (s *Store) lookUp(ctx context.Context, group []*op, broken error) {
	for _, o := range group {
		o.Err = broken
		if o.stored == nil {
			o.Err = fmt.Errorf("%w: %w", eventlog.ErrClosed, broken)
			continue
		}
		switch stored, err := o.stored(ctx, s.write.conn); {
		case err != nil:
			o.Err = fmt.Errorf("%w: %w", eventlog.ErrClosed, broken)
		case stored:
			o.Err, o.changed = nil, yes
		}
	}
}
