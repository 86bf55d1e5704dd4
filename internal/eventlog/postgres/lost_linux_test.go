package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// say appends a message, and returns the new end.
func say(t testing.TB, s *Store, id event.SessionID, after eventlog.End, text string) (eventlog.End, error) {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: text})
	if err != nil {
		t.Fatal(err)
	}
	return s.Append(t.Context(), id, eventlog.Batch{After: after, Events: []event.Event{e}})
}

// said returns what a session says.
func said(t testing.TB, s *Store, id event.SessionID) (all []string) {
	t.Helper()
	for e, err := range s.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		info, err := event.As[event.SessionInfoData](e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Message)
	}
	return all
}

func TestTheSecondHandleFencesTheFirst(t *testing.T) {
	c := postgrestest.Start(t)
	url := c.URL()
	first := open(t, url)
	end, err := say(t, first, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, url)
	for what, write := range map[string]func() error{
		"append": func() error { _, err := say(t, first, "s", end, "stale"); return err },
		"fork": func() error {
			_, err := first.Fork(t.Context(), "f", "s", eventlog.Batch{After: end, Events: []event.Event{{}}})
			return err
		},
		"delete":     func() error { return first.Delete(t.Context(), "s") },
		"quarantine": func() error { return first.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 1}) },
		"secrets":    func() error { return first.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "k"}) },
		"jobs":       func() error { return first.ChangeJobs(t.Context(), eventlog.JobChange{Verb: eventlog.DropJob}) },
		"reindex":    func() error { return first.Reindex(t.Context(), "s", end, eventlog.Info{Name: "stale"}) },
		"recount":    func() error { return first.Recount(t.Context(), "s", end, nil) },
	} {
		if err := write(); err == nil {
			t.Errorf("%s by a process that was replaced: no error", what)
		}
	}
	if !errors.Is(first.Err(), eventlog.ErrFenced) {
		t.Errorf("the first handle says %v, want that it is fenced", first.Err())
	}
	if _, err := say(t, second, "s", end, "b"); err != nil {
		t.Error(err)
	}
	if got := said(t, second, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the session says %q", got)
	}
}

// talkers append to sessions of their own until they are stopped. Every append has to succeed,
// whatever happens to the server meanwhile, and to be stored once.
type talkers struct {
	t    *testing.T
	s    *Store
	stop chan struct{}
	wg   sync.WaitGroup
	want [4][]string
}

func startTalkers(t *testing.T, s *Store) *talkers {
	all := &talkers{t: t, s: s, stop: make(chan struct{})}
	for i := range all.want {
		all.wg.Go(func() { all.talk(i) })
	}
	return all
}

func (all *talkers) talk(i int) {
	id, end := event.SessionID(fmt.Sprint("talker", i)), eventlog.End{}
	for n := 0; ; n++ {
		select {
		case <-all.stop:
			return
		default:
		}
		text := fmt.Sprint(n)
		next, err := say(all.t, all.s, id, end, text)
		if err != nil {
			all.t.Errorf("append %d of %s: %v", n, id, err)
			return
		}
		end, all.want[i] = next, append(all.want[i], text)
	}
}

// check stops the talkers and compares what they have said with what is stored.
func (all *talkers) check() {
	close(all.stop)
	all.wg.Wait()
	for i, want := range all.want {
		if got := said(all.t, all.s, event.SessionID(fmt.Sprint("talker", i))); !slices.Equal(got, want) || len(want) == 0 {
			all.t.Errorf("talker %d has appended %d messages, and %d are stored", i, len(want), len(got))
		}
	}
}

func TestAppendsSurviveARestartOfTheServer(t *testing.T) {
	c := postgrestest.Start(t)
	all := startTalkers(t, open(t, c.URL()))
	for _, how := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGINT} {
		c.Down(t, how)
		c.Up(t)
	}
	all.check()
}

func TestAppendsSurviveLostConnections(t *testing.T) {
	c := postgrestest.Start(t)
	all := startTalkers(t, open(t, c.URL()))
	for range 15 {
		c.Exec(t, "public", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'abide'")
	}
	all.check()
}

// A proxy passes connections on to a server, until it is told to cut one.
type proxy struct {
	net.Listener
	server string

	mu   sync.Mutex
	next loss
}

// A loss says what becomes of the next request.
type loss int

const (
	none      loss = iota
	lostAsked      // the request does not reach the server
	lostReply      // the server carries it out, and the reply does not reach the client
)

func newProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, server: server}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.pass(client) })
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return p
}

func (p *proxy) cut(how loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = how
}

func (p *proxy) take() loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := p.next
	p.next = none
	return how
}

// pass passes one connection on.
func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	replies := make(chan struct{})
	go func() { // ends when one of the connections is closed, which is waited for below
		defer close(replies)
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	defer func() { server.Close(); <-replies }()
	for buffer := make([]byte, 1<<20); ; {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		how := p.take()
		if how == lostAsked {
			return
		}
		if how == lostReply {
			client.Close()
		}
		if _, err := server.Write(buffer[:n]); err != nil || how == lostReply {
			return
		}
	}
}

func TestAnAppendInDoubtIsStoredOnce(t *testing.T) {
	c := postgrestest.Start(t)
	p := newProxy(t, c.Socket())
	s := open(t, c.AddressURL(p.Addr(), "doubt"))
	end, want := eventlog.End{}, []string{}
	for i := range 20 {
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

func TestAProcessThatWasReplacedDoesNotComeBack(t *testing.T) {
	c := postgrestest.Start(t)
	p := newProxy(t, c.Socket())
	first := open(t, c.AddressURL(p.Addr(), "replaced"))
	end, err := say(t, first, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, c.SchemaURL("replaced"))
	p.cut(lostAsked)
	if _, err := say(t, first, "s", end, "stale"); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("an append by a process that was replaced and lost its connection: %v, want that it is fenced", err)
	}
	if _, err := say(t, second, "s", end, "b"); err != nil {
		t.Errorf("an append by the process that replaced it: %v", err)
	}
}

func TestChangesInDoubtAreMadeOnce(t *testing.T) {
	c := postgrestest.Start(t)
	p := newProxy(t, c.Socket())
	s := open(t, c.AddressURL(p.Addr(), "changes"))
	end, err := say(t, s, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	due := time.Unix(1000, 0)
	const jobs = 12
	for i := range jobs {
		err := s.ChangeJobs(t.Context(), eventlog.JobChange{Verb: eventlog.AddJob, Job: eventlog.Job{ID: fmt.Sprint(i), Kind: eventlog.JobExtract, Session: "s", From: event.Seq(i), Due: due}})
		if err != nil {
			t.Fatal(err)
		}
	}
	taken := make(map[string]bool)
	for i := range jobs {
		p.cut([]loss{lostAsked, lostReply, none}[i%3])
		job, _, err := s.TakeJob(t.Context(), "h", due, due.Add(time.Hour))
		if err != nil || job == nil || taken[job.ID] {
			t.Fatalf("take %d: %v, %v, after %v", i, job, err, taken)
		}
		taken[job.ID] = true
	}
	// A session that is deleted and made again is not deleted twice, nor made twice.
	for i := range 6 {
		p.cut([]loss{lostReply, lostAsked}[i%2])
		if err := s.Delete(t.Context(), "s"); err != nil {
			t.Fatalf("delete %d: %v", i, err)
		}
		p.cut([]loss{lostReply, lostAsked}[i%2])
		if end, err = say(t, s, "s", eventlog.End{}, "again"); err != nil {
			t.Fatalf("create %d: %v", i, err)
		}
	}
	if got := said(t, s, "s"); !slices.Equal(got, []string{"again"}) || end.Seq != 1 {
		t.Errorf("the session says %q", got)
	}
}

func TestAcknowledgedMeansSyncedAfterALostConnection(t *testing.T) {
	c := postgrestest.Start(t)
	c.Exec(t, "public", "ALTER ROLE abide SET synchronous_commit = off")
	p := newProxy(t, c.Socket())
	s := open(t, c.AddressURL(p.Addr(), "synced"))
	end := eventlog.End{}
	for i := range 2 {
		var err error
		if end, err = say(t, s, "s", end, "a"); err != nil {
			t.Fatal(err)
		}
		var is string
		if err := s.write.conn.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&is); err != nil || is != "on" {
			t.Errorf("connection %d has synchronous_commit = %s, %v", i, is, err)
		}
		p.cut(lostAsked)
	}
}

func TestCloseDoesNotWaitForAServerThatIsAway(t *testing.T) {
	c := postgrestest.Start(t)
	s := open(t, c.URL())
	end, err := say(t, s, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	c.Down(t, syscall.SIGQUIT)
	failed := make(chan error)
	go func() {
		_, err := say(t, s, "s", end, "b")
		failed <- err
	}()
	for busy := false; !busy; _, busy = s.queue.Load() { // until the append is under way
		runtime.Gosched()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("the append ends with %v, want that the log is closed", err)
	}
}

// Nobody but the store writes records: one that the index does not know of was put there.
func TestARecordThatTheIndexDoesNotKnowIsDamage(t *testing.T) {
	c := postgrestest.Start(t)
	s := open(t, c.SchemaURL("unknown"))
	end, err := say(t, s, "s", eventlog.End{}, "a")
	if err == nil {
		_, err = say(t, s, "s", end, "b")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Exec(t, "unknown", "INSERT INTO records SELECT session, 3, head, body FROM records WHERE first = 2")
	for _, err = range s.Read(t.Context(), "s", 0) {
	}
	if d, damaged := errors.AsType[*eventlog.Damage](err); !damaged || *d != (eventlog.Damage{Session: "s", Seq: 3, Reason: record.Unknown}) {
		t.Errorf("a session with a record too many ends with %v", err)
	}
}
