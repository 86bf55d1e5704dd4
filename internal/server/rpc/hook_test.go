package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A listener is a model that remembers what it was asked.
type listener struct {
	mu   sync.Mutex
	last *model.Request
}

func (l *listener) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	l.mu.Lock()
	l.last = req
	l.mu.Unlock()
	return offline.Model{}.Ask(ctx, req, on)
}

func (l *listener) asked() *model.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// listening is a server whose model remembers, and whose hooks do not wait long for
// clients that left.
func listening(t *testing.T) (*testServer, *listener) {
	l := new(listener)
	return newTestServerWith(t, session.Options{
		Grace: 10 * time.Millisecond, Resolve: sessiontest.Always(session.Endpoint{Model: l, Name: "listener"}),
	}), l
}

func TestHooksOverTheWire(t *testing.T) {
	for _, test := range []struct {
		name string
		say  func(api.HookParams) (any, error)
		want string
	}{
		{"nothing said", func(api.HookParams) (any, error) { return api.HookResult{}, nil }, "PLAIN"},
		{"null said", func(api.HookParams) (any, error) { return json.RawMessage(`{"output":null}`), nil }, "PLAIN"},
		{"another prompt", func(p api.HookParams) (any, error) {
			if p.HookType != event.HookPromptSubmitted {
				return nil, nil
			}
			return json.RawMessage(`{"output":{"modifiedPrompt":"Reply with exactly: OTHER"}}`), nil
		}, "OTHER"},
		{"it fails", func(api.HookParams) (any, error) { return nil, errors.New("broken") }, "PLAIN"},
		{"it makes no sense", func(api.HookParams) (any, error) { return json.RawMessage(`[1]`), nil }, "PLAIN"},
	} {
		r, _ := listening(t)
		p := r.connect(rpc.Door{})
		p.serve = func(method string, params json.RawMessage) (any, error) {
			var h api.HookParams
			if err := json.Unmarshal(params, &h); err != nil || method != api.HooksInvoke || h.SessionID != "s" {
				return nil, jsonrpc.MethodNotFound(method)
			}
			return test.say(h)
		}
		p.must(api.SessionCreate, object{"sessionId": "s", "hooks": true}, nil)
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: PLAIN"}, nil)
		e := p.await(event.AssistantMessage)
		if d, err := event.As[event.AssistantMessageData](e); err != nil || d.Content != test.want {
			t.Errorf("%s: answer = %q, %v, want %q", test.name, d.Content, err, test.want)
		}
		p.await(event.SessionIdle)
	}
}

func TestTheTurnGoesOnWhenAClientLeavesOverItsHook(t *testing.T) {
	r, _ := listening(t)
	leaver := r.connect(rpc.Door{})
	leaver.serve = func(method string, _ json.RawMessage) (any, error) {
		if method == api.HooksInvoke {
			leaver.Close()
		}
		return nil, errors.New("gone")
	}
	leaver.must(api.SessionCreate, object{"sessionId": "s", "hooks": true}, nil)
	p := r.connect(rpc.Door{})
	p.must(api.SessionResume, object{"sessionId": "s"}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: ON"}, nil)
	p.await(event.SessionIdle)
}

func TestAClientLooksOverTheSystemPrompt(t *testing.T) {
	r, l := listening(t)
	p := r.connect(rpc.Door{})
	p.serve = func(method string, params json.RawMessage) (any, error) {
		var d api.TransformParams
		if err := json.Unmarshal(params, &d); err != nil || method != api.SystemTransform {
			return nil, jsonrpc.MethodNotFound(method)
		}
		for id, s := range d.Sections {
			d.Sections[id] = api.Section{Content: s.Content + " MARK-" + id}
		}
		return api.TransformResult{Sections: d.Sections}, nil
	}
	custom := object{"mode": "customize", "sections": object{"identity": object{"action": "transform"}, "safety": object{"action": "remove"}}}
	p.must(api.SessionCreate, object{"sessionId": "s", "systemMessage": custom}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: OK"}, nil)
	p.await(event.SessionIdle)
	if got := l.asked().System; strings.Count(got, " MARK-identity") != 1 || strings.Contains(got, "permission") {
		t.Errorf("system prompt = %q", got)
	}
	// One that cannot look it over uses it as it is.
	other := r.connect(rpc.Door{})
	other.must(api.SessionResume, object{"sessionId": "s", "systemMessage": custom}, nil)
	p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	other.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: AGAIN"}, nil)
	other.await(event.SessionIdle)
	if got := l.asked().System; strings.Count(got, " MARK-identity") != 0 {
		t.Errorf("system prompt = %q", got)
	}
}

func TestHeadersGoAlongWithTheRequestsOfOneTurn(t *testing.T) {
	r, l := listening(t)
	p := r.connect(rpc.Door{})
	p.must(api.SessionCreate, object{"sessionId": "s"}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: A", "requestHeaders": object{"x-test": "v"}}, nil)
	p.await(event.SessionIdle)
	if got := l.asked().Headers["x-test"]; got != "v" {
		t.Errorf("header = %q", got)
	}
	for e, err := range r.host.Log.Events(t.Context(), "s", 0) {
		if err != nil || strings.Contains(string(e.Bytes), "x-test") {
			t.Errorf("a header is in the log: %s, %v", e.Bytes, err)
		}
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: B"}, nil)
	p.await(event.SessionIdle)
	if got := l.asked().Headers; len(got) > 0 {
		t.Errorf("headers = %v in the next turn", got)
	}
}

func TestAClientKnowsBetterWhetherAModelSees(t *testing.T) {
	r, l := listening(t)
	p := r.connect(rpc.Door{})
	image := []object{{"type": "blob", "data": "AQI=", "mimeType": "image/png", "displayName": "a.png"}}
	sees := func(vision bool) object { return object{"supports": object{"vision": vision}} }
	images := func() (n int) {
		for _, m := range l.asked().Messages {
			n += len(m.Images)
		}
		return n
	}
	p.must(api.SessionCreate, object{"sessionId": "s", "modelCapabilities": sees(false)}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: A", "attachments": image}, nil)
	p.await(event.SessionIdle)
	if n := images(); n != 0 {
		t.Errorf("%d images were shown", n)
	}
	p.must(api.ModelSwitchTo, object{"sessionId": "s", "modelId": "m", "modelCapabilities": sees(true)}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: B"}, nil)
	p.await(event.SessionIdle)
	if n := images(); n != 1 {
		t.Errorf("%d images were shown, want 1", n)
	}
}
