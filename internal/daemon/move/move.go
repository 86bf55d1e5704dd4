// Package move moves the sessions of a data folder from its log in a file to a database.
//
//   - The sessions arrive hidden. The file is marked as moved when all of them are there and were
//     verified, and only then do they appear, all at once. So each session can be used in one place
//     at any time, and before the mark the folder goes on as if nothing had happened.
//   - A move that was interrupted, in whatever way, is finished by the next one. What has arrived
//     and is as it was is not sent again; what has changed is replaced.
//   - Every chain of hashes is verified as it is read, and again as the database has it.
//   - Secrets stay sealed. Those that another key has sealed than that of the database's servers are
//     sealed anew.
//   - The memory that it needs depends on the largest append and not on the number of sessions.
//
// Files and commands of sessions stay in the data folder, and the sessions are bound to it.
package move

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/record"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// A Move is a move of the sessions of a data folder.
type Move struct {
	Dir     string // data folder
	Store   string // path of the log in a file
	KeyFile string // path of the file with the key of its secrets
	To      string // URL of the database

	TargetKeyFile string // path of the key file of the servers of the database; KeyFile if empty

	DryRun       bool                                  // true to look at everything and move nothing
	AllowDamaged bool                                  // true to move damaged sessions up to the damage
	Progress     func(stage string, done, total int64) // may be nil
	Warn         func(line string)                     // may be nil
	AtStep       func(step string)                     // called between the steps; for tests
}

// A Report says what was moved.
type Report struct {
	Sessions int                // sessions that are in the database now
	Sent     int                // number of them, with those kept for their forks, that were sent by this process
	Bytes    int64              // size of the events that were sent
	Place    string             // database, for people
	Damaged  []*eventlog.Damage // damaged sessions
	Resealed int                // secrets that were sealed with another key
	Unopened int                // secrets that should have been, and could not be opened
	Before   bool               // true if the sessions had been moved before, and nothing was left to do
}

// A DamageError means that sessions are damaged, so that nothing was moved.
type DamageError struct{ Damaged []*eventlog.Damage }

func (e *DamageError) Error() string {
	more := ""
	if n := len(e.Damaged) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s%s: nothing was moved; delete the damaged sessions, or move them up to the damage with --allow-damaged", e.Damaged[0], more)
}

// A mover is a move that is under way.
type mover struct {
	Move
	folder  *folder.Folder
	source  *sqlite.Store
	target  *postgres.Arrival
	report  Report
	total   int64               // number of sessions of the log, with those kept for their forks
	damaged map[int64]event.Seq // first damaged event of the sessions that have one, by their rows
}

// Run moves the sessions.
func (m Move) Run(ctx context.Context) (Report, error) {
	var report Report
	err := m.locked(func(f *folder.Folder) error {
		w := &mover{Move: m.withDefaults(), folder: f, damaged: make(map[int64]event.Seq)}
		err := w.run(ctx)
		report = w.report
		return err
	})
	return report, err
}

func (m Move) withDefaults() Move {
	if m.TargetKeyFile == "" {
		m.TargetKeyFile = m.KeyFile
	}
	if m.Progress == nil {
		m.Progress = func(string, int64, int64) {}
	}
	if m.AtStep == nil {
		m.AtStep = func(string) {}
	}
	return m
}

// locked calls a function while no engine can use the data folder.
func (m Move) locked(do func(*folder.Folder) error) error {
	if _, err := os.Stat(m.Store); err != nil {
		return err
	}
	f, err := folder.Open(m.Dir)
	if err != nil {
		return err
	}
	lock, got, err := f.TryLock()
	if err != nil {
		return err
	}
	if !got {
		return fmt.Errorf("data folder %s is in use by %s: end it first (abide stop ends no engine: end abide serve, or the programs that use sessions), because a session cannot change while it is moved", m.Dir, f.Holder())
	}
	return errors.Join(do(f), lock.Close())
}

// run does what is left to do.
func (m *mover) run(ctx context.Context) error {
	d, err := sqlite.DepartureOf(ctx, m.Store)
	switch {
	case err != nil:
		return err
	case d.Moved:
		return m.finish(ctx, d)
	}
	if err := m.open(ctx, d.Name); err != nil {
		return err
	}
	defer m.source.Close()
	defer m.target.Close()
	steps := []func(context.Context) error{m.survey, m.send, m.sendBeside, m.verify, m.depart, m.show}
	if m.DryRun {
		steps = []func(context.Context) error{m.survey, m.rehearse}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open opens both stores. name is the name of the move, if it was begun before.
func (m *mover) open(ctx context.Context, name string) (err error) {
	m.source, err = sqlite.Open(ctx, m.Store, sqlite.Options{KeyFile: m.KeyFile, Used: m.folder.HasSessions(), Warn: m.Warn})
	if err != nil {
		return err
	}
	to := postgres.Moving{Name: name, Look: m.DryRun}
	if !m.DryRun {
		to.Machine, err = m.folder.Machine()
		if err == nil {
			to.Name, err = m.source.NameMove(ctx)
		}
	}
	if err == nil {
		m.AtStep("named the move")
		m.target, err = m.arrive(ctx, to)
	}
	if err != nil {
		return errors.Join(err, m.source.Close())
	}
	m.report.Place = m.target.Place()
	return nil
}

// arrive connects to the database.
func (m *mover) arrive(ctx context.Context, to postgres.Moving) (*postgres.Arrival, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	to.Origin = m.Dir + " on " + host
	target, err := postgres.Arrive(ctx, m.To, eventlog.Options{KeyFile: m.TargetKeyFile, Warn: m.Warn}, to)
	if errors.Is(err, postgres.ErrMovedBefore) {
		err = fmt.Errorf("%w; the log in %s is a copy of one that was moved: delete it, or move it to another schema of the database (search_path=NAME in the URL)", err, m.Store)
	}
	return target, err
}

// page is the number of sessions that are looked at together. Tests make it smaller.
var page = 256

// pages calls a function for all sessions, in their order. after is the row of the last one of the
// pages before, and upTo that of the last one of this page, or the greatest there is.
func (m *mover) pages(ctx context.Context, do func(after, upTo int64, list []record.Entry) error) error {
	for after := int64(0); ; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		list, err := m.source.Entries(ctx, after, page)
		if err != nil {
			return err
		}
		upTo := int64(1<<63 - 1)
		if len(list) == page {
			upTo = list[page-1].Session
		}
		if err := do(after, upTo, list); err != nil || len(list) < page {
			return err
		}
		after = upTo
	}
}

// survey counts the sessions, and refuses to move one of which the database has another.
func (m *mover) survey(ctx context.Context) error {
	var taken []event.SessionID
	err := m.pages(ctx, func(_, _ int64, list []record.Entry) error {
		m.Progress("looking at sessions", m.total, 0)
		var ids []event.SessionID
		for _, e := range list {
			ids = append(ids, e.ID)
			if !e.Deleted {
				m.report.Sessions++
			}
		}
		m.total += int64(len(list))
		others, err := m.target.Others(ctx, ids)
		taken = append(taken, others...)
		return err
	})
	if err != nil || len(taken) == 0 {
		return err
	}
	more := ""
	if len(taken) > 1 {
		more = fmt.Sprintf(" and %d more", len(taken)-1)
	}
	return fmt.Errorf("%s has a session %s%s already, which did not come from this data folder: nothing was moved; delete them in one of the two places, or move to another schema of the database (search_path=NAME in the URL)",
		m.target.Place(), taken[0], more)
}

// send sends every session that has not arrived as it is.
func (m *mover) send(ctx context.Context) error {
	if err := m.target.Begin(ctx); err != nil {
		return err
	}
	done := int64(0)
	err := m.pages(ctx, func(after, upTo int64, list []record.Entry) error {
		missing, err := m.target.Missing(ctx, after, upTo, coming(list))
		if err != nil {
			return err
		}
		for len(missing) > 0 {
			m.Progress("moving sessions", done+int64(len(list)-len(missing)), m.total)
			m.AtStep("sending")
			n, err := m.sendSome(ctx, missing)
			if err != nil {
				return err
			}
			m.report.Sent += n
			missing = missing[n:]
			m.AtStep("sent")
		}
		done += int64(len(list))
		return nil
	})
	if err == nil && len(m.report.Damaged) > 0 && !m.AllowDamaged {
		err = &DamageError{m.report.Damaged}
	}
	return err
}

// coming returns sessions with their digests, as the source has them.
func coming(list []record.Entry) []postgres.Coming {
	all := make([]postgres.Coming, len(list))
	for i, e := range list {
		all[i] = postgres.Coming{Entry: e, Digest: e.Digest()}
	}
	return all
}

// rehearse reads every session as if it were sent.
func (m *mover) rehearse(ctx context.Context) error {
	done := int64(0)
	return m.pages(ctx, func(_, _ int64, list []record.Entry) error {
		m.Progress("reading sessions", done, m.total)
		for _, c := range coming(list) {
			for _, err := range m.records(ctx, &c) {
				if err != nil {
					return err
				}
			}
		}
		done += int64(len(list))
		return nil
	})
}

// sendBeside sends what belongs to sessions and is not in their log.
func (m *mover) sendBeside(ctx context.Context) error {
	m.Progress("moving jobs and costs", 0, 0)
	jobs, err := m.source.Jobs(ctx, "")
	if err != nil {
		return err
	}
	m.AtStep("sending jobs and costs")
	if err := m.target.PutBeside(ctx, jobs, m.source.CostRows(ctx)); err != nil {
		return err
	}
	m.AtStep("sent jobs and costs")
	return nil
}

// verify checks that the database has what was sent.
func (m *mover) verify(ctx context.Context) error {
	n, err := m.target.Verify(ctx, func(done int) { m.Progress("verifying sessions", int64(done), m.total) })
	if err != nil {
		return err
	}
	if int64(n) != m.total {
		return fmt.Errorf("%s has %d of %d sessions that were sent to it: it has lost some, as one that was restored from an older backup, or failed over to a standby that lagged", m.target.Place(), n, m.total)
	}
	m.AtStep("verified")
	return nil
}

// depart marks the log as moved. It is the moment from which the sessions are in the database.
func (m *mover) depart(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := m.source.Depart(ctx, m.target.Place()); err != nil {
		return err
	}
	m.AtStep("departed")
	return m.source.Close()
}

// finish shows the sessions of a log that is marked as moved.
func (m *mover) finish(ctx context.Context, d sqlite.Departure) (err error) {
	if m.DryRun {
		return fmt.Errorf("the sessions of data folder %s are in %s already: there is nothing to try", m.Dir, d.Place)
	}
	m.target, err = m.arrive(ctx, postgres.Moving{Name: d.Name, Known: true})
	if errors.Is(err, postgres.ErrUnknownMove) {
		return fmt.Errorf("the sessions of data folder %s were moved to %s on %s, and the database of --to does not have them: name that one", m.Dir, d.Place, d.At.Format("2006-01-02 15:04"))
	}
	if err != nil {
		return err
	}
	defer m.target.Close()
	m.report.Place, m.report.Before = m.target.Place(), d.Finished
	shown, err := m.target.Shown(ctx)
	if err != nil {
		return err
	}
	if m.total = int64(d.Sessions); !shown { // the database may have been restored from an older backup
		if err := m.verify(ctx); err != nil {
			return err
		}
	}
	return m.show(ctx)
}

// show makes the sessions appear, and notes that they have.
func (m *mover) show(ctx context.Context) error {
	m.Progress("showing sessions", 0, 0)
	n, err := m.target.Show(ctx)
	if err != nil {
		return err
	}
	m.report.Sessions = max(m.report.Sessions, n)
	m.AtStep("shown")
	return sqlite.FinishMove(ctx, m.Store)
}

// GiveUp removes what an unfinished move has brought to the database. The sessions stay where they
// are.
func (m Move) GiveUp(ctx context.Context) error {
	return m.locked(func(f *folder.Folder) error {
		w := &mover{Move: m.withDefaults(), folder: f}
		d, err := sqlite.DepartureOf(ctx, m.Store)
		switch {
		case err != nil:
			return err
		case d.Moved:
			return fmt.Errorf("the sessions of data folder %s are in %s already: the move cannot be given up", m.Dir, d.Place)
		case d.Name == "":
			return nil
		}
		w.target, err = w.arrive(ctx, postgres.Moving{Name: d.Name})
		if err != nil {
			return err
		}
		defer w.target.Close()
		return w.target.GiveUp(ctx)
	})
}
