package eventlogtest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// noon is when jobs of the suite are due: stores keep microseconds.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 123000, time.UTC)

// job makes a row.
func job(id string, session event.SessionID, from event.Seq, due time.Time) eventlog.Job {
	return eventlog.Job{ID: id, Kind: eventlog.JobExtract, Session: session, Epoch: "e", From: from, To: from + 9, Due: due}
}

func (f *fixture) change(verb eventlog.JobVerb, jobs ...eventlog.Job) {
	f.Helper()
	list := make([]eventlog.JobChange, len(jobs))
	for i, j := range jobs {
		list[i] = eventlog.JobChange{Verb: verb, Job: j}
	}
	if err := f.ChangeJobs(f.Context(), list...); err != nil {
		f.Fatal(err)
	}
}

// take takes a row and returns its id, or when there will be one.
func (f *fixture) take(holder string, now time.Time) (string, time.Time) {
	f.Helper()
	j, next, err := f.TakeJob(f.Context(), holder, now, now.Add(time.Minute))
	if err != nil {
		f.Fatal(err)
	}
	if j == nil {
		return "", next
	}
	if j.Holder != holder || !j.Due.Equal(now.Add(time.Minute)) {
		f.Errorf("%s was given %+v", holder, *j)
	}
	return j.ID, next
}

// jobIDs lists rows, as words.
func (f *fixture) jobIDs(session event.SessionID) string {
	f.Helper()
	list, err := f.Jobs(f.Context(), session)
	if err != nil {
		f.Fatal(err)
	}
	var ids []string
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return strings.Join(ids, " ")
}

// sameJob compares rows; times are the same if they mean the same.
func sameJob(a, b eventlog.Job) bool {
	same := a.Due.Equal(b.Due)
	a.Due, b.Due = time.Time{}, time.Time{}
	return same && a == b
}

func jobRows(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "x")
	want := job("1", "s", 1, noon)
	want.Attempts, want.Error = 2, "it failed"
	f.change(eventlog.AddJob, want)
	got, err := f.Job(t.Context(), "1")
	if err != nil || !sameJob(got, want) {
		t.Errorf("row = %+v, %v; want %+v", got, err, want)
	}
	want.To, want.Attempts, want.Due, want.Error = 30, 3, noon.Add(time.Hour), "again"
	f.change(eventlog.PutJob, want)
	if got, _ := f.Job(t.Context(), "1"); !sameJob(got, want) {
		t.Errorf("row = %+v, want %+v", got, want)
	}
	f.change(eventlog.DropJob, want, job("unknown", "s", 1, noon))
	_, err = f.Job(t.Context(), "1")
	f.fails("job that is gone", err, eventlog.ErrNoJob)
	f.change(eventlog.PutJob, want)
	if ids := f.jobIDs(""); ids != "" {
		t.Errorf("rows = %q: putting one that is gone must not bring it back", ids)
	}
	f.fails("add to nothing", f.ChangeJobs(t.Context(),
		eventlog.JobChange{Job: job("2", "s", 1, noon)}, eventlog.JobChange{Job: job("3", "nobody", 1, noon)}), eventlog.ErrNotFound)
	if ids := f.jobIDs(""); ids != "" {
		t.Errorf("rows = %q: of changes that were refused nothing is left", ids)
	}
}

func jobsWithAppends(t *testing.T, f *fixture) {
	add := func(id string, from event.Seq) []eventlog.JobChange {
		return []eventlog.JobChange{{Job: job(id, "s", from, noon)}}
	}
	b := batch(eventlog.End{}, "a")
	b.Jobs = add("1", 1)
	end, err := f.Append(t.Context(), "s", b)
	if err != nil {
		t.Fatal(err)
	}
	lost := batch(eventlog.End{}, "b")
	lost.Jobs = append(add("2", 2), eventlog.JobChange{Verb: eventlog.DropJob, Job: eventlog.Job{ID: "1"}})
	_, err = f.Append(t.Context(), "s", lost)
	f.fails("append at the wrong end", err, eventlog.ErrConflict)
	if ids := f.jobIDs("s"); ids != "1" {
		t.Errorf("rows = %q: an append that was refused changes none", ids)
	}
	b = batch(end, "c")
	b.Jobs = lost.Jobs
	if _, err = f.Append(t.Context(), "s", b); err != nil {
		t.Fatal(err)
	}
	if ids := f.jobIDs("s"); ids != "2" {
		t.Errorf("rows = %q, want the one that the append added", ids)
	}
}

func jobsOnce(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "x")
	f.add("other", eventlog.End{}, "x")
	f.change(eventlog.AddJob, job("1", "s", 1, noon))
	f.change(eventlog.AddJob, job("2", "s", 1, noon.Add(-time.Hour)), job("3", "s", 2, noon), job("4", "other", 1, noon))
	other := job("5", "s", 1, noon)
	other.Kind = eventlog.JobConsolidate
	f.change(eventlog.AddJob, other)
	if ids := f.jobIDs(""); ids != "1 3 4 5" {
		t.Errorf("rows = %q, want 1 3 4 5", ids)
	}
	aside := job("1", "s", 1, time.Time{})
	aside.Attempts, aside.Error = 5, "hopeless"
	f.change(eventlog.PutJob, aside)
	if ids := f.jobIDs(""); ids != "3 4 5 1" {
		t.Errorf("rows = %q: what is set aside comes last", ids)
	}
	f.change(eventlog.AddJob, job("6", "s", 1, noon.Add(-time.Hour)))
	got, err := f.Job(t.Context(), "1")
	if err != nil || !got.Due.Equal(noon.Add(-time.Hour)) || got.Attempts != 5 {
		t.Errorf("row = %+v, %v; want it due again, with its attempts", got, err)
	}
}

func jobsTaken(t *testing.T, f *fixture) {
	for _, s := range []event.SessionID{"a", "b", "c"} {
		f.add(s, eventlog.End{}, "x")
	}
	if id, next := f.take("h", noon); id != "" || !next.IsZero() {
		t.Errorf("took %q, next %v; there is nothing", id, next)
	}
	f.change(eventlog.AddJob, job("late", "a", 1, noon.Add(time.Second)), job("early", "b", 1, noon.Add(-time.Second)), job("aside", "c", 1, time.Time{}),
		job("0", "b", 2, noon), job("earliest", "c", 2, noon.Add(-time.Minute)))
	for _, want := range []string{"earliest", "early", "0"} {
		if id, _ := f.take("h", noon); id != want {
			t.Errorf("took %q, want %q: the one that has been due longest", id, want)
		}
	}
	f.change(eventlog.DropJob, job("earliest", "c", 2, noon), job("0", "b", 2, noon))
	if id, next := f.take("h", noon); id != "" || !next.Equal(noon.Add(time.Second)) {
		t.Errorf("took %q, next %v; want to wait for the late one", id, next)
	}
	if id, _ := f.take("h", noon.Add(time.Second)); id != "late" {
		t.Errorf("took %q at its very time, want the late one", id)
	}
	if id, next := f.take("h", noon.Add(2*time.Second)); id != "" || !next.Equal(noon.Add(time.Minute)) {
		t.Errorf("took %q, next %v; want to wait for the end of the first lease", id, next)
	}
	if id, _ := f.take("other", noon.Add(time.Minute)); id != "early" {
		t.Errorf("took %q, want the one whose lease is over", id)
	}
	late := job("early", "b", 1, noon)
	late.Holder, late.Error = "h", "too late"
	f.change(eventlog.PutJob, late)
	if got, _ := f.Job(t.Context(), "early"); got.Holder != "other" || got.Error != "" {
		t.Errorf("row = %+v: who lost the lease changes nothing", got)
	}
	late.Holder = "other"
	f.change(eventlog.PutJob, late)
	if got, _ := f.Job(t.Context(), "early"); got.Holder != "" || got.Error != "too late" || !got.Due.Equal(noon) {
		t.Errorf("row = %+v, want it given back", got)
	}
}

func jobsRaced(t *testing.T, f *fixture) {
	f.add("s", eventlog.End{}, "x")
	const n = 20
	for i := range n {
		f.change(eventlog.AddJob, job(string(rune('a'+i)), "s", event.Seq(i+1), noon))
	}
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				j, _, err := f.TakeJob(t.Context(), "h", noon, noon.Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				if j == nil || err != nil {
					return
				}
				mu.Lock()
				all = append(all, j.ID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n {
		t.Errorf("taken: %v, want each of %d once", all, n)
	}
}

func jobsDeleted(t *testing.T, f *fixture) {
	end := f.add("s", eventlog.End{}, "x")
	f.add("other", eventlog.End{}, "x")
	f.branch("child", "s", end, "y")
	f.change(eventlog.AddJob, job("1", "s", 1, noon), job("2", "other", 1, noon.Add(time.Second)))
	if ids := f.jobIDs("child"); ids != "" {
		t.Errorf("rows of the fork = %q, want none of its parent's", ids)
	}
	f.fails("delete", f.Delete(t.Context(), "s"), nil)
	if ids := f.jobIDs(""); ids != "2" {
		t.Errorf("rows = %q, want those of the other session alone", ids)
	}
}
