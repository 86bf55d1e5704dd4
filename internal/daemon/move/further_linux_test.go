package move

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// stopAt returns the move so that it ends at a step, after something was done.
func (m Move) stopAt(step string, do func()) Move {
	m.AtStep = func(at string) {
		if at == step && do != nil {
			once := do
			do = nil
			once()
		}
	}
	return m
}

func refused(t testing.TB, m Move, want ...string) {
	t.Helper()
	_, err := m.Run(t.Context())
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the move ends with %v, want %q", err, text)
		}
	}
}

// Until the old log is marked as moved, nothing of the sessions is seen, claimed, counted or done.
func TestWhatHasNotArrivedAsAWholeIsHidden(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 3)
	want := before(t, m)
	looked := false
	m = m.stopAt("verified", func() {
		looked = true
		var warned string
		s, err := postgres.Open(t.Context(), m.To, eventlog.Options{KeyFile: m.KeyFile, Warn: func(line string) { warned += line }})
		must(t, err)
		defer s.Close()
		if !strings.Contains(warned, "are being moved") {
			t.Errorf("the store warns: %q", warned)
		}
		got := read(t, s)
		if len(got.Sessions)+len(got.Jobs)+len(got.Costs) != 0 {
			t.Errorf("the store shows %+v", got)
		}
		if _, err := s.Session(t.Context(), "parent"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("a hidden session is found: %v", err)
		}
		if _, err := s.Append(t.Context(), "parent", eventlog.Batch{Events: []event.Event{say(t, "mine")}}); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("the id of a hidden session was given away: %v", err)
		}
		if job, _, err := s.TakeJob(t.Context(), "me", want.Jobs[0].Due.Add(1), want.Jobs[0].Due.Add(2)); job != nil || err != nil {
			t.Errorf("a hidden job was taken: %v, %v", job, err)
		}
		found, err := s.Search(t.Context(), eventlog.Search{Text: "hello"})
		if err != nil || len(found.Matches) != 0 || found.Behind != 0 {
			t.Errorf("a search finds %+v, %v", found, err)
		}
		if un, err := s.Uncounted(t.Context()); err != nil || len(un) != 0 {
			t.Errorf("sessions to be counted: %v, %v", un, err)
		}
	})
	_, err := m.Run(t.Context())
	must(t, err)
	if !looked {
		t.Error("nobody has looked")
	}
	checkMoved(t, m, want)
	s := m.openTarget(t)
	defer s.Close()
	found, err := s.Search(t.Context(), eventlog.Search{Text: "fork-of-gone"})
	if err != nil || len(found.Matches) == 0 {
		t.Errorf("after the move, a search finds %+v, %v", found, err)
	}
}

// Servers that share the database go on with what has arrived: that of the data folder with the
// sessions that work there, and any with those that work elsewhere.
func TestMovedSessionsAreBoundToTheirDataFolder(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 0)
	f, err := folder.Open(m.Dir)
	must(t, err)
	machine, err := f.Machine()
	must(t, err)
	join := func(machine string) *postgres.Store {
		s, err := postgres.Join(t.Context(), m.To, eventlog.Options{KeyFile: m.KeyFile}, postgres.Server{Machine: machine, Address: "of " + machine}, postgres.Pace{})
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	another := join("another")
	m = m.stopAt("verified", func() {
		if due, err := another.ClaimDue(t.Context(), 10); err != nil || len(due) > 0 {
			t.Errorf("a server claims what is hidden: %v, %v", due, err)
		}
	})
	_, err = m.Run(t.Context())
	must(t, err)
	if err := another.Claim(t.Context(), "active"); !errors.As(err, new(*eventlog.Away)) {
		t.Errorf("another server claims a session of the folder: %v", err)
	}
	must(t, another.Claim(t.Context(), "elsewhere"))
	own := join(machine)
	due, err := own.ClaimDue(t.Context(), 100)
	must(t, err)
	found := false
	for _, s := range due {
		found = found || s.ID == "active"
	}
	if !found {
		t.Errorf("the server of the folder claims %v", due)
	}
	must(t, own.Claim(t.Context(), "agent"))
	if !own.Owns("parent") {
		t.Error("an agent was not claimed with its session")
	}
}

func TestAMoveIsRefusedWhileSomebodyUsesTheFolder(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 1)
	f, err := folder.Open(m.Dir)
	must(t, err)
	lock, _, err := f.TryLock()
	must(t, err)
	refused(t, m, "is in use by", "end it first")
	must(t, lock.Close())
	_, err = m.Run(t.Context())
	must(t, err)
}

func TestASessionFromElsewhereIsNotReplaced(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 1)
	want := before(t, m)
	s := m.openTarget(t)
	end := add(t, s, "parent", eventlog.Info{})
	must(t, s.Close())
	try := m
	try.DryRun = true
	refused(t, try, `has a session parent already`, "nothing was moved")
	refused(t, m, `has a session parent already`, "nothing was moved", "search_path")
	s = m.openTarget(t)
	if got, err := s.Session(t.Context(), "parent"); err != nil || got.End != end {
		t.Errorf("the session of the database is %+v, %v", got, err)
	}
	must(t, s.Delete(t.Context(), "parent"))
	must(t, s.Close())
	same(t, before(t, m), want)
	_, err := m.Run(t.Context())
	must(t, err)
}

// What changes in the folder between two attempts is as it is in the end.
func TestWhatChangesBetweenTwoAttemptsIsMovedAsItIs(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 10)
	if !killAt(t, m, 45, 4) {
		t.Fatal("the move was done")
	}
	s := m.openSource(t)
	end, err := s.Session(t.Context(), "plain-00001")
	must(t, err)
	_, err = s.Append(t.Context(), "plain-00001", eventlog.Batch{After: end.End, Events: []event.Event{say(t, "more")}})
	must(t, err)
	must(t, s.Delete(t.Context(), "plain-00002"))
	must(t, s.PutSecrets(t.Context(), "plain-00003", eventlog.Secret{Name: "env", Value: []byte("another value")}))
	must(t, s.ChangeJobs(t.Context(), eventlog.JobChange{Verb: eventlog.DropJob, Job: eventlog.Job{ID: "job-plain-00004"}}))
	must(t, s.Delete(t.Context(), "parent"))
	must(t, s.Delete(t.Context(), "fork-of-gone"))
	add(t, s, "new", eventlog.Info{})
	add(t, s, "plain-00002", eventlog.Info{}) // the same id, another session
	must(t, s.Close())
	want := before(t, m)
	r, err := m.Run(t.Context())
	must(t, err)
	if r.Sent >= r.Sessions {
		t.Errorf("everything was sent again: %+v", r)
	}
	checkMoved(t, m, want)
}

func TestAFolderThatWasEmptiedBetweenTwoAttemptsIsEmptyThere(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 2)
	if !killAt(t, m, 30, 4) {
		t.Fatal("the move was done")
	}
	s := m.openSource(t)
	for id := range read(t, s).Sessions {
		must(t, s.Delete(t.Context(), id))
	}
	must(t, s.Close())
	want := before(t, m)
	_, err := m.Run(t.Context())
	must(t, err)
	checkMoved(t, m, want)
}

// A database that has lost sessions after the folder was marked shows none of them.
func TestADatabaseThatHasLostSessionsShowsNone(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.SchemaURL("lost"))
	fill(t, m, 2)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := m.stopAt("departed", cancel).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the move ends with %v", err)
	}
	if _, err := sqlite.Open(t.Context(), m.Store, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "are being moved to") {
		t.Errorf("the old log opens with %v", err)
	}
	c.Exec(t, "lost", "CREATE TABLE kept AS SELECT * FROM arrivals; DELETE FROM arrivals WHERE origin = 2")
	refused(t, m, "it has lost some")
	if n := countShown(t, m); n != 0 {
		t.Errorf("the database shows %d sessions", n)
	}
	c.Exec(t, "lost", "INSERT INTO arrivals SELECT * FROM kept WHERE origin = 2; DROP TABLE kept")
	_, err := m.Run(t.Context())
	must(t, err)
	if n := countShown(t, m); n == 0 {
		t.Error("the database shows no session")
	}
}

func TestAnAbandonedMoveLeavesNothing(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.SchemaURL("abandoned"))
	fill(t, m, 5)
	want := before(t, m)
	if !killAt(t, m, 25, 4) {
		t.Fatal("the move was done")
	}
	must(t, m.GiveUp(t.Context()))
	for _, table := range []string{"sessions", "records", "secrets", "arrivals", "moves", "arriving_jobs", "arriving_costs"} {
		if n := c.Exec(t, "abandoned", "SELECT count(*) FROM "+table); n != "0" {
			t.Errorf("%s has %s rows", table, n)
		}
	}
	same(t, before(t, m), want)
	_, err := m.Run(t.Context())
	must(t, err)
	checkMoved(t, m, want)
	if err := m.GiveUp(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be given up") {
		t.Errorf("a finished move is given up: %v", err)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.SchemaURL("dry"))
	fill(t, m, 5)
	want := before(t, m)
	m.DryRun = true
	r, err := m.Run(t.Context())
	if err != nil || r.Sessions != len(want.Sessions) || r.Bytes == 0 {
		t.Errorf("it says %+v, %v", r, err)
	}
	if n := c.Exec(t, "public", "SELECT count(*) FROM pg_namespace WHERE nspname = 'dry'"); n != "0" {
		t.Error("it has made a schema")
	}
	same(t, before(t, m), want)
}

// The database dies in the middle of the move.
func TestADatabaseThatDiesInTheMiddleLosesNothing(t *testing.T) {
	for _, step := range []string{"record", "sent", "sending jobs and costs", "verified", "departed"} {
		t.Run(step, func(t *testing.T) {
			c := postgrestest.Start(t)
			m := newMove(t, c.URL())
			fill(t, m, 3)
			want := before(t, m)
			_, err := m.stopAt(step, func() { c.Down(t, syscall.SIGQUIT) }).Run(t.Context())
			if err == nil && step != "verified" || err != nil && !strings.Contains(err.Error(), "postgres database") {
				t.Errorf("the move ends with %v", err)
			}
			c.Up(t)
			if step != "departed" && step != "verified" {
				same(t, before(t, m), want)
			}
			_, err = m.Run(t.Context())
			must(t, err)
			checkMoved(t, m, want)
		})
	}
}

// One damaged session stops the move, is named, and is moved up to the damage if that is wanted.
func TestADamagedSessionStopsTheMove(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 3)
	s := m.openSource(t)
	must(t, s.Quarantine(t.Context(), "plain-00002", &eventlog.Damage{Session: "plain-00002", Seq: 4, Reason: "somebody said so"}))
	must(t, s.Close())
	flip(t, m.Store, "the fork fork-in-the-middle")
	flip(t, m.Store, "hello from plain-00001")
	want := before(t, m)
	for range 2 {
		r, err := m.Run(t.Context())
		damage, is := errors.AsType[*DamageError](err)
		if !is || len(damage.Damaged) != 3 || len(r.Damaged) != 3 {
			t.Fatalf("the move ends with %v", err)
		}
	}
	same(t, before(t, m), want)
	m.AllowDamaged = true
	r, err := m.Run(t.Context())
	if err != nil || len(r.Damaged) != 3 {
		t.Fatalf("moved %+v, %v", r, err)
	}
	s2 := m.openTarget(t)
	defer s2.Close()
	got := read(t, s2)
	for id, w := range want.Sessions {
		g := got.Sessions[id]
		switch id {
		case "plain-00001", "fork-in-the-middle", "plain-00002":
			if g.Damage == nil || g.End != w.End || len(got.Events[id]) != len(want.Events[id]) {
				t.Errorf("session %s is %+v with %d events, was %+v with %d", id, g, len(got.Events[id]), w, len(want.Events[id]))
			}
		default:
			if g.Damage != nil || strings.Join(got.Events[id], "\n") != strings.Join(want.Events[id], "\n") {
				t.Errorf("session %s is %+v", id, g)
			}
		}
	}
}

// flip changes a byte of a text in a file that nobody has open.
func flip(t testing.TB, path, text string) {
	t.Helper()
	all, err := os.ReadFile(path)
	must(t, err)
	at := bytes.Index(all, []byte(text))
	if at < 0 || bytes.Count(all, []byte(text)) < 1 {
		t.Fatalf("%q is not in the file", text)
	}
	for ; at >= 0; at = bytes.Index(all, []byte(text)) {
		all[at] ^= 1
	}
	must(t, os.WriteFile(path, all, 0o600))
}

// Secrets are sealed on the way and in the database, also with another key.
func TestSecretsStaySealed(t *testing.T) {
	for name, other := range map[string]bool{"the same key": false, "another key": true} {
		t.Run(name, func(t *testing.T) {
			c := postgrestest.Start(t)
			m := newMove(t, c.SchemaURL("sealed"))
			fill(t, m, 3)
			want := before(t, m)
			if other {
				m.TargetKeyFile = filepath.Join(t.TempDir(), "cluster.key")
			}
			r, err := m.Run(t.Context())
			must(t, err)
			if (r.Resealed > 0) != other || r.Unopened > 0 {
				t.Errorf("moved %+v", r)
			}
			checkMoved(t, m, want)
			c.Exec(t, "sealed", "CHECKPOINT")
			for _, dump := range []string{c.Exec(t, "sealed", "SELECT encode(value, 'escape') FROM secrets"), grep(t, c.Dir(), secretValue)} {
				if strings.Contains(dump, secretValue) {
					t.Errorf("the secret is in clear: %s", dump)
				}
			}
		})
	}
}

// grep returns a text if a file below a folder has it.
func grep(t testing.TB, dir, text string) (found string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return nil // files come and go while the server runs
		}
		if all, _ := os.ReadFile(path); bytes.Contains(all, []byte(text)) {
			found += text + " in " + path
		}
		return nil
	}))
	return found
}

func TestAKeyThatTheServersDoNotHaveIsRefused(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 1)
	want := before(t, m)
	key := filepath.Join(t.TempDir(), "cluster.key")
	s, err := postgres.Join(t.Context(), m.To, eventlog.Options{KeyFile: key}, postgres.Server{Machine: "m", Address: "a"}, postgres.Pace{})
	must(t, err)
	must(t, s.Close())
	refused(t, m, "has none of the keys", "--cluster-key-file")
	m.TargetKeyFile = key
	_, err = m.Run(t.Context())
	must(t, err)
	checkMoved(t, m, want)
}

// Secrets whose key is lost arrive as they were: the key opens them when it is found again.
func TestSecretsWhoseKeyIsLostArriveAsTheyWere(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 1)
	want := before(t, m)
	kept := filepath.Join(t.TempDir(), "kept.key")
	must(t, os.Rename(m.KeyFile, kept))
	m.TargetKeyFile = filepath.Join(t.TempDir(), "cluster.key")
	warned := ""
	m.Warn = func(line string) { warned += line }
	r, err := m.Run(t.Context())
	if err != nil || r.Unopened == 0 || !strings.Contains(warned, "sealed with key") {
		t.Fatalf("moved %+v, %v, and warned %q", r, err, warned)
	}
	m.TargetKeyFile = kept
	checkMoved(t, m, want)
}

// A copy of the folder cannot be moved, too, at once or later.
func TestACopyOfAMovedFolderIsRefused(t *testing.T) {
	c := postgrestest.Start(t)
	m := newMove(t, c.URL())
	fill(t, m, 3)
	want := before(t, m)
	if !killAt(t, m, 20, 4) { // it has a name by now
		t.Fatal("the move was done")
	}
	twin := copyFolder(t, m, m.To)
	done := make(chan error)
	_, err := m.stopAt("sent", func() {
		go func() { _, err := twin.Run(t.Context()); done <- err }()
	}).Run(t.Context())
	must(t, err)
	if err := <-done; !errors.Is(err, postgres.ErrMovedBefore) {
		t.Errorf("a copy of the folder was moved: %v", err)
	}
	checkMoved(t, m, want)
}
