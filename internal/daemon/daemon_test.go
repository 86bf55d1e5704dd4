package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestMain(m *testing.M) {
	// The wait for a lock cannot be interrupted; it ends with the lock's holder.
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *daemon.Node {
	t.Helper()
	n, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Version: "test", Defaults: api.Defaults{Cwd: dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// A peer is a client in this process.
type peer struct {
	*jsonrpc.Conn
	t      *testing.T
	mu     sync.Mutex
	events []event.Event
	notify chan struct{}
}

func connect(t *testing.T, n *daemon.Node) *peer {
	t.Helper()
	rwc, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, notify: make(chan struct{}, 1)}
	p.Conn = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
	ran := make(chan struct{})
	go func() { defer close(ran); p.Run(context.Background()) }()
	t.Cleanup(func() { p.Close(); <-ran })
	p.must(api.Connect, nil, nil)
	return p
}

func (p *peer) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	if req.Method != api.SessionEvent {
		return nil, nil
	}
	var d api.EventParams
	if err := json.Unmarshal(req.Params, &d); err != nil {
		return nil, err
	}
	e, err := event.Parse(d.Seq, d.Event)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
	select {
	case p.notify <- struct{}{}:
	default:
	}
	return nil, err
}

func (p *peer) must(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Call(ctx, method, params, result); err != nil {
		p.t.Fatal(err)
	}
}

// await waits for the nth event of a kind.
func (p *peer) await(kind event.Type, nth int) event.Event {
	p.t.Helper()
	timeout := time.After(time.Minute)
	for {
		n := 0
		p.mu.Lock()
		for _, e := range p.events {
			if e.Type == kind {
				if n++; n == nth {
					p.mu.Unlock()
					return e
				}
			}
		}
		p.mu.Unlock()
		select {
		case <-p.notify:
		case <-timeout:
			p.t.Fatalf("no %s number %d", kind, nth)
		}
	}
}

func answer(t *testing.T, e event.Event) string {
	t.Helper()
	d, err := event.As[event.AssistantMessageData](e)
	if err != nil {
		t.Fatal(err)
	}
	return d.Content
}

func TestARelayTakesOverFromTheEngine(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	second, third := open(t, dir), open(t, dir)
	if !first.Engine() || second.Engine() || third.Engine() {
		t.Fatal("the first process on a folder is its engine, and no other")
	}
	p, q := connect(t, second), connect(t, third)
	for i, c := range []*peer{p, q} {
		id := []string{"p", "q"}[i]
		c.must(api.SessionCreate, map[string]any{"sessionId": id, "requestPermission": true,
			"tools": []any{map[string]any{"name": "look"}}}, nil)
		c.must(api.SessionSend, api.SendParams{SessionID: event.SessionID(id), Prompt: "Use look with value 'a', then reply with the result"}, nil)
		c.await(event.PermissionAsked, 1)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for i, c := range []*peer{p, q} {
		id := []string{"p", "q"}[i]
		asked, _ := event.As[event.PermissionAskedData](c.await(event.PermissionAsked, 1))
		var won api.Success
		c.must(api.AnswerPermission, map[string]any{"sessionId": id, "requestId": asked.RequestID, "result": map[string]any{"kind": "approve-once"}}, &won)
		if !won.Success {
			t.Errorf("%s: the answer did not win", id)
		}
		call, _ := event.As[event.ExternalAskedData](c.await(event.ExternalAsked, 1))
		c.must(api.AnswerTool, map[string]any{"sessionId": id, "requestId": call.RequestID, "result": "seen by " + id}, &won)
		if got := answer(t, c.await(event.AssistantMessage, 2)); got != "seen by "+id {
			t.Errorf("%s: answer = %q", id, got)
		}
		c.await(event.SessionIdle, 1)
		seen := map[string]bool{}
		c.mu.Lock()
		for _, e := range c.events {
			head, _ := e.Head()
			if seen[head.ID] {
				t.Errorf("%s: %s was shown twice", id, e.Type)
			}
			seen[head.ID] = true
		}
		c.mu.Unlock()
	}
	if second.Engine() == third.Engine() {
		t.Error("exactly one of the two relays must be the engine now")
	}
}

func TestAVisitorGoesOnWithNothing(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(t.TempDir(), "slow.json")
	if err := os.WriteFile(scenario, []byte(`{"rules":[{"reply":{"text":"late","delay":"1h"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first := open(t, dir)
	p := connect(t, first)
	p.must(api.SessionCreate, map[string]any{"sessionId": "s", "model": "scripted:" + scenario}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "hello"}, nil)
	p.await(event.AssistantTurnStart, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(scenario, []byte(`{"rules":[{"reply":{"text":"at last"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	visitor, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Visitor: true})
	if err != nil {
		t.Fatal(err)
	}
	var before, after api.StatusResult
	q := connect(t, visitor)
	q.must(api.Status, api.SessionParams{SessionID: "s"}, &before)
	q.must(api.Status, api.SessionParams{SessionID: "s"}, &after)
	if !before.Active || after.Position != before.Position {
		t.Errorf("a visitor's look moved the session from %d to %d (active: %v)", before.Position, after.Position, before.Active)
	}
	if err := visitor.Close(); err != nil {
		t.Fatal(err)
	}
	last := connect(t, open(t, dir))
	last.must(api.SessionResume, map[string]any{"sessionId": "s", "continuePendingWork": true}, nil)
	var messages api.EventsResult
	for done := false; !done; {
		var st api.StatusResult
		last.must(api.Status, api.SessionParams{SessionID: "s"}, &st)
		done = !st.Active
	}
	last.must(api.SessionGetMessages, api.SessionParams{SessionID: "s"}, &messages)
	if !strings.Contains(fmt.Sprintf("%s", messages.Events), "at last") {
		t.Errorf("the turn did not end: %s", messages.Events)
	}
}
