package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/provider"
)

// A gateway passes connections on to a server, until it is told not to.
type gateway struct {
	net.Listener
	server string
	work   sync.WaitGroup

	mu    sync.Mutex
	how   passing
	conns map[net.Conn]bool
}

// passing says what becomes of connections.
type passing int

const (
	passed    passing = iota
	refused           // they are reset
	swallowed         // they are made, and nothing arrives
)

func newGateway(t *testing.T, server string) *gateway {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{Listener: l, server: server, conns: make(map[net.Conn]bool)}
	g.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.work.Go(func() { g.pass(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.set(refused)
		g.work.Wait()
	})
	return g
}

// set says what becomes of connections from now on. Those that are open end, unless they are passed
// on: whoever is at a machine that has vanished finds out when nothing is acknowledged, which no
// program on the same machine can show.
func (g *gateway) set(how passing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.how = how
	if how != passed {
		for c := range g.conns {
			c.Close()
		}
		clear(g.conns)
	}
}

// hold notes a connection, unless it is to be passed on no more.
func (g *gateway) hold(c net.Conn) passing {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.how != refused {
		g.conns[c] = true
	}
	return g.how
}

func (g *gateway) pass(client net.Conn) {
	defer client.Close()
	switch g.hold(client) {
	case refused:
		return
	case swallowed:
		_, _ = io.Copy(io.Discard, client)
		return
	}
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer server.Close()
	if g.hold(server) != passed {
		return
	}
	g.work.Go(func() { _, _ = io.Copy(client, server); client.Close() })
	_, _ = io.Copy(server, client)
}

// behind has the other servers reach a server through a gateway.
func behind(t *testing.T, g **gateway) func(*daemon.Config) {
	return func(c *daemon.Config) {
		*g = newGateway(t, c.Cluster.Listener.Addr().String())
		c.Cluster.Advertise = (*g).Addr().String()
	}
}

// Servers that do not reach each other, and the database they do, keep their sessions: none moves to
// the server that is asked, and nobody waits for ever.
func TestServersThatDoNotReachEachOtherKeepTheirSessions(t *testing.T) {
	for name, how := range map[string]passing{"connections are refused": refused, "nothing arrives": swallowed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			var g *gateway
			a, b := c.server(t.TempDir(), behind(t, &g)), c.server(t.TempDir())
			p, q := connect(t, a), connect(t, b)
			p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
			c.db.Exec(t, "cluster", "UPDATE sessions SET machine = ''") // as if its workspace were elsewhere
			q.must(api.SessionResume, api.OpenParams{SessionID: "s"}, nil)
			owners := c.db.Exec(t, "cluster", "SELECT * FROM owners")
			g.set(how)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := q.Call(ctx, api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: LOST"}, nil)
			if wire := new(jsonrpc.Error); !errors.As(err, &wire) || !strings.Contains(err.Error(), g.Addr().String()) {
				t.Errorf("a message that cannot be passed on: %v", err)
			}
			p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
			p.await(event.SessionIdle, 1)
			q.must(api.SessionCreate, api.OpenParams{SessionID: "own"}, nil)
			g.set(passed)
			eventually(t, "a message that is passed on again", func() bool {
				return q.Call(t.Context(), api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: TWO"}, nil) == nil
			})
			p.await(event.SessionIdle, 2)
			if now := c.db.Exec(t, "cluster", "SELECT * FROM owners WHERE name = 's'"); now != owners {
				t.Errorf("the owner was %s and is %s", owners, now)
			}
		})
	}
}

// A heldModel is the offline model behind HTTP, which answers when it is told to. A message AGENT
// gives the rest of it to an agent.
type heldModel struct {
	*openaitest.Server
	asked   chan struct{} // a value for each request
	answers chan struct{} // a value for each answer
	count   atomic.Int64
}

func newHeldModel(t *testing.T) *heldModel {
	m := &heldModel{asked: make(chan struct{}, 100), answers: make(chan struct{}, 100)}
	m.Server = openaitest.NewServer(delegating{}, openaitest.Options{Fault: func(int, []byte) openaitest.Fault {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			m.count.Add(1)
			m.asked <- struct{}{}
			select {
			case <-m.answers:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		}
	}})
	t.Cleanup(m.Close)
	return m
}

// provider returns the provider of sessions that ask the model.
func (m *heldModel) provider() *api.Provider {
	return &provider.Provider{Type: "openai", BaseURL: m.URL, APIKey: "k"}
}

// delegating is the offline model, which gives work to agents.
type delegating struct{ offline.Model }

func (d delegating) Ask(ctx context.Context, r *model.Request, on func(model.Delta)) (*model.Reply, error) {
	turn := local.Read(r.Messages)
	_, work, is := strings.Cut(turn.Instruction, "AGENT ")
	switch {
	case !is:
		return d.Model.Ask(ctx, r, on)
	case len(turn.Outcomes) > 0:
		return &model.Reply{Text: "DONE", Finish: "stop"}, nil
	}
	args, err := json.Marshal(map[string]string{"description": "Work", "prompt": work, "agent_type": "task", "name": "worker"})
	return &model.Reply{Calls: []model.Call{{ID: "work", Name: "task", Arguments: args}}, Finish: "tool_calls"}, err
}

// An outage of the database that is longer than a server may be silent kills nobody: sessions stay
// where they are, and what a model answers meanwhile is stored afterwards, without another request.
func TestAnOutageMovesNothingAndRepeatsNoRequest(t *testing.T) {
	c := newCluster(t)
	c.pace = postgres.Pace{Beat: 100 * time.Millisecond, Suspend: 2 * time.Second, Dead: 3 * time.Second}
	m := newHeldModel(t)
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s", Model: "m", Provider: m.provider()}, nil)
	c.db.Exec(t, "cluster", "UPDATE sessions SET machine = ''") // as if its workspace were elsewhere
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: ONE"}, nil)
	<-m.asked
	state := "SELECT s.id, o.fence FROM servers s LEFT JOIN owners o ON o.server = s.id WHERE NOT s.dead ORDER BY 1"
	before := c.db.Exec(t, "cluster", state)
	c.db.Down(t, syscall.SIGQUIT)
	m.answers <- struct{}{}
	time.Sleep(2 * c.pace.Dead) // that nobody is found dead in this time is what is tested
	c.db.Up(t)
	p.await(event.SessionIdle, 1)
	q.must(api.SessionResume, api.OpenParams{SessionID: "s"}, nil)
	if after := c.db.Exec(t, "cluster", state); after != before {
		t.Errorf("servers and fences were\n%s\nand are\n%s", before, after)
	}
	if n := m.count.Load(); n != 1 {
		t.Errorf("%d requests to the model", n)
	}
}

// A client has questions of sessions that two servers work on, one of them of an agent. It is told of
// all, at whatever server it is, and each answer reaches its question.
func TestQuestionsOfTwoServersAndOfAnAgent(t *testing.T) {
	c := newCluster(t)
	m := newHeldModel(t)
	for range 20 {
		m.answers <- struct{}{}
	}
	a, b := c.server(t.TempDir()), c.server(t.TempDir())
	p, q := connect(t, a), connect(t, b)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "one", RequestPermission: true}, nil)
	two := api.OpenParams{SessionID: "two", RequestPermission: true, Model: "m", Provider: m.provider()}
	q.must(api.SessionCreate, two, nil)
	p.must(api.SessionResume, two, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "one", Prompt: "Run `echo one`"}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "two", Prompt: "AGENT Run `echo two`"}, nil)
	var open api.QuestionsResult
	eventually(t, "the questions of both", func() bool {
		p.must(api.Questions, struct{}{}, &open)
		return len(open.Questions) == 2
	})
	for _, question := range open.Questions {
		e, err := event.Parse(0, question.Event)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := event.As[event.PermissionAskedData](e)
		if err != nil {
			t.Fatal(err)
		}
		answer := func(session event.SessionID) bool {
			var won api.Success
			err := p.Call(t.Context(), api.AnswerPermission, map[string]any{"sessionId": session, "requestId": asked.RequestID, "result": map[string]string{"kind": "approve-once"}}, &won)
			return err == nil && won.Success
		}
		if other := map[event.SessionID]event.SessionID{"one": "two"}[question.SessionID]; other != "" && answer(other) {
			t.Error("an answer counts for the question of another session")
		}
		if !answer(question.SessionID) {
			t.Errorf("the answer to the question of %s does not count", question.SessionID)
		}
	}
	if agents := c.db.Exec(t, "cluster", "SELECT convert_from(family, 'UTF8') FROM sessions WHERE family IS NOT NULL"); agents != "two" {
		t.Errorf("agents work for %q", agents)
	}
	p.await(event.SessionIdle, 2)
}
