package eventlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// TakeJob implements Jobs.
func (m *Memory) TakeJob(ctx context.Context, holder string, now, until time.Time) (*Job, time.Time, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer unlock()
	rows := m.rows("")
	if len(rows) == 0 || rows[0].Aside() {
		return nil, time.Time{}, nil
	}
	first := rows[0]
	if first.Due.After(now) {
		return nil, first.Due, nil
	}
	first.Holder, first.Due = holder, until
	m.jobs[first.ID] = first
	return &first, time.Time{}, nil
}

// ChangeJobs implements Jobs.
func (m *Memory) ChangeJobs(ctx context.Context, changes ...JobChange) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, c := range changes {
		if _, err := m.find(c.Job.Session); c.Verb == AddJob && err != nil {
			return err
		}
	}
	for _, c := range changes {
		m.change(c)
	}
	return nil
}

// change makes one change to a job.
func (m *Memory) change(c JobChange) {
	was, there := m.jobs[c.Job.ID]
	switch {
	case c.Verb == AddJob:
		m.addJob(c.Job)
	case !there:
	case c.Verb == DropJob:
		delete(m.jobs, c.Job.ID)
	case c.Job.Holder == "" || c.Job.Holder == was.Holder:
		was.To, was.Attempts, was.Due, was.Error, was.Holder = c.Job.To, c.Job.Attempts, c.Job.Due, c.Job.Error, ""
		m.jobs[was.ID] = was
	}
}

// addJob adds a job, as AddJob promises.
func (m *Memory) addJob(j Job) {
	for _, was := range m.jobs {
		if was.Session != j.Session || was.Kind != j.Kind || was.From != j.From {
			continue
		}
		if was.Aside() {
			was.Due = j.Due
			m.jobs[was.ID] = was
		}
		return
	}
	m.jobs[j.ID] = j
}

// Job implements Jobs.
func (m *Memory) Job(ctx context.Context, id string) (Job, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Job{}, err
	}
	defer unlock()
	j, there := m.jobs[id]
	if !there {
		return Job{}, fmt.Errorf("job %s: %w", id, ErrNoJob)
	}
	return j, nil
}

// Jobs implements Jobs.
func (m *Memory) Jobs(ctx context.Context, session event.SessionID) ([]Job, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return m.rows(session), nil
}

// rows returns the jobs of a session, or of all if the id is empty, in the order in
// which they are due.
func (m *Memory) rows(session event.SessionID) []Job {
	var list []Job
	for _, j := range m.jobs {
		if session == "" || j.Session == session {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b Job) int {
		if a.Aside() != b.Aside() {
			return b.Due.Compare(a.Due)
		}
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
	})
	return list
}
