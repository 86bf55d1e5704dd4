package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// selectJobs selects the rows that scanJob reads.
const selectJobs = `SELECT j.id, coalesce(s.name, ''), j.kind, j.epoch, j.first, j.last, j.attempts, j.due, j.holder, j.error
	FROM jobs j LEFT JOIN sessions s ON s.id = j.session `

func scanJob(row pgx.CollectableRow) (j eventlog.Job, err error) {
	var id, session, kind, epoch, holder, failure []byte
	var due *int64
	err = row.Scan(&id, &session, &kind, &epoch, &j.From, &j.To, &j.Attempts, &due, &holder, &failure)
	j.ID, j.Session, j.Kind, j.Epoch, j.Holder, j.Error = string(id), event.SessionID(session), string(kind), string(epoch), string(holder), string(failure)
	if due != nil {
		j.Due = time.UnixMicro(*due)
	}
	return j, err
}

// dueColumn returns a due time as it is stored.
func dueColumn(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMicro())
}

// jobs reads jobs.
func (s *Store) jobs(ctx context.Context, which string, args ...any) ([]eventlog.Job, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	list, err := collect(ctx, s.reading, scanJob, selectJobs+which, args...)
	return list, s.readError(err)
}

// TakeJob implements eventlog.Jobs. It writes only if a job is due.
func (s *Store) TakeJob(ctx context.Context, holder string, now, until time.Time) (*eventlog.Job, time.Time, error) {
	next, err := s.nextJob(ctx)
	if err != nil || next.IsZero() || next.After(now) {
		return nil, next, err
	}
	var taken *eventlog.Job
	err = s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) (err error) {
		taken, err = s.take(ctx, tx, holder, now, until)
		return err
	}})
	switch {
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("take a job: %w", err)
	case taken == nil: // another holder was faster
		next, err := s.nextJob(ctx)
		return nil, next, err
	}
	return taken, time.Time{}, nil
}

// take takes the job that has been due longest; nil if none is due.
func (s *Store) take(ctx context.Context, tx pgx.Tx, holder string, now, until time.Time) (*eventlog.Job, error) {
	from, lock := s.ownJobs()
	var id []byte
	err := tx.QueryRow(ctx, "UPDATE jobs SET holder = $1, due = $2 WHERE id = (SELECT j.id FROM "+from+" AND j.due <= $3 ORDER BY j.due, j.id LIMIT 1"+lock+") RETURNING id",
		[]byte(holder), dueColumn(until), now.UnixMicro()).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, selectJobs+"WHERE j.id = $1", id)
	if err != nil {
		return nil, err
	}
	job, err := pgx.CollectExactlyOneRow(rows, scanJob)
	return &job, err
}

// ownJobs returns the jobs j that this process may take, as a part of a query, and what keeps
// others from claiming the session of the one that is taken. If there are other servers, they are
// the jobs of sessions that this one owns.
func (s *Store) ownJobs() (from, lock string) {
	if s.life == nil {
		return "jobs j WHERE true", ""
	}
	return "jobs j JOIN sessions s ON s.id = j.session JOIN owners o ON o.name = coalesce(s.family, s.name) WHERE o.server = " + hexLiteral(s.life.me.ID), " FOR SHARE OF o"
}

// nextJob returns the time at which the next job is due, or zero if there is none.
func (s *Store) nextJob(ctx context.Context) (time.Time, error) {
	if err := s.queue.Open(ctx); err != nil {
		return time.Time{}, err
	}
	from, _ := s.ownJobs()
	var due *int64
	err := s.reading.QueryRow(ctx, "SELECT min(j.due) FROM "+from+" AND j.due IS NOT NULL").Scan(&due)
	if err != nil || due == nil {
		return time.Time{}, s.readError(err)
	}
	return time.UnixMicro(*due), nil
}

// ChangeJobs implements eventlog.Jobs.
func (s *Store) ChangeJobs(ctx context.Context, changes ...eventlog.JobChange) error {
	rights, err := s.jobRights(ctx, changes)
	if err != nil {
		return fmt.Errorf("change jobs: %w", err)
	}
	err = s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		for _, r := range rights {
			if err := s.hold(ctx, tx, r); err != nil {
				return err
			}
		}
		sessions := make([]int64, len(changes))
		for i, c := range changes {
			if c.Verb != eventlog.AddJob {
				continue
			}
			h, err := findHead(ctx, tx, c.Job.Session)
			if errors.Is(err, eventlog.ErrNotFound) {
				return refusal{err}
			}
			if err != nil {
				return err
			}
			sessions[i] = h.Session
		}
		for i, c := range changes {
			if err := changeJob(ctx, tx, sessions[i], c); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("change jobs: %w", err)
	}
	return nil
}

// jobRights returns the rights to the sessions whose jobs are changed. A job that does not exist
// has none.
func (s *Store) jobRights(ctx context.Context, changes []eventlog.JobChange) (map[event.SessionID]right, error) {
	rights := make(map[event.SessionID]right)
	if s.life == nil {
		return rights, nil
	}
	for _, c := range changes {
		id := c.Job.Session
		if c.Verb != eventlog.AddJob {
			var err error
			if id, err = jobSession(ctx, s.reading, c.Job.ID); err != nil {
				return nil, s.readError(err)
			}
			if id == "" {
				continue
			}
		}
		if _, known := rights[id]; known {
			continue
		}
		r, err := s.right(ctx, id, nil)
		if err != nil {
			return nil, err
		}
		rights[id] = r
	}
	return rights, nil
}

// changeJob makes one change to a job inside a transaction.
func changeJob(ctx context.Context, tx pgx.Tx, session int64, c eventlog.JobChange) (err error) {
	j := c.Job
	switch c.Verb {
	case eventlog.DropJob:
		_, err = tx.Exec(ctx, "DELETE FROM jobs WHERE id = $1", []byte(j.ID))
	case eventlog.PutJob:
		_, err = tx.Exec(ctx, "UPDATE jobs SET last = $2, attempts = $3, due = $4, error = $5, holder = '' WHERE id = $1 AND ($6::bytea = '' OR holder = $6)",
			[]byte(j.ID), int64(j.To), j.Attempts, dueColumn(j.Due), []byte(j.Error), []byte(j.Holder))
	default:
		_, err = tx.Exec(ctx, `INSERT INTO jobs (id, session, kind, epoch, first, last, attempts, due, holder, error) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9)
			ON CONFLICT (session, kind, first) DO UPDATE SET due = excluded.due WHERE jobs.due IS NULL`,
			[]byte(j.ID), session, []byte(j.Kind), []byte(j.Epoch), int64(j.From), int64(j.To), j.Attempts, dueColumn(j.Due), []byte(j.Error))
	}
	return err
}

// Job implements eventlog.Jobs.
func (s *Store) Job(ctx context.Context, id string) (eventlog.Job, error) {
	list, err := s.jobs(ctx, "WHERE j.id = $1", []byte(id))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("job %s: %w", id, eventlog.ErrNoJob)
	}
	if err != nil {
		return eventlog.Job{}, err
	}
	return list[0], nil
}

// Jobs implements eventlog.Jobs.
func (s *Store) Jobs(ctx context.Context, session event.SessionID) ([]eventlog.Job, error) {
	return s.jobs(ctx, "WHERE $1::bytea = '' OR s.name = $1 ORDER BY j.due NULLS LAST, j.id", []byte(session))
}
