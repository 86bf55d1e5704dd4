package daemon_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// A cluster is a database with servers that share a log in it.
type cluster struct {
	t    *testing.T
	db   *postgrestest.Cluster
	url  string
	key  string
	pace postgres.Pace
}

// quick is a pace at which a server is dead soon after it has ended.
var quick = postgres.Pace{Beat: 20 * time.Millisecond, Suspend: time.Hour, Dead: 500 * time.Millisecond}

func newCluster(t *testing.T) *cluster {
	db := postgrestest.Start(t)
	return &cluster{t: t, db: db, url: db.SchemaURL("cluster"), key: filepath.Join(t.TempDir(), "cluster.key"), pace: quick}
}

// server starts a server with a data folder.
func (c *cluster) server(dir string, change ...func(*daemon.Config)) *daemon.Node {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	config := daemon.Config{
		Dir: dir, Version: "test", Store: c.url, KeyFile: c.key, Defaults: api.Defaults{Cwd: c.t.TempDir()},
		Cluster: &daemon.Cluster{Advertise: l.Addr().String(), Listener: l, Pace: c.pace},
	}
	for _, f := range change {
		f(&config)
	}
	n, err := daemon.Open(context.Background(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { n.Close() })
	return n
}

func (c *cluster) servers(p *peer) []api.Server {
	c.t.Helper()
	var list api.ServersResult
	p.must(api.ServersList, struct{}{}, &list)
	return list.Servers
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

func TestServersThatShareALogAreListed(t *testing.T) {
	c := newCluster(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	list := c.servers(q)
	if len(list) != 2 || list[0].Sessions+list[1].Sessions != 1 || list[0].Machine == list[1].Machine {
		t.Fatalf("the servers are %+v", list)
	}
	for _, s := range list {
		if s.Status != api.ServerLive || s.Self != (s.Sessions == 0) || s.Version != "test" {
			t.Errorf("a server is %+v", s)
		}
	}
	if err := q.Call(t.Context(), api.ServersDrain, api.DrainParams{ID: "nobody"}, nil); err == nil || !strings.Contains(err.Error(), "no live server") {
		t.Errorf("nobody is drained: %v", err)
	}
}

// A server that was taken for dead, although it lives, drops its sessions, joins again, and its
// clients notice nothing.
func TestAServerThatWasTakenForDeadJoinsAgain(t *testing.T) {
	c := newCluster(t)
	a := c.server(t.TempDir())
	p := connect(t, a)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	before := c.servers(p)[0].ID
	c.db.Exec(t, "cluster", "UPDATE servers SET dead = true")
	eventually(t, "a server that joins again", func() bool {
		for _, s := range c.servers(p) {
			if s.Self && s.ID != before {
				return true
			}
		}
		return false
	})
	var sent api.SendResult
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ON"}, &sent)
	p.await(event.SessionIdle, 1)
	if n := c.db.Exec(t, "cluster", "SELECT count(*) FROM writers"); n != "1" {
		t.Errorf("%s servers can write", n)
	}
}

// A client may connect to any server: what it wants of a session is done by the server that works on
// it, and its questions are answered there.
func TestAClientUsesASessionOfAnotherServer(t *testing.T) {
	c := newCluster(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	q.must(api.SessionCreate, api.OpenParams{SessionID: "own"}, nil)
	q.must(api.SessionResume, api.OpenParams{SessionID: "s"}, nil)
	q.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
	q.await(event.SessionIdle, 1)
	p.await(event.SessionIdle, 1)
	q.must(api.SessionSend, api.SendParams{SessionID: "own", Prompt: "Reply with exactly: TWO"}, nil)
	q.await(event.SessionIdle, 2)
	for _, s := range c.servers(q) {
		if s.Sessions != 1 {
			t.Errorf("a server is %+v", s)
		}
	}
	var list api.ListResult
	p.must(api.SessionList, struct{}{}, &list)
	if len(list.Sessions) != 2 {
		t.Errorf("a server lists %d sessions", len(list.Sessions))
	}
}

// A server that is killed takes nothing with it: what a client has of another server's session goes
// on at the server that takes it over. The session has its files elsewhere, so any server can.
func TestASessionGoesOnWhenItsServerIsGone(t *testing.T) {
	c := newCluster(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	c.db.Exec(t, "cluster", "UPDATE sessions SET machine = ''") // as if its workspace were elsewhere
	q.must(api.SessionResume, api.OpenParams{SessionID: "s"}, nil)
	q.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
	q.await(event.SessionIdle, 1)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	q.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: TWO"}, nil)
	q.await(event.SessionIdle, 2)
	if list := c.servers(q); len(list) != 1 || list[0].Sessions != 1 {
		t.Errorf("the servers are %+v", list)
	}
}

func TestAServerIsDrained(t *testing.T) {
	c := newCluster(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	c.db.Exec(t, "cluster", "UPDATE sessions SET machine = ''") // as if its workspace were elsewhere
	for _, s := range c.servers(q) {
		if !s.Self {
			q.must(api.ServersDrain, api.DrainParams{ID: s.ID}, nil)
		}
	}
	eventually(t, "a server without sessions", func() bool {
		for _, s := range c.servers(q) {
			if !s.Self && s.Status == api.ServerDraining && s.Sessions == 0 {
				return true
			}
		}
		return false
	})
	// Its clients go on: the other server does what they want.
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
	p.await(event.SessionIdle, 1)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "new"}, nil)
	for _, s := range c.servers(q) {
		if want := map[bool]int{true: 2}[s.Self]; s.Sessions != want {
			t.Errorf("a server is %+v", s)
		}
	}
}

func TestASessionWhoseMachineIsAwayIsReadAndForked(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	a, b := c.server(dir), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
	p.await(event.SessionIdle, 1)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := q.Call(t.Context(), api.SessionSend, api.SendParams{SessionID: "s", Prompt: "x"}, nil); err == nil || !strings.Contains(err.Error(), "it goes on when that server is back") {
		t.Errorf("a message: %v", err)
	}
	var messages api.EventsResult
	q.must(api.SessionGetMessages, api.SessionParams{SessionID: "s"}, &messages)
	if len(messages.Events) == 0 {
		t.Error("it cannot be read")
	}
	q.must(api.SessionsFork, api.ForkParams{SessionID: "s"}, nil)
	c.server(dir)
	q.must(api.SessionResume, api.OpenParams{SessionID: "s"}, nil) // passed on to its machine
	q.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: TWO"}, nil)
	q.await(event.SessionIdle, 1)
}

// A question is listed and answered at every server.
func TestAQuestionIsAnsweredAtAnotherServer(t *testing.T) {
	c := newCluster(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s", RequestPermission: true}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Run `echo ran`"}, nil)
	asked, err := event.As[event.PermissionAskedData](p.await(event.PermissionAsked, 1))
	if err != nil {
		t.Fatal(err)
	}
	var open api.QuestionsResult
	eventually(t, "the question at the other server", func() bool {
		q.must(api.Questions, struct{}{}, &open)
		return len(open.Questions) == 1
	})
	var won api.Success
	q.must(api.AnswerPermission, map[string]any{"sessionId": open.Questions[0].SessionID, "requestId": asked.RequestID, "result": map[string]string{"kind": "approve-once"}}, &won)
	if !won.Success {
		t.Error("the answer does not count")
	}
	p.await(event.SessionIdle, 1)
}
