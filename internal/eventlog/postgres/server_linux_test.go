package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/seal"
)

// The paces of servers in tests. None depends on how fast the machine is.
var (
	silent  = Pace{Beat: time.Hour, Suspend: time.Hour, Dead: time.Hour}                    // beats once, and watches nobody
	patient = Pace{Beat: 10 * time.Millisecond, Suspend: time.Hour, Dead: time.Hour}        // beats, and finds nobody dead
	strict  = Pace{Beat: 10 * time.Millisecond, Suspend: time.Hour, Dead: time.Millisecond} // finds everybody dead who does not beat between two looks
)

// join opens a store as one of several servers. It is closed at the end of the test.
func join(t testing.TB, url, address string, pace Pace) *Store {
	t.Helper()
	s, err := Join(t.Context(), url, eventlog.Options{KeyFile: keyFile()}, Server{Machine: "m", Address: address, Version: "v"}, pace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// until waits until a condition holds.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatalf("in vain: %s", what)
		}
		runtime.Gosched()
	}
}

// claimsSoon has a server claim a session as soon as it can.
func (s *Store) claimsSoon(t testing.TB, id event.SessionID) {
	t.Helper()
	until(t, "a claim of "+string(id), func() bool {
		err := s.Claim(t.Context(), id)
		if err != nil && !errors.Is(err, eventlog.ErrNotOwner) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func TestAServerKeepsThePromisesOfAStore(t *testing.T) {
	c := postgrestest.Start(t)
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store { return join(t, c.URL(), "a", patient) })
}

// writes are all kinds of writes to the session s, which ends at end and has the job j.
func writes(t *testing.T, s *Store, end eventlog.End) map[string]func() error {
	return map[string]func() error{
		"append": func() error { _, err := say(t, s, "s", end, "stale"); return err },
		"append with a secret": func() error {
			b := eventlog.Batch{After: end, Events: []event.Event{eventOf(t, "stale")}, Secrets: []eventlog.Secret{{Name: "k", Value: []byte("stale")}}}
			_, err := s.Append(t.Context(), "s", b)
			return err
		},
		"delete":     func() error { return s.Delete(t.Context(), "s") },
		"quarantine": func() error { return s.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 1}) },
		"secrets": func() error {
			return s.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "k", Value: []byte("stale")})
		},
		"reindex": func() error { return s.Reindex(t.Context(), "s", end, eventlog.Info{Name: "stale"}) },
		"recount": func() error { return s.Recount(t.Context(), "s", end, nil) },
		"add a job": func() error {
			return s.ChangeJobs(t.Context(), eventlog.JobChange{Job: eventlog.Job{ID: "stale", Kind: "k", Session: "s", From: 9, Due: time.Unix(1, 0)}})
		},
		"put a job": func() error {
			return s.ChangeJobs(t.Context(), eventlog.JobChange{Verb: eventlog.PutJob, Job: eventlog.Job{ID: "j", Error: "stale"}})
		},
		"drop a job": func() error {
			return s.ChangeJobs(t.Context(), eventlog.JobChange{Verb: eventlog.DropJob, Job: eventlog.Job{ID: "j"}})
		},
	}
}

func eventOf(t testing.TB, text string) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: text})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// beginS makes the session s with a job, and returns its end.
func beginS(t *testing.T, s *Store) eventlog.End {
	t.Helper()
	end, err := s.Append(t.Context(), "s", eventlog.Batch{
		Events:  []event.Event{eventOf(t, "a")},
		Secrets: []eventlog.Secret{{Name: "k", Value: []byte("v")}},
		Jobs:    []eventlog.JobChange{{Job: eventlog.Job{ID: "j", Kind: "k", Session: "s", Due: time.Unix(1, 0)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// unchanged checks that nothing of writes has happened to the session.
func unchanged(t *testing.T, s *Store, end eventlog.End) {
	t.Helper()
	session, err := s.Session(t.Context(), "s")
	if err != nil || session.End != end || session.Damage != nil || session.Info.Name != "" {
		t.Errorf("the session is %+v, %v", session, err)
	}
	if jobs, err := s.Jobs(t.Context(), "s"); err != nil || len(jobs) != 1 || jobs[0].ID != "j" || jobs[0].Error != "" {
		t.Errorf("its jobs are %+v, %v", jobs, err)
	}
	var size int
	if err := s.reading.QueryRow(t.Context(), "SELECT count(*) FROM secrets").Scan(&size); err != nil || size != 1 {
		t.Errorf("it has %d secrets, %v", size, err)
	}
}

func TestNobodyWritesToTheSessionOfALiveServer(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("live")
	a, b := join(t, url, "host-a:1", patient), join(t, url, "host-b:1", patient)
	end := beginS(t, a)
	for what, write := range writes(t, b, end) {
		var owned *eventlog.Owned
		if err := write(); !errors.As(err, &owned) || owned.Address != "host-a:1" || owned.Session != "s" || !errors.Is(err, eventlog.ErrNotOwner) {
			t.Errorf("%s: %v, want the address of the owner", what, err)
		}
	}
	if job, _, err := b.TakeJob(t.Context(), "h", time.Unix(10, 0), time.Unix(20, 0)); job != nil || err != nil {
		t.Errorf("a job of another server's session is taken: %v, %v", job, err)
	}
	unchanged(t, b, end)
	if got := said(t, b, "s"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the other server reads %q", got)
	}
	// A fork belongs to whoever makes it; reading and forking claim nothing.
	if _, err := b.Fork(t.Context(), "f", "s", eventlog.Batch{After: end, Events: []event.Event{eventOf(t, "b")}}); err != nil {
		t.Error(err)
	}
	if _, err := say(t, a, "s", end, "b"); err != nil {
		t.Error(err)
	}
	if got := said(t, b, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the other server reads %q", got)
	}
	if owners := c.Exec(t, "live", "SELECT count(DISTINCT server), count(*) FROM owners"); owners != "2|2" {
		t.Errorf("owners and sessions: %s", owners)
	}
	// The snapshot of a claim may be older than the server that has just joined and claimed the session.
	c.Exec(t, "live", "INSERT INTO owners VALUES ('new', 'a server whose row is not visible', 1)")
	if err := b.claimFamilies(t.Context(), "new"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("the session of a server that is not visible: %v", err)
	}
	if a.Err() != nil || b.Err() != nil {
		t.Errorf("the stores say %v and %v", a.Err(), b.Err())
	}
}

func TestAStaleFenceWritesNothing(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("stale")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	end := beginS(t, a)
	stale, _ := a.claims.get("s")
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	b.claimsSoon(t, "s")
	for what, write := range writes(t, a, end) {
		a.claims.set(stale, "s") // as if the write had been given the fence before
		if err := write(); !errors.Is(err, eventlog.ErrNotOwner) {
			t.Errorf("%s: %v, want that another server works on the session", what, err)
		}
		// A server does not get a session back because it writes to it once more.
		if err := write(); !errors.Is(err, eventlog.ErrNotOwner) {
			t.Errorf("%s, again: %v", what, err)
		}
	}
	unchanged(t, b, end)
	now, err := say(t, b, "s", end, "b")
	if err != nil || a.Err() != nil {
		t.Errorf("the owner: %v; the store of the other: %v", err, a.Err())
	}
	if err := b.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, a, "s", now, "c"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("a server that has lost a session writes to it when nobody owns it: %v", err)
	}
	// It gets it back by claiming it, and then reads what has happened.
	a.claimsSoon(t, "s")
	if got := said(t, a, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("it reads %q", got)
	}
	if _, err := say(t, a, "s", end, "old"); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("an append after the old end: %v", err)
	}
}

func TestTheSessionsOfADeadServerAreClaimed(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("dead")
	a := join(t, url, "a", silent)
	end := beginS(t, a)
	if job, _, err := a.TakeJob(t.Context(), "h", time.Unix(10, 0), time.Now().Add(time.Hour)); err != nil || job == nil {
		t.Fatal(job, err)
	}
	b := join(t, url, "b", strict)
	b.claimsSoon(t, "s")
	if end, err := say(t, b, "s", end, "b"); err != nil || end.Seq != 2 {
		t.Fatal(end, err)
	}
	if job, _, err := b.TakeJob(t.Context(), "h", time.Unix(10, 0), time.Unix(20, 0)); err != nil || job == nil || job.ID != "j" {
		t.Errorf("the job of the dead server: %v, %v", job, err)
	}
	if _, err := say(t, a, "s", end, "stale"); !errors.Is(err, eventlog.ErrFenced) && !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("an append by the dead server: %v", err)
	}
	if _, err := say(t, a, "other", eventlog.End{}, "stale"); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("a session that the dead server makes: %v", err)
	}
	if got := said(t, b, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the session says %q", got)
	}
}

// A process that is stopped in the middle of a transaction holds its locks. Its backend is ended,
// and what it had begun is gone.
func TestATransactionOfADeadServerIsEnded(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("stuck")
	a := join(t, url, "a", silent)
	end := beginS(t, a)
	begun, goOn, stuck := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	fence, _ := a.claims.get("s")
	go func() {
		stuck <- a.queue.Do(context.Background(), &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
			if err := a.hold(ctx, tx, right{"s", fence}); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE sessions SET info = 'stale'")
			close(begun) // a second time would be a panic: it must not be tried again
			<-goOn
			return err
		}})
	}()
	<-begun
	b := join(t, url, "b", strict)
	b.claimsSoon(t, "s")
	if _, err := say(t, b, "s", end, "b"); err != nil {
		t.Error(err)
	}
	close(goOn)
	if err := <-stuck; !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("the transaction of the dead server ends with %v", err)
	}
	if got := said(t, b, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the session says %q", got)
	}
	if info := c.Exec(t, "stuck", "SELECT info FROM sessions"); strings.Contains(info, "stale") {
		t.Error("what the dead server had begun is stored")
	}
}

func TestADeadServerNoticesAtItsNextBeat(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("notice")
	a := join(t, url, "a", patient)
	c.Exec(t, "notice", "UPDATE servers SET dead = true")
	<-a.Closed()
	if !errors.Is(a.Err(), eventlog.ErrFenced) {
		t.Errorf("it says %v", a.Err())
	}
}

func TestAServerWithoutABeatWaitsBeforeItWrites(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.URL()
	a, b := join(t, url, "a", Pace{Beat: time.Hour, Suspend: time.Nanosecond, Dead: time.Hour}), join(t, url, "b", patient)
	done := make(chan error, 1)
	go func() { _, err := say(t, a, "s", eventlog.End{}, "a"); done <- err }()
	until(t, "the append is under way", func() bool { _, busy := a.queue.Load(); return busy })
	var end eventlog.End
	for range 20 { // more than the time that the append would take
		var err error
		if end, err = say(t, b, "other", end, "b"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("an append was not held back: %v", err)
	default:
	}
	a.life.noteBeat(sinceBoot() + time.Hour)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAWriterIsHeldBackUntilTheNextBeat(t *testing.T) {
	for name, end := range map[string]func(*life){
		"a beat":                    func(l *life) { l.noteBeat(sinceBoot()) },
		"the end of the store":      func(l *life) { l.store.queue.Shut(eventlog.ErrClosed) },
		"a beat that is too old":    nil,
		"the beat was in good time": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Store{queue: group.New(func([]*op) {})}
			l := &life{store: s, pace: Pace{}.orUsual(), beaten: make(chan struct{}), last: sinceBoot() - 6*time.Second}
			if name == "the beat was in good time" {
				l.last += time.Hour
			}
			returned := false
			go func() { _ = l.await(context.Background()); returned = true }()
			synctest.Wait()
			if returned != (name == "the beat was in good time") {
				t.Errorf("%s: returned = %v before it", name, returned)
			}
			if end != nil {
				end(l)
				synctest.Wait()
				if !returned {
					t.Errorf("%s does not let the writer go on", name)
				}
				return
			}
			l.noteBeat(sinceBoot() - 7*time.Second)
			synctest.Wait()
			if name == "a beat that is too old" && returned {
				t.Errorf("%s lets the writer go on", name)
			}
			l.noteBeat(sinceBoot() + time.Hour)
		})
	}
}

func TestAnOutageOfTheDatabaseKillsNobody(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("outage")
	strictish := Pace{Beat: 10 * time.Millisecond, Suspend: time.Hour, Dead: time.Hour}
	a, b := join(t, url, "a", strictish), join(t, url, "b", strictish)
	end := beginS(t, a)
	c.Down(t, syscall.SIGQUIT)
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		if end, err = say(t, a, "s", end, "b"); err != nil {
			t.Error(err)
		}
	})
	c.Up(t)
	wg.Wait()
	if _, err := say(t, b, "s", end, "stale"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("the other server: %v", err)
	}
	if _, err := say(t, a, "s", end, "c"); err != nil || a.Err() != nil || b.Err() != nil {
		t.Errorf("%v; the stores say %v and %v", err, a.Err(), b.Err())
	}
	if got := said(t, b, "s"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the session says %q", got)
	}
}

// What a server concludes from the beats that it sees. Times are in seconds.
func TestBeatsAreWatchedByOnesOwnClock(t *testing.T) {
	type look struct {
		at   float64
		beat int64
		dead bool // what the row says
		want bool // whether it is found dead
	}
	for name, looks := range map[string][]look{
		"a beat that stands still for 8 s":    {{at: 0, beat: 1}, {at: 2, beat: 1}, {at: 4, beat: 1}, {at: 6, beat: 1}, {at: 7.9, beat: 1}, {at: 8.1, beat: 1, want: true}},
		"a beat that counts":                  {{at: 0, beat: 1}, {at: 4, beat: 1}, {at: 7.9, beat: 2}, {at: 10, beat: 2}, {at: 15, beat: 2}, {at: 16, beat: 2, want: true}},
		"a time in which nobody looked":       {{at: 0, beat: 1}, {at: 2, beat: 1}, {at: 60, beat: 1}, {at: 64, beat: 1}, {at: 67, beat: 1}, {at: 68.1, beat: 1, want: true}},
		"a row that says that it is dead":     {{at: 0, beat: 1}, {at: 4, beat: 1}, {at: 8.1, beat: 1, dead: true}},
		"a counter that goes back":            {{at: 0, beat: 5}, {at: 5, beat: 3}, {at: 9, beat: 3}, {at: 13, beat: 3, want: true}},
		"one that is seen for the first time": {{at: 100, beat: 1}},
	} {
		w := watch{}
		for _, l := range looks {
			at := time.Duration(l.at * float64(time.Second))
			dead := w.observe(at, at, []Server{{ID: "x", Beat: l.beat, Dead: l.dead}}, Pace{}.orUsual())
			if (len(dead) == 1) != l.want {
				t.Errorf("%s: at %v s: dead = %v, want %v", name, l.at, dead, l.want)
			}
		}
	}
}

func TestAProcessAloneAndServersExcludeEachOther(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("alone")
	alone := open(t, url)
	end := beginS(t, alone)
	a := join(t, url, "host-a:1", patient)
	if _, err := say(t, alone, "s", end, "stale"); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("an append of the process that was alone: %v", err)
	}
	if _, err := say(t, a, "s", end, "b"); err != nil {
		t.Error(err)
	}
	conn, err := dial(t.Context(), a.config, a.sync)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	beats := func() string { return c.Exec(t, "alone", "SELECT max(beat) > 20 FROM servers") }
	until(t, "some beats", func() bool { return beats() == "t" })
	err = aloneAfter(t.Context(), conn, Pace{Dead: 3 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "host-a:1") {
		t.Errorf("a process that wants the store alone beside a server: %v", err)
	}
	if _, err := takeOver(t.Context(), conn); !errors.Is(err, errShared) {
		t.Errorf("the store is taken from a server: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	last := open(t, url)
	if got := said(t, last, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the session says %q", got)
	}
	if rows := c.Exec(t, "alone", "SELECT (SELECT count(*) FROM owners) + (SELECT count(*) FROM writers) + (SELECT count(*) FROM servers)"); rows != "0" {
		t.Errorf("%s rows are left of servers", rows)
	}
}

func TestServersShareWhatIsDue(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("due")
	first := join(t, url, "first", patient)
	const sessions = 40
	for i := range sessions {
		b := eventlog.Batch{Events: []event.Event{eventOf(t, "a")}, Info: &eventlog.Info{Active: i%4 != 0}}
		if _, err := first.Append(t.Context(), event.SessionID(fmt.Sprint(i)), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	servers := []*Store{join(t, url, "a", patient), join(t, url, "b", patient), join(t, url, "c", patient)}
	var wg sync.WaitGroup
	got := make([][]event.SessionID, len(servers))
	for i, s := range servers {
		wg.Go(func() {
			for {
				ids, err := s.ClaimDue(t.Context(), 4)
				if err != nil || len(ids) > 4 {
					t.Errorf("%d sessions, %v", len(ids), err)
				}
				if len(ids) == 0 {
					return
				}
				for _, session := range ids {
					got[i] = append(got[i], session.ID)
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[event.SessionID]bool)
	for i, ids := range got {
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%s is claimed twice", id)
			}
			seen[id] = true
			session, err := servers[i].Session(t.Context(), id)
			if err != nil || !session.Info.Active {
				t.Errorf("%s is claimed, and nothing is due: %v", id, err)
			}
			if _, err := say(t, servers[i], id, session.End, "b"); err != nil {
				t.Error(err)
			}
		}
	}
	// A batch that another server has locked is skipped: what is left is found by the next sweep.
	for {
		ids, err := servers[0].ClaimDue(t.Context(), 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			break
		}
		for _, session := range ids {
			seen[session.ID] = true
		}
	}
	if len(seen) != sessions*3/4 {
		t.Errorf("%d sessions of %d are claimed", len(seen), sessions*3/4)
	}
	list, err := servers[0].Servers(t.Context())
	owned := 0
	for _, s := range list {
		owned += s.Sessions
	}
	if err != nil || len(list) != 3 || owned != len(seen) || list[0].Address != "a" || list[0].Machine != "m" || list[0].Version != "v" {
		t.Errorf("the servers are %+v, %v", list, err)
	}
}

func TestASessionAndItsAgentsAreClaimedTogether(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("together")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	if err := a.claimFamilies(t.Context(), "agent2", "x"); err != nil {
		t.Fatal(err)
	}
	if err := b.claimFamilies(t.Context(), "root", "agent1", "agent2", "root"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("a claim of what is partly owned: %v", err)
	}
	if owned := c.Exec(t, "together", "SELECT count(*) FROM owners"); owned != "2" {
		t.Errorf("%s sessions have an owner", owned)
	}
	if err := a.Release(t.Context(), "agent2"); err != nil {
		t.Fatal(err)
	}
	if err := b.claimFamilies(t.Context(), "root", "agent1", "agent2", "root"); err != nil {
		t.Error(err)
	}
	if owned := c.Exec(t, "together", "SELECT count(*), count(DISTINCT fence) FROM owners WHERE name <> 'x'"); owned != "3|1" {
		t.Errorf("sessions and fences: %s", owned)
	}
}

// A parent is deleted at one server while another forks it: either the fork has all of its
// events, or there is none.
func TestAForkAndADeletionAtTwoServers(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("forks")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	for i := range 10 {
		parent, child := event.SessionID(fmt.Sprint("p", i)), event.SessionID(fmt.Sprint("c", i))
		end, err := say(t, a, parent, eventlog.End{}, "a")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var forked error
		wg.Go(func() {
			if err := a.Delete(t.Context(), parent); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			_, forked = b.Fork(t.Context(), child, parent, eventlog.Batch{After: end, Events: []event.Event{eventOf(t, "b")}})
		})
		wg.Wait()
		switch {
		case forked == nil:
			if got := said(t, a, child); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("the fork says %q", got)
			}
		case !errors.Is(forked, eventlog.ErrNotFound):
			t.Errorf("the fork: %v", forked)
		}
	}
}

func TestServersThatLoseTheirConnectionsStoreOnce(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("lost")
	join(t, url, "b", patient)
	p := newProxy(t, c.Socket())
	s := join(t, c.AddressURL(p.Addr(), "lost"), "a", silent)
	end, want := eventlog.End{}, []string{}
	for i := range 12 {
		p.cut([]loss{lostAsked, lostReply, none}[i%3])
		text := fmt.Sprint(i)
		var err error
		if end, err = say(t, s, "s", end, text); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
		want = append(want, text)
	}
	if got := said(t, s, "s"); !slices.Equal(got, want) {
		t.Errorf("stored: %q, want %q", got, want)
	}
}

// configured returns the first event of a session: of an agent, if it works for another one.
func configured(t testing.TB, worksFor event.SessionID) event.Event {
	var d event.SessionConfiguredData
	if worksFor != "" {
		d.Agent = &event.AgentOf{Session: worksFor}
	}
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAnAgentBelongsToTheServerOfItsSession(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("family")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	if _, err := a.Append(t.Context(), "s", eventlog.Batch{Events: []event.Event{configured(t, "")}}); err != nil {
		t.Fatal(err)
	}
	agent := eventlog.Batch{Events: []event.Event{configured(t, "s")}, Info: &eventlog.Info{Active: true}}
	var owned *eventlog.Owned
	if _, err := b.Append(t.Context(), "agent", agent); !errors.As(err, &owned) || owned.Address != "a" {
		t.Errorf("another server makes an agent: %v", err)
	}
	end, err := a.Append(t.Context(), "agent", agent)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Claim(t.Context(), "agent"); !errors.As(err, &owned) {
		t.Errorf("another server claims the agent alone: %v", err)
	}
	if other, err := b.Owner(t.Context(), "agent"); err != nil || other == nil || other.Address != "a" {
		t.Errorf("the owner of the agent is %v, %v", other, err)
	}
	if other, err := a.Owner(t.Context(), "agent"); err != nil || other != nil {
		t.Errorf("for its owner, the owner is %v, %v", other, err)
	}
	if err := a.Release(t.Context(), "agent"); err != nil {
		t.Fatal(err)
	}
	due, err := b.ClaimDue(t.Context(), 10) // the agent is due, and its session comes with it
	if err != nil || len(due) != 2 || !b.Owns("s") || !b.Owns("agent") {
		t.Fatalf("%d sessions are claimed: %v", len(due), err)
	}
	if _, err := say(t, a, "agent", end, "stale"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("the old owner writes to the agent: %v", err)
	}
	if err := b.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, b, "agent", end, "b"); err != nil {
		t.Errorf("the agent of a deleted session: %v", err)
	}
	if err := b.Delete(t.Context(), "agent"); err != nil {
		t.Fatal(err)
	}
	if left := c.Exec(t, "family", "SELECT count(*) FROM owners"); left != "0" {
		t.Errorf("%s owners are left of nothing", left)
	}
}

// at joins a store as a server with a data folder of its own.
func at(t testing.TB, url, name string) *Store {
	t.Helper()
	s, err := Join(t.Context(), url, eventlog.Options{KeyFile: keyFile()}, Server{Machine: name, Address: name, Version: "v"}, patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWhatWorksOnAMachineStaysThere(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("place")
	a, b := at(t, url, "a"), at(t, url, "b")
	begin := func(id event.SessionID, info eventlog.Info) eventlog.End {
		end, err := a.Append(t.Context(), id, eventlog.Batch{Events: []event.Event{configured(t, "")}, Info: &info})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	local := begin("local", eventlog.Info{Active: true})
	begin("remote", eventlog.Info{Active: true, Workspace: &event.Workspace{Name: "box"}})
	if err := a.Release(t.Context(), "local", "remote"); err != nil {
		t.Fatal(err)
	}
	var owned *eventlog.Owned
	if err := b.Claim(t.Context(), "local"); !errors.As(err, &owned) || owned.Address != "a" {
		t.Errorf("a session of another machine, whose server lives: %v", err)
	}
	due, err := b.ClaimDue(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != "remote" {
		t.Errorf("the sweep claims %v, %v", due, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	var away *eventlog.Away
	if err := b.Claim(t.Context(), "local"); !errors.As(err, &away) || away.Machine != "a" || !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("a session of another machine, whose server is gone: %v", err)
	}
	if _, err := b.Fork(t.Context(), "fork", "local", eventlog.Batch{After: local, Events: []event.Event{eventOf(t, "b")}}); err != nil {
		t.Errorf("it cannot be forked: %v", err)
	}
	for _, err := range b.Read(t.Context(), "local", 0) {
		if err != nil {
			t.Errorf("it cannot be read: %v", err)
		}
	}
	a = at(t, url, "a")
	if due, err := a.ClaimDue(t.Context(), 10); err != nil || len(due) != 1 || due[0].ID != "local" {
		t.Errorf("its server is back, and claims %v, %v", due, err)
	}
	if err := a.Claim(t.Context(), "fork"); !errors.As(err, &owned) {
		t.Errorf("the fork of another machine: %v", err)
	}
}

func TestWhatIsOlderStaysWhereItIsClaimedFirst(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("older")
	alone, err := Open(t.Context(), url, eventlog.Options{KeyFile: keyFile()})
	if err != nil {
		t.Fatal(err)
	}
	end, err := say(t, alone, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	a, b := at(t, url, "a"), at(t, url, "b")
	if _, err := say(t, a, "s", end, "b"); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := b.Claim(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("another server: %v", err)
	}
}

func TestAServerThatIsDrainedClaimsNothing(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("drain")
	a, b := join(t, url, "a", patient), join(t, url, "b", patient)
	end, err := a.Append(t.Context(), "s", eventlog.Batch{Events: []event.Event{eventOf(t, "a")}, Info: &eventlog.Info{Active: true}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Drain(t.Context(), "nobody"); !errors.Is(err, ErrNoServer) {
		t.Errorf("nobody is drained: %v", err)
	}
	a.NoteBusy(7)
	if err := b.Drain(t.Context(), a.life.me.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "a server that is drained", a.Draining)
	if end, err = say(t, a, "s", end, "b"); err != nil {
		t.Errorf("it writes to what it owns: %v", err)
	}
	var owned *eventlog.Owned
	if _, err := say(t, a, "new", eventlog.End{}, "a"); !errors.As(err, &owned) || owned.Address != "b" {
		t.Errorf("it makes a session: %v", err)
	}
	if err := a.Release(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if due, err := a.ClaimDue(t.Context(), 10); err != nil || len(due) > 0 {
		t.Errorf("it claims %v, %v", due, err)
	}
	if _, err := say(t, b, "s", end, "c"); err != nil {
		t.Errorf("the other server: %v", err)
	}
	list, err := b.Servers(t.Context())
	if err != nil || len(list) != 2 || !list[0].Draining || list[0].Busy != 7 || list[0].Sessions != 0 || list[1].Sessions != 1 || !list[1].Self || list[1].Draining {
		t.Errorf("the servers are %+v, %v", list, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, a, "new", eventlog.End{}, "a"); !errors.Is(err, eventlog.ErrNotOwner) || errors.As(err, &owned) {
		t.Errorf("it is alone: %v", err)
	}
}

func TestServersHaveOneKey(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.SchemaURL("keys")
	join(t, url, "a", patient)
	other := eventlog.Options{KeyFile: filepath.Join(t.TempDir(), seal.FileName)}
	if s, err := Join(t.Context(), url, other, Server{Address: "b"}, patient); err == nil || !strings.Contains(err.Error(), "--cluster-key-file") {
		t.Errorf("a server with another key joins: %v, %v", s, err)
	}
	if n := c.Exec(t, "keys", "SELECT count(*) FROM servers"); n != "1" {
		t.Errorf("%s servers have joined", n)
	}
}
