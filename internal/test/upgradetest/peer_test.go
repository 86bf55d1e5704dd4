package upgradetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// patience is how long a runtime may take for anything.
const patience = time.Minute

// object is what a request says.
type object map[string]any

// A peer is a client of a runtime that remembers what it was shown.
type peer struct {
	t   *testing.T
	rpc *jsonrpc.Conn
	ran chan struct{} // closed when the connection is over

	hold event.SessionID // the session whose hooks are not answered

	mu   sync.Mutex
	cond sync.Cond
	seen map[string][]event.Event // events that were shown of each session
	over error                    // reason why nothing more will be shown; nil unless that is so
}

// newPeer makes a client of a connection.
func newPeer(t *testing.T, rwc io.ReadWriteCloser) *peer {
	t.Helper()
	p := &peer{t: t, ran: make(chan struct{}), seen: make(map[string][]event.Event)}
	p.cond.L = &p.mu
	p.rpc = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
	go func() { // close waits for it
		defer close(p.ran)
		p.end(p.rpc.Run(context.Background()))
	}()
	p.call(api.Connect, object{}, nil)
	return p
}

func (p *peer) close() {
	p.rpc.Close()
	<-p.ran
}

// end tells those who wait that nothing more will be shown.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = err
	p.cond.Broadcast()
}

// handle takes what the runtime sends. Questions stay open; hooks are answered.
func (p *peer) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case api.SessionEvent:
		var n struct {
			SessionID string          `json:"sessionId"`
			Event     json.RawMessage `json:"event"`
		}
		if err := req.Decode(&n); err != nil {
			return nil, err
		}
		e, err := event.Parse(0, n.Event)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen[n.SessionID] = append(p.seen[n.SessionID], e)
		p.cond.Broadcast()
		return nil, nil
	case api.HooksInvoke:
		var h api.HookParams
		if err := req.Decode(&h); err != nil {
			return nil, err
		}
		if h.SessionID != p.hold {
			return api.HookResult{Output: hookAnswers[h.HookType]}, nil
		}
	case api.SessionLifecycle:
		return nil, nil
	}
	<-ctx.Done()
	return nil, jsonrpc.ErrClosed
}

// call asks the runtime, and must succeed.
func (p *peer) call(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.rpc.Call(ctx, method, params, result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// ask makes a request that is answered when somebody has answered a question, and
// does not wait for that.
func (p *peer) ask(method string, params any) {
	go func() { // ends with the connection
		_ = p.rpc.Call(context.Background(), method, params, nil)
	}()
}

// until waits for the nth event of a kind in a session, from 1, and returns it.
func (p *peer) until(id string, kind event.Type, n int) event.Event {
	p.t.Helper()
	return p.await(id, fmt.Sprintf("%s number %d", kind, n), func(seen []event.Event) (event.Event, bool) {
		found := 0
		for _, e := range seen {
			if e.Type == kind {
				if found++; found == n {
					return e, true
				}
			}
		}
		return event.Event{}, false
	})
}

// nth waits for the event of a session with that index, from 0.
func (p *peer) nth(id string, i int) event.Event {
	p.t.Helper()
	return p.await(id, fmt.Sprintf("event %d", i), func(seen []event.Event) (event.Event, bool) {
		if i < len(seen) {
			return seen[i], true
		}
		return event.Event{}, false
	})
}

// await waits until an event is found among those that were shown of a session.
func (p *peer) await(id, what string, find func([]event.Event) (event.Event, bool)) event.Event {
	p.t.Helper()
	late := time.AfterFunc(patience, func() { p.end(fmt.Errorf("it did not come in %v", patience)) })
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if e, ok := find(p.seen[id]); ok {
			return e
		}
		if p.over != nil {
			p.t.Fatalf("session %s: waiting for %s: %v: %v", id, what, p.over, kinds(p.seen[id]))
		}
		p.cond.Wait()
	}
}

func kinds(events []event.Event) (list []event.Type) {
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list
}

// count counts the events of a kind that were shown of a session.
func (p *peer) count(id string, kind event.Type) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.seen[id] {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// requestID is the id under which a question is answered.
func requestID(t *testing.T, e event.Event) string {
	t.Helper()
	var body struct {
		Data struct {
			RequestID string `json:"requestId"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Bytes, &body); err != nil {
		t.Fatal(err)
	}
	return body.Data.RequestID
}
