package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// jobFields are the columns of a job, as scanJob reads them.
const jobFields = `id, coalesce((SELECT name FROM sessions s WHERE s.id = jobs.session), ''), kind, epoch, first, last, attempts, due, holder, error`

func scanJob(row interface{ Scan(...any) error }) (j eventlog.Job, err error) {
	var due sql.NullInt64
	err = row.Scan(&j.ID, &j.Session, &j.Kind, &j.Epoch, &j.From, &j.To, &j.Attempts, &due, &j.Holder, &j.Error)
	if due.Valid {
		j.Due = time.UnixMicro(due.Int64)
	}
	return j, err
}

// dueColumn returns a due time as it is stored.
func dueColumn(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// errNotDue means that another holder was faster.
var errNotDue = errors.New("no job is due")

// TakeJob implements eventlog.Jobs. It writes only if a job is due.
func (s *Store) TakeJob(ctx context.Context, holder string, now, until time.Time) (*eventlog.Job, time.Time, error) {
	next, err := s.nextJob(ctx)
	if err != nil || next.IsZero() || next.After(now) {
		return nil, next, err
	}
	var taken eventlog.Job
	err = s.queue.Do(ctx, &op{
		apply: func(w *writing) (err error) {
			taken, err = scanJob(w.conn.QueryRowContext(context.Background(), `UPDATE jobs SET holder = ?, due = ?
				WHERE id = (SELECT id FROM jobs WHERE due <= ? ORDER BY due, id LIMIT 1) RETURNING `+jobFields,
				holder, dueColumn(until), dueColumn(now)))
			if errors.Is(err, sql.ErrNoRows) {
				err = refusal{errNotDue}
			}
			return err
		},
		committed: func() {},
	})
	switch {
	case errors.Is(err, errNotDue):
		next, err := s.nextJob(ctx)
		return nil, next, err
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("take a job: %w", err)
	}
	return &taken, time.Time{}, nil
}

// nextJob returns the time at which the next job is due, or zero if there is none.
func (s *Store) nextJob(ctx context.Context) (time.Time, error) {
	if err := s.queue.Open(ctx); err != nil {
		return time.Time{}, err
	}
	var due sql.NullInt64
	err := s.reading.QueryRow("SELECT min(due) FROM jobs WHERE due IS NOT NULL").Scan(&due)
	if err != nil || !due.Valid {
		return time.Time{}, s.readError("", 0, err)
	}
	return time.UnixMicro(due.Int64), nil
}

// ChangeJobs implements eventlog.Jobs.
func (s *Store) ChangeJobs(ctx context.Context, changes ...eventlog.JobChange) error {
	err := s.queue.Do(ctx, &op{
		apply: func(w *writing) error {
			sessions := make([]int64, len(changes))
			for i, c := range changes {
				if c.Verb != eventlog.AddJob {
					continue
				}
				h, err := w.session(c.Job.Session)
				if err != nil {
					return err
				}
				sessions[i] = h.Session
			}
			for i, c := range changes {
				if err := w.changeJob(sessions[i], c); err != nil {
					return err
				}
			}
			return nil
		},
		committed: func() {},
	})
	if err != nil {
		return fmt.Errorf("change jobs: %w", err)
	}
	return nil
}

// changeJob makes one change to a job inside a transaction.
func (w *writing) changeJob(session int64, c eventlog.JobChange) error {
	j := c.Job
	switch c.Verb {
	case eventlog.DropJob:
		return w.execJobs("DELETE FROM jobs WHERE id = ?", j.ID)
	case eventlog.PutJob:
		return w.execJobs("UPDATE jobs SET last = ?, attempts = ?, due = ?, error = ?, holder = '' WHERE id = ? AND (? = '' OR holder = ?)",
			int64(j.To), j.Attempts, dueColumn(j.Due), j.Error, j.ID, j.Holder, j.Holder)
	}
	return w.execJobs(`INSERT INTO jobs (id, session, kind, epoch, first, last, attempts, due, holder, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?)
		ON CONFLICT (session, kind, first) DO UPDATE SET due = excluded.due WHERE due IS NULL`,
		j.ID, session, j.Kind, j.Epoch, int64(j.From), int64(j.To), j.Attempts, dueColumn(j.Due), j.Error)
}

// Job implements eventlog.Jobs.
func (s *Store) Job(ctx context.Context, id string) (eventlog.Job, error) {
	if err := s.queue.Open(ctx); err != nil {
		return eventlog.Job{}, err
	}
	j, err := scanJob(s.reading.QueryRow("SELECT "+jobFields+" FROM jobs WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return eventlog.Job{}, fmt.Errorf("job %s: %w", id, eventlog.ErrNoJob)
	}
	return j, s.readError("", 0, err)
}

// Jobs implements eventlog.Jobs.
func (s *Store) Jobs(ctx context.Context, session event.SessionID) ([]eventlog.Job, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	which, args := "", []any{}
	if session != "" {
		which, args = "WHERE session = (SELECT id FROM sessions WHERE name = ?)", []any{string(session)}
	}
	rows, err := s.reading.Query("SELECT "+jobFields+" FROM jobs "+which+" ORDER BY due IS NULL, due, id", args...)
	if err != nil {
		return nil, s.readError(session, 0, err)
	}
	defer rows.Close()
	var list []eventlog.Job
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, s.readError(session, 0, err)
		}
		list = append(list, j)
	}
	return list, s.readError(session, 0, rows.Err())
}

// freeJobs ends all leases: their holders are in the process that had the store open
// before, which is fenced and cannot store a result any more.
func freeJobs(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "UPDATE jobs SET holder = '', due = ? WHERE holder <> ''", time.Now().UnixMicro())
	if corrupt(err) {
		return nil // TakeJob will report it
	}
	return err
}

// brokenJobs is the error of a change that fails because a page of the table of jobs is
// damaged.
type brokenJobs struct{ error }

func (b brokenJobs) Unwrap() error { return b.error }

// execJobs is exec for statements about jobs.
func (w *writing) execJobs(text string, args ...any) error {
	err := w.exec(text, args...)
	if corrupt(err) {
		return brokenJobs{err}
	}
	return err
}

// withJobs makes a change to the log and its jobs. If the table of jobs is damaged, it
// makes the change without them: losing upkeep is better than losing events. TakeJob
// reports the damage.
func (s *Store) withJobs(change func(jobs bool) error) error {
	err := change(true)
	if is[brokenJobs](err) {
		return change(false)
	}
	return err
}
