package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// A server of the next version adds to the tables and works beside one of this version, also after
// that was started again, for as long as it says that this version may use them.
func TestServersOfNeighbouringVersionsShareALog(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("mixed")
	old := join(t, url, "old", patient)
	end := tell(t, old, "s", eventlog.End{}, "a")
	c.Exec(t, "mixed", fmt.Sprintf("UPDATE version SET version = %d; ALTER TABLE sessions ADD COLUMN further bigint NOT NULL DEFAULT 7; ALTER TABLE servers ADD COLUMN further bytea; CREATE TABLE further (id bigint)", schemaVersion+1))
	again := join(t, url, "again", patient)
	end = tell(t, old, "s", end, "b")
	tell(t, again, "t", eventlog.End{}, "a", "b")
	if err := old.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	again.claimsSoon(t, "s")
	tell(t, again, "s", end, "c")
	if got := said(t, old, "s"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the session says %q", got)
	}
	c.Exec(t, "mixed", fmt.Sprintf("UPDATE meta SET oldest = %d", schemaVersion+1))
	_, err := Join(t.Context(), url, eventlog.Options{KeyFile: keyFile()}, Server{Machine: "m", Address: "late"}, patient)
	if err == nil || !strings.Contains(err.Error(), "use a newer abide") {
		t.Errorf("a server that is too old joins: %v", err)
	}
	tell(t, again, "u", eventlog.End{}, "a")
}

// The clock of a server may be an hour ahead of that of the next: changes keep their order, and a job
// is done by whoever owns its session, whatever the clocks say of the time that it was taken for.
func TestServersWhoseClocksDiffer(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("clocks")
	ahead := join(t, url, "ahead", silent)
	ahead.write.clock = time.Now().Add(time.Hour).UnixMicro() // its next change is later than that
	end := beginS(t, ahead)
	now := time.Now()
	if job, _, err := ahead.TakeJob(t.Context(), "h", now.Add(time.Hour), now.Add(time.Hour+time.Minute)); err != nil || job == nil {
		t.Fatalf("the job is %v, %v", job, err)
	}
	behind := join(t, url, "behind", patient)
	for _, at := range []time.Time{now, now.Add(24 * time.Hour)} {
		if job, _, err := behind.TakeJob(t.Context(), "h", at, at.Add(time.Minute)); err != nil || job != nil {
			t.Errorf("a job of another server's session is taken: %v, %v", job, err)
		}
	}
	last := func() time.Time {
		s, err := behind.Session(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return s.Modified
	}
	before := last()
	if err := behind.Close(); err != nil {
		t.Fatal(err)
	}
	behind = join(t, url, "behind", strict)
	behind.write.clock = 0 // as if its clock had never seen the other's
	behind.claimsSoon(t, "s")
	if job, _, err := behind.TakeJob(t.Context(), "h", now, now.Add(time.Minute)); err != nil || job == nil {
		t.Errorf("the job of the dead server, which was taken by a clock that is ahead, is %v, %v", job, err)
	}
	tell(t, behind, "s", end, "b")
	if after := last(); !after.After(before) {
		t.Errorf("the session was changed at %v and then at %v", before, after)
	}
}

// The clock of the database takes no part in anything.
func TestTheClockOfTheDatabaseIsNotAsked(t *testing.T) {
	clock := regexp.MustCompile(`(?i)\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\(\)|\bcurrent_(timestamp|time|date)\b|\blocaltime`)
	var files []string
	for _, pattern := range []string{"*.go", "migrations/*.sql"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		files = append(files, found...)
	}
	ours := strings.NewReplacer("time.Now()", "", "w.now()", "", "(w *writing) now()", "")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if clock.MatchString(ours.Replace(line)) {
				t.Errorf("%s:%d asks the database for the time: %s", name, n+1, line)
			}
		}
	}
}
