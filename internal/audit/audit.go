// Package audit decides from what is stored whether abide has kept its promises:
// the invariants I1 to I9 of docs/AUDIT.md, for every session.
//
//   - It is independent: it shares no code with the engine, neither its reading of
//     the folder nor any decision, so that the two cannot be wrong together. What
//     it knows of events and records is written down here once more.
//   - It changes nothing, and works beside a running engine: it sees the log as it
//     was at one moment.
//   - It streams: what it holds grows with what is open in the session at hand, and
//     by a few bytes for each request of it, not with the log.
//   - What is unfinished is not broken: a folder whose engine was killed has open
//     turns, questions and commands, and all of them are as they should be.
//   - What stored state does not decide is told as unknown, never as kept.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// Options say how to look. The zero value is usable.
type Options struct {
	Log   string    // path of the log; abide.db in the data folder if empty
	Now   time.Time // the present; the time of the clock if zero
	Once  []string  // further tools that must never be begun again
	Again []string  // further tools that may be
	// Workspaces are the data folders of workspaces in which sessions have worked.
	Workspaces []string
	// Progress is told how many of how many events were read, now and then.
	Progress func(done, total int64)
}

// An auditor looks at one data folder.
type auditor struct {
	ctx     context.Context
	folder  *stored.Folder
	options Options
	found   *findings
	report  *Report
	total   int64
	folders map[string]bool // names of the folders that no session has claimed yet
	leaving map[string]bool // sessions that are being deleted, and the names of their folders
	places  places          // records in workspaces
	waited  bool            // true if the engine was given a moment to record what it has just seen
}

// attempts is how often a folder is read anew because an engine began to write to
// it meanwhile. From the second time on it is read as one that is written to.
const attempts = 3

// Run looks at a data folder. The error tells that this could not be done.
func Run(ctx context.Context, dir string, options Options) (*Report, error) {
	if options.Now.IsZero() {
		options.Now = time.Now()
	}
	for n := 1; ; n++ {
		report, err := run(ctx, dir, options)
		if !errors.Is(err, stored.ErrChanged) || n == attempts {
			return report, err
		}
	}
}

func run(ctx context.Context, dir string, options Options) (report *Report, err error) {
	folder, err := stored.Open(ctx, dir, options.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	records, err := openPlaces(options.Workspaces)
	if err != nil {
		return nil, err
	}
	a := &auditor{
		ctx: ctx, folder: folder, options: options, places: records, found: newFindings(), folders: make(map[string]bool), leaving: make(map[string]bool),
		report: &Report{Folder: folder.Dir(), Engine: folder.Engine()},
	}
	for _, part := range []func(context.Context) error{a.count, a.listFolders, a.sessions, a.strays, a.processes, a.elsewhere} {
		if err := part(ctx); err != nil {
			return nil, fmt.Errorf("audit %s: %w", folder.Dir(), err)
		}
	}
	a.leftFolders()
	if err := folder.Check(); err != nil {
		return nil, fmt.Errorf("audit %s: %w", folder.Dir(), err)
	}
	a.found.report(a.report)
	return a.report, nil
}

// count finds out how much there is to do.
func (a *auditor) count(ctx context.Context) (err error) {
	_, a.total, err = a.folder.Count(ctx)
	return err
}

// step is how many events are read between two reports of progress.
const step = 4096

// progress counts an event.
func (a *auditor) progress(own bool) {
	if !own {
		return
	}
	if a.report.Events++; a.options.Progress != nil && a.report.Events%step == 0 {
		a.options.Progress(a.report.Events, max(a.total, a.report.Events))
	}
}

// listFolders notes which sessions have a folder, and which are being deleted.
func (a *auditor) listFolders(context.Context) error {
	deletions, err := a.folder.Deletions()
	if err != nil {
		return err
	}
	for _, session := range deletions {
		a.leaving[session], a.leaving[stored.FolderOf(session)] = true, true
	}
	for name, err := range a.folder.SessionFolders() {
		if err != nil {
			return err
		}
		a.folders[name] = true
	}
	return nil
}

// sessions looks at every session.
func (a *auditor) sessions(ctx context.Context) error {
	for row, err := range a.folder.Sessions(ctx) {
		if err == nil {
			err = a.session(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// session looks at one session. One that was deleted is only there for its forks.
func (a *auditor) session(ctx context.Context, row stored.Session) error {
	s := newScene(a.found, a.folder, a.places, a.options, row)
	w := &walk{auditor: a, scene: s, sets: newRuleSets(), bare: row.Deleted}
	if !row.Deleted {
		delete(a.folders, stored.FolderOf(row.Name))
		a.report.Sessions++
	}
	if row.Damaged != 0 && !row.Deleted {
		s.broken("index.quarantined", row.Damaged, "the session was set aside as damaged: %s", row.Reason)
	}
	before := len(a.found.list)
	if err := w.run(ctx); err != nil || row.Deleted {
		return err
	}
	if w.blind {
		s.unknown("session.unread", max(row.Seq, 1), "not all of the session can be read, so what follows from its events is not decided")
		return nil
	}
	s.own = true
	w.sets.end(s)
	if err := a.confirm(row.Name, before); err != nil {
		return err
	}
	a.index(s)
	if err := a.jobs(ctx, s); err != nil {
		return err
	}
	return a.related(s, w.sets.agents)
}

// confirm drops what was found about the processes of a session since there were so
// many findings, if the session was deleted meanwhile: the log is of one moment, and
// the folders of processes are of a later one.
func (a *auditor) confirm(session string, before int) error {
	ofProcess := func(f Finding) bool {
		return strings.HasPrefix(f.Rule, "process.") || strings.HasPrefix(f.Rule, "task.")
	}
	if !a.report.Engine || !slices.ContainsFunc(a.found.list[before:], ofProcess) {
		return nil
	}
	exists, err := a.folder.Exists(a.ctx, session)
	if err == nil && !exists {
		a.found.list = append(a.found.list[:before], slices.DeleteFunc(a.found.list[before:], ofProcess)...)
	}
	return err
}

// processes looks at the record of every process.
func (a *auditor) processes(ctx context.Context) error {
	for id, err := range a.folder.Processes() {
		if err != nil {
			return err
		}
		p, found, err := a.folder.Process(id)
		switch {
		case !found:
			continue // it was removed meanwhile
		case err != nil:
			a.found.add(Finding{Rule: "process.unreadable", Process: id, Text: fmt.Sprintf("the record %s cannot be read: %v", id, err)})
			continue
		}
		a.report.Processes++
		before := len(a.found.list)
		if err := a.record(p); err != nil {
			return err
		}
		a.signals(p)
		if a.report.Engine && !a.folder.HasProcess(id) { // it was removed while it was read
			a.found.list = a.found.list[:before]
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// leftFolders looks at folders that belong to no session.
func (a *auditor) leftFolders() {
	var names []string
	for name := range a.folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		a.left(Finding{Rule: "folder.orphaned", Session: name, Text: fmt.Sprintf("there is a folder sessions/%s, and no such session", name)})
	}
}

// left notes that something was left behind. A deletion that was written down is
// only unfinished. A running engine may be about to remove it, or has just made it.
func (a *auditor) left(f Finding) {
	switch {
	case a.leaving[f.Session]:
	case a.report.Engine:
		a.found.doubt(f)
	default:
		a.found.add(f)
	}
}

// exists reports whether there is a session of that name, or is now.
func (a *auditor) exists(name string) (bool, error) {
	_, found, err := a.folder.Named(a.ctx, name)
	if err != nil || found || !a.report.Engine {
		return found, err
	}
	return a.folder.Exists(a.ctx, name)
}
