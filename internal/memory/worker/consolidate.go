package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jobs"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/page"
	"github.com/abide-run/abide/internal/session"
)

// busyPause is the time after which a job that a person asked for is tried again if the
// session has an unfinished turn.
const busyPause = 30 * time.Second

// consolidate does a job of the kind JobConsolidate: it writes the findings of a session
// into pages, if the session has been idle for long enough or a person asked for it. It
// first extracts what was not extracted yet, up to the end of the job.
func (w *Worker) consolidate(ctx context.Context, j eventlog.Job) error {
	looked, err := w.host.Memory.Remembered(ctx, j.Session)
	if err != nil {
		return err
	}
	asked := j.From > 0
	switch {
	case asked && looked.Busy:
		return jobs.Later{At: time.Now().Add(busyPause)}
	case !asked:
		if err := w.isDue(ctx, j, looked); err != nil {
			return err
		}
	}
	for looked.Pointer < j.To && looked.Size > 0 {
		if err := w.extractNext(ctx, j, looked); err != nil {
			return err
		}
		if looked, err = w.host.Memory.Remembered(ctx, j.Session); err != nil {
			return err
		}
	}
	if looked.Waiting == 0 {
		return jobs.ErrMoot
	}
	return w.writePages(ctx, j, looked)
}

// isDue returns nil if a session has been idle for long enough, by the time of its last
// stored event. Otherwise it returns the error that puts the job off or removes it.
func (w *Worker) isDue(ctx context.Context, j eventlog.Job, looked session.Remembered) error {
	index, err := w.store.Session(ctx, j.Session)
	if err != nil {
		return err
	}
	idle := time.Duration(looked.Config.Memory.IdleMs) * time.Millisecond
	if looked.Busy && idle > 0 {
		return jobs.Later{At: time.Now().Add(idle)} // the turn ends with an event, which changes the due time
	}
	at, ever := memory.DueAt(memory.Session{Last: index.Modified, Waiting: looked.Waiting > 0}, idle)
	switch {
	case !ever:
		return jobs.ErrMoot
	case time.Until(at) > moment:
		return jobs.Later{At: at}
	case at.After(time.Now()):
		if err := pause(ctx, time.Until(at)); err != nil {
			return err
		}
		return w.isDue(ctx, j, looked) // there may be new events by now
	}
	return nil
}

// moment is the longest time that isDue waits instead of putting the job off. It is
// needed because the due time of a job is computed shortly before its event is stored.
const moment = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writePages writes the findings into pages, and records that.
func (w *Worker) writePages(ctx context.Context, j eventlog.Job, looked session.Remembered) error {
	found, err := w.collectFacts(ctx, j.Session, looked, 0)
	if err != nil {
		return err
	}
	w.pages.Lock()
	defer w.pages.Unlock()
	if now, err := w.host.Memory.Remembered(ctx, j.Session); err != nil {
		return err
	} else if now.Through != looked.Through { // the session was forgotten, or another job was faster
		return fmt.Errorf("session %s: %w", j.Session, session.ErrMoved)
	}
	d := event.MemoryConsolidatedData{JobID: j.ID, Through: found.through, Pages: []event.MemoryPage{}}
	b := w.books.For(looked.Config.LocalDirectory(), looked.Config.Memory.Where)
	var errs []error
	for kind, facts := range found.facts {
		if len(facts) > 0 {
			_, _, err := b.Page(kind)
			errs = append(errs, err)
		}
	}
	if errors.Join(errs...) != nil { // nothing is removed before what takes its place can be written
		found.replaced = nil
	}
	errs = nil
	for _, kind := range memory.Kinds {
		changed, err := addFacts(b, kind, found.facts[kind], found.replaced)
		if changed != nil {
			d.Pages = append(d.Pages, *changed)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return w.host.Memory.RecordConsolidation(ctx, j, looked, d)
}

// findings are what was found in a session and is on no page yet.
type findings struct {
	facts    map[string][]page.Fact // by kind, the oldest first
	replaced []string               // texts of the facts that they take the place of
	through  event.Seq              // position of the newest event that contains some
}

// collectFacts returns the findings since the last consolidation. If most is not zero, only
// those in the last so many events before the newest of them count.
func (w *Worker) collectFacts(ctx context.Context, id event.SessionID, looked session.Remembered, most event.Seq) (findings, error) {
	all := findings{facts: make(map[string][]page.Fact), through: looked.Through}
	if looked.Waiting == 0 {
		return all, nil
	}
	after := looked.Through
	if most > 0 {
		after = max(after, looked.Waiting-most)
	}
	for e, err := range w.store.Read(ctx, id, after) {
		if err != nil {
			return all, err
		}
		if e.Seq > looked.Waiting {
			break
		}
		if e.Type != event.MemoryExtracted {
			continue
		}
		if err := all.add(id, e); err != nil {
			return all, err
		}
	}
	return all, nil
}

// add adds the findings of an event. What they take the place of may be an earlier finding.
func (all *findings) add(id event.SessionID, e event.Event) error {
	d, err := event.As[event.MemoryExtractedData](e)
	if err != nil {
		return err
	}
	found, part, err := decodeFindings(d)
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	gone := found.Replaced()
	for kind, facts := range all.facts {
		all.facts[kind] = slices.DeleteFunc(facts, func(f page.Fact) bool {
			return slices.ContainsFunc(gone, func(text string) bool { return page.Same(text, f.Text) })
		})
	}
	for kind, more := range found.Facts(id, part, d.Day) {
		all.facts[kind] = append(all.facts[kind], more...)
	}
	all.replaced, all.through = append(all.replaced, gone...), e.Seq
	return nil
}

// mostEdits is the number of attempts to change a page that people edit at the same time.
const mostEdits = 10

// addFacts adds facts to a page, removes those that were replaced, and describes the change.
// It returns nil if nothing has changed.
func addFacts(b *book.Book, name string, facts []page.Fact, replaced []string) (changed *event.MemoryPage, err error) {
	if len(facts) == 0 && len(replaced) == 0 {
		return nil, nil
	}
	for range mostEdits {
		if changed, err = tryAddFacts(b, name, facts, replaced); !errors.Is(err, book.ErrChanged) {
			break
		}
	}
	return changed, err
}

// tryAddFacts is one attempt of addFacts. Its error wraps book.ErrChanged if somebody changed
// the page meanwhile.
func tryAddFacts(b *book.Book, name string, facts []page.Fact, replaced []string) (*event.MemoryPage, error) {
	p, was, err := b.Page(name)
	if err != nil {
		return nil, err
	}
	next, gone := p.Supersede(replaced)
	more, dropped, err := next.Add(facts)
	switch {
	case errors.Is(err, page.ErrUnchanged) && len(gone) == 0:
		return nil, nil
	case errors.Is(err, page.ErrUnchanged):
	case err != nil:
		return nil, fmt.Errorf("%s: %w", b.Path(name), err)
	default:
		next = more
	}
	version, err := b.Write(name, next.Format(), was)
	if errors.Is(err, page.ErrUnchanged) { // it takes the place of itself
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &event.MemoryPage{Path: b.Path(name), Version: version, Added: len(facts), Dropped: len(dropped), Superseded: len(gone)}, nil
}
