package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// A MemorySource connects sessions with the memory that outlives them.
type MemorySource struct {
	// Recall returns what memory tells a new session that works in a folder, in at
	// most so many tokens, and what that is of each page. Nothing is recalled if it is
	// nil.
	Recall func(dir, where string, tokens int) (text string, parts []event.MemoryPart)
	// Wake is called after jobs were stored. It does not wait for them.
	Wake func()
}

// usualRecall is how many tokens of memory a new session gets at most, unless it is
// configured otherwise.
const usualRecall = 2000

// ErrMoved means that the session has changed since a job read it, so that the job's
// result does not apply.
var ErrMoved = errors.New("the session has moved on since the job looked")

// turnKey marks contexts that belong to the work of sessions.
type turnKey struct{}

// Working reports whether a context belongs to the work of a session, such as a turn.
func Working(ctx context.Context) bool { return ctx.Value(turnKey{}) != nil }

// memoryRules returns the rules by which the session is remembered. The session of an
// agent is not remembered by itself: the session that started it has the agent's
// answer.
func (tx *txn) memoryRules() event.MemoryRules {
	if tx.State.Setup.Config.Agent != nil {
		return event.MemoryRules{}
	}
	return tx.State.Setup.Config.Memory
}

// newJob returns a job about this session.
func (tx *txn) newJob(kind string, from, to event.Seq, due time.Time) eventlog.Job {
	epoch, _ := tx.State.History.Epoch()
	return eventlog.Job{ID: event.NewID(), Kind: kind, Session: tx.s.id, Epoch: epoch.EpochID, From: from, To: to, Due: due}
}

// changeJob changes a job together with what the transaction records.
func (tx *txn) changeJob(verb eventlog.JobVerb, j eventlog.Job) {
	tx.jobs = append(tx.jobs, eventlog.JobChange{Verb: verb, Job: j})
}

// scheduleExtraction adds a job that extracts memory, if enough was said since the
// last one. The job runs later, elsewhere. Nothing is scheduled after an abort, because
// a job makes requests: the next turn that ends schedules it.
func (tx *txn) scheduleExtraction() {
	if tx.State.Life.Aborted {
		return
	}
	m, rules := &tx.State.Memory, tx.memoryRules()
	if t := rules.ExtractThreshold; t > 0 && m.Tokens() >= t {
		tx.changeJob(eventlog.AddJob, tx.newJob(eventlog.JobExtract, m.Pointer+1, tx.State.Seq, tx.now))
	}
	if m.Waiting > 0 {
		tx.scheduleConsolidation()
	}
}

// scheduleConsolidation adds a job that consolidates what was extracted, due when the
// session has been idle for long enough. The job checks that again when it is due, so
// events until then need not change the job.
func (tx *txn) scheduleConsolidation() {
	if idle := time.Duration(tx.memoryRules().IdleMs) * time.Millisecond; idle > 0 {
		tx.changeJob(eventlog.AddJob, tx.newJob(eventlog.JobConsolidate, 0, 0, tx.now.Add(idle)))
	}
}

// wakeJobs wakes the worker after jobs were stored.
func (tx *txn) wakeJobs() {
	if len(tx.jobs) > 0 && tx.s.host.opts.Memory.Wake != nil {
		tx.afterCommit = append(tx.afterCommit, tx.s.host.opts.Memory.Wake)
	}
}

// recordRecall records what memory tells a new session. It never changes in the life
// of the session, so that providers' caches stay valid.
func (tx *txn) recordRecall() error {
	read, rules, config := tx.s.host.opts.Memory.Recall, tx.memoryRules(), tx.State.Setup.Config
	if read == nil || config.Agent != nil || tx.State.Memory.Recalled != "" || tx.State.About.Totals.Turns > 0 {
		return nil
	}
	most := usualRecall
	if rules.RecallTokens != nil {
		most = *rules.RecallTokens
	}
	if most <= 0 {
		return nil
	}
	text, parts := read(config.LocalDirectory(), rules.Where, most)
	if text == "" {
		return nil
	}
	pages := make([]string, len(parts))
	for i, p := range parts {
		pages[i] = p.Path
	}
	return tx.record(event.MemoryRecalledData{Text: text, Pages: pages, Parts: parts})
}

// Memory lets jobs read sessions, and record what they found.
type Memory struct{ host *Host }

// Remembered is what a job needs to know of a session.
type Remembered struct {
	turn.Memory
	Seq    event.Seq
	Epoch  string
	Busy   bool // true if a turn is unfinished
	Config event.SessionConfiguredData
	Model  string
}

// Remembered returns how far memory was extracted from a session, and what a job
// needs to go on.
func (m Memory) Remembered(ctx context.Context, id event.SessionID) (r Remembered, err error) {
	err = m.host.inspect(ctx, id, func(tx *txn) error {
		epoch, _ := tx.State.History.Epoch()
		r = Remembered{
			Memory: tx.State.Memory.Clone(), Seq: tx.State.Seq, Epoch: epoch.EpochID, Busy: tx.State.Active(),
			Config: tx.State.Setup.Config, Model: tx.State.Setup.Model,
		}
		return nil
	})
	return r, err
}

// End returns the end of the log up to which memory was extracted.
func (r Remembered) End() (eventlog.End, error) {
	end := eventlog.End{Seq: r.Pointer}
	n, err := hex.Decode(end.Hash[:], []byte(r.Hash))
	if err != nil || (r.Pointer > 0 && n != len(end.Hash)) {
		return end, fmt.Errorf("the hash of event %d, up to which memory was extracted, cannot be read: %q", r.Pointer, r.Hash)
	}
	return end, nil
}

// RecordExtraction records what a job found in a part of the log, and removes the job
// in the same transaction. If the job has more to read, another job is added. The
// error is ErrMoved if the part does not follow the last one any more, or if events
// were taken back since the job read the session.
func (m Memory) RecordExtraction(ctx context.Context, j eventlog.Job, looked Remembered, d event.MemoryExtractedData) error {
	return m.host.maintain(ctx, j.Session, func(tx *txn) error {
		if err := tx.recordExtraction(looked, d); err != nil {
			return err
		}
		if j.Kind == eventlog.JobExtract {
			tx.changeJob(eventlog.DropJob, j)
			tx.scheduleRemainder(j, d)
		}
		if !tx.State.Active() { // enough may have been said meanwhile
			tx.scheduleExtraction()
		}
		return nil
	})
}

// Quarantine records that a part of the log cannot be extracted, so that the parts
// after it can be. The job is set aside with that part as its range.
func (m Memory) Quarantine(ctx context.Context, j eventlog.Job, looked Remembered, d event.MemoryExtractedData) error {
	return m.host.maintain(ctx, j.Session, func(tx *txn) error {
		if err := tx.recordExtraction(looked, d); err != nil {
			return err
		}
		aside := j
		aside.ID, aside.From, aside.To, aside.Due, aside.Holder = event.NewID(), d.From, d.To, time.Time{}, ""
		tx.changeJob(eventlog.DropJob, j)
		tx.changeJob(eventlog.AddJob, aside)
		tx.scheduleRemainder(j, d)
		if !tx.State.Active() {
			tx.scheduleExtraction()
		}
		return nil
	})
}

// scheduleRemainder adds a job for what a job has not read yet.
func (tx *txn) scheduleRemainder(j eventlog.Job, d event.MemoryExtractedData) {
	if d.To == tx.State.Memory.Pointer && d.To < j.To {
		next := tx.newJob(j.Kind, d.To+1, j.To, tx.now)
		next.Epoch = j.Epoch
		tx.changeJob(eventlog.AddJob, next)
	}
}

// recordExtraction records what was found, if the session has not changed since the
// job read it.
func (tx *txn) recordExtraction(looked Remembered, d event.MemoryExtractedData) error {
	if err := tx.exists(); err != nil {
		return err
	}
	m := &tx.State.Memory
	again := slices.Contains(m.Aside, turn.Part{From: d.From, To: d.To})
	if m.Hidden != looked.Hidden || (!again && d.From != m.Pointer+1) {
		return fmt.Errorf("events %d to %d of session %s: %w", d.From, d.To, tx.s.id, ErrMoved)
	}
	if err := tx.record(d); err != nil {
		return err
	}
	if d.Found > 0 {
		tx.scheduleConsolidation()
	}
	return nil
}

// RecordConsolidation records that what was found up to a position is in the pages of
// memory, and removes the job. The error is ErrMoved if another job was faster.
func (m Memory) RecordConsolidation(ctx context.Context, j eventlog.Job, looked Remembered, d event.MemoryConsolidatedData) error {
	return m.host.maintain(ctx, j.Session, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		if tx.State.Memory.Through != looked.Through {
			return fmt.Errorf("what was found in session %s after event %d: %w", tx.s.id, looked.Through, ErrMoved)
		}
		if err := tx.record(d); err != nil {
			return err
		}
		tx.changeJob(eventlog.DropJob, j)
		if tx.State.Memory.Waiting > 0 { // a job has extracted more meanwhile
			tx.scheduleConsolidation()
		}
		return nil
	})
}

// Schedule adds a job that extracts and consolidates a session now, and returns the
// job's id. It does not wait for the job.
func (m Memory) Schedule(ctx context.Context, id event.SessionID) (string, error) {
	var j eventlog.Job
	err := m.host.inspectAny(ctx, id, func(tx *txn) error {
		j = tx.newJob(eventlog.JobConsolidate, tx.State.Seq, tx.State.Seq, tx.now)
		return tx.exists()
	})
	if err != nil {
		return "", err
	}
	if err := m.host.store.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.AddJob, Job: j}); err != nil {
		return "", fmt.Errorf("schedule session %s: %w", id, err)
	}
	m.host.wakeJobs()
	return m.host.findScheduled(ctx, j)
}

// findScheduled returns the id of the stored job that is equal to a job: an earlier
// one if nothing has happened since.
func (h *Host) findScheduled(ctx context.Context, j eventlog.Job) (string, error) {
	rows, err := h.store.Jobs(ctx, j.Session)
	for _, row := range rows {
		if row.Kind == j.Kind && row.From == j.From {
			return row.ID, err
		}
	}
	return j.ID, err // the job is done already
}

// RetryJob makes a job that was set aside due again.
func (m Memory) RetryJob(ctx context.Context, id string) error {
	j, err := m.host.store.Job(ctx, id)
	if err != nil {
		return err
	}
	if j.Holder != "" {
		return nil // a worker is running it
	}
	j.Attempts, j.Due = 0, time.Now()
	if err := m.host.store.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.PutJob, Job: j}); err != nil {
		return fmt.Errorf("retry job %s: %w", id, err)
	}
	m.host.wakeJobs()
	return nil
}

// Jobs lists the jobs of a session, or of all sessions if the id is empty.
func (m Memory) Jobs(ctx context.Context, id event.SessionID) ([]eventlog.Job, error) {
	return m.host.store.Jobs(ctx, id)
}

func (h *Host) wakeJobs() {
	if h.opts.Memory.Wake != nil {
		h.opts.Memory.Wake()
	}
}

// Forget records that nothing said in a session so far is to be remembered, and
// removes the session's jobs.
func (m Memory) Forget(ctx context.Context, id event.SessionID) error {
	rows, err := m.host.store.Jobs(ctx, id)
	if err != nil {
		return err
	}
	return m.host.maintain(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		for _, j := range rows {
			tx.changeJob(eventlog.DropJob, j)
		}
		end := tx.s.log.end
		return tx.record(event.MemoryConsolidatedData{Through: end.Seq, Pages: []event.MemoryPage{}, Forgotten: true, Hash: hex.EncodeToString(end.Hash[:])})
	})
}
