package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
)

func TestAStoreOfTheFirstVersionGetsItsJobs(t *testing.T) {
	path := makeDamageStore(t)
	tamper(t, path, toVersion3+"DROP INDEX sessions_modified; DROP TABLE jobs; PRAGMA user_version = 1")
	s := open(t, path)
	if got, err := read(t, s, "victim"); err != nil || len(got) != 8 {
		t.Errorf("victim says %q, %v", got, err)
	}
	addJob(t, s, "1")
	if list, err := s.Jobs(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("jobs = %v, %v", list, err)
	}
}

func addJob(t *testing.T, s *Store, id string) {
	t.Helper()
	err := s.ChangeJobs(t.Context(), eventlog.JobChange{Job: eventlog.Job{ID: id, Kind: eventlog.JobExtract, Session: "victim", From: 1, Due: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever had the store open is fenced: its leases are over, however long they were.
func TestTakingTheStoreOverEndsAllLeases(t *testing.T) {
	path := makeDamageStore(t)
	before := open(t, path)
	addJob(t, before, "1")
	now := time.Now()
	if j, _, err := before.TakeJob(t.Context(), "before", now, now.Add(time.Hour)); err != nil || j == nil {
		t.Fatalf("took %v, %v", j, err)
	}
	after := open(t, path)
	j, _, err := after.TakeJob(t.Context(), "after", time.Now(), now.Add(time.Hour))
	if err != nil || j == nil || j.ID != "1" {
		t.Errorf("took %v, %v; want the job of the store that was taken over", j, err)
	}
	if _, _, err := before.TakeJob(t.Context(), "before", now.Add(2*time.Hour), now.Add(3*time.Hour)); err == nil {
		t.Error("a fenced store gave a job away")
	}
}

func TestTheTimerIsAnsweredByAnIndex(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	var id, parent, unused int
	var plan string
	err := s.reading.QueryRow("EXPLAIN QUERY PLAN SELECT min(due) FROM jobs WHERE due IS NOT NULL").Scan(&id, &parent, &unused, &plan)
	if want := "SEARCH jobs USING COVERING INDEX jobs_due"; err != nil || len(plan) < len(want) || plan[:len(want)] != want {
		t.Errorf("plan = %q, %v; want %s", plan, err, want)
	}
}

const indexLeaf = 0x0a // the first byte of a page with jobs

func TestABrokenPageOfTheJobsStopsNoSession(t *testing.T) {
	path := makeDamageStore(t)
	s := open(t, path)
	addJob(t, s, "a job that will be broken")
	session, err := s.Session(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	overwritePage(t, path, "a job that will be broken", indexLeaf)
	s = open(t, path)
	if _, _, err := s.TakeJob(t.Context(), "h", time.Now(), time.Now().Add(time.Hour)); err == nil {
		t.Error("who wants to do the jobs is not told")
	}
	b := batch(session.End, "goes on")
	b.Jobs = []eventlog.JobChange{{Job: eventlog.Job{ID: "2", Kind: eventlog.JobExtract, Session: "victim", From: 2, Due: time.Now()}}}
	if _, err := s.Append(t.Context(), "victim", b); err != nil {
		t.Errorf("append: %v", err)
	}
	if got, err := read(t, s, "victim"); err != nil || len(got) != 9 {
		t.Errorf("victim says %q, %v", got, err)
	}
	if err := s.Delete(t.Context(), "victim"); err != nil {
		t.Errorf("delete: %v", err)
	}
}
