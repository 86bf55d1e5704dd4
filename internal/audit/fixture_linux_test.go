package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// A peer is a client of a real engine in this process.
type peer struct {
	*jsonrpc.Conn
	t      *testing.T
	mu     sync.Mutex
	events map[event.SessionID][]event.Event
	notify chan struct{}
}

type object map[string]any

func connect(t *testing.T, n *daemon.Node) *peer {
	t.Helper()
	rwc, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, notify: make(chan struct{}, 1), events: make(map[event.SessionID][]event.Event)}
	p.Conn = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
	ran := make(chan struct{})
	go func() { defer close(ran); p.Run(context.Background()) }()
	t.Cleanup(func() { p.Close(); <-ran })
	p.must(api.Connect, nil, nil)
	return p
}

// handle takes events, and lets hooks say nothing.
func (p *peer) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	if req.Method == api.HooksInvoke {
		return api.HookResult{}, nil
	}
	if req.Method != api.SessionEvent {
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	var d api.EventParams
	if err := json.Unmarshal(req.Params, &d); err != nil {
		return nil, err
	}
	e, err := event.Parse(d.Seq, d.Event)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events[d.SessionID] = append(p.events[d.SessionID], e)
	select {
	case p.notify <- struct{}{}:
	default:
	}
	return nil, err
}

func (p *peer) must(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Call(ctx, method, params, result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// await waits for the nth event of a kind in a session.
func (p *peer) await(id event.SessionID, kind event.Type, nth int) event.Event {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		n := 0
		p.mu.Lock()
		for _, e := range p.events[id] {
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
			p.t.Fatalf("session %s has no %s number %d", id, kind, nth)
		}
	}
}

func (p *peer) count(id event.SessionID, kind event.Type) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events[id] {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// create makes a session.
func (p *peer) create(id event.SessionID, more object) {
	p.t.Helper()
	params := object{"sessionId": id, "model": "offline", "availableTools": nil}
	for key, value := range more {
		params[key] = value
	}
	p.must(api.SessionCreate, params, nil)
}

// send gives a session an input.
func (p *peer) send(id event.SessionID, prompt, key string) {
	p.t.Helper()
	p.must(api.SessionSend, api.SendParams{SessionID: id, Prompt: prompt, Key: key}, nil)
}

// ask gives a session an input, does what is in between, and waits until it is idle.
func (p *peer) ask(id event.SessionID, prompt, key string, between ...func()) {
	p.t.Helper()
	n := p.count(id, event.SessionIdle)
	p.send(id, prompt, key)
	for _, f := range between {
		f()
	}
	p.await(id, event.SessionIdle, n+1)
}

// requestID of a question.
func (p *peer) requestID(e event.Event) string {
	p.t.Helper()
	var d struct {
		RequestID string `json:"requestId"`
	}
	if err := e.Decode(&d); err != nil {
		p.t.Fatal(err)
	}
	return d.RequestID
}

// permit answers the nth permission of a session.
func (p *peer) permit(id event.SessionID, nth int, kind string) func() {
	return func() {
		p.t.Helper()
		p.must(api.AnswerPermission, object{"sessionId": id, "requestId": p.requestID(p.await(id, event.PermissionAsked, nth)), "result": object{"kind": kind}}, nil)
	}
}

var all = object{"abide": object{"approve": approval.All}}

// makeFolder makes a data folder with everything in it that can go wrong: turns,
// calls, questions, tasks, forks, rewinds, compactions, agents, hooks.
func makeFolder(t *testing.T, dir string) {
	t.Helper()
	work := t.TempDir()
	n, err := daemon.Open(context.Background(), daemon.Config{Dir: dir, Version: "test", Defaults: api.Defaults{Cwd: work, Model: "offline"}})
	if err != nil {
		t.Fatal(err)
	}
	p := connect(t, n)
	p.makeTalks()
	p.makeCommands()
	p.makeQuestions(work)
	p.makeHistory(work)
	p.Close()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// makeTalks makes sessions in which nothing is done.
func (p *peer) makeTalks() {
	for _, id := range []event.SessionID{"talk", "root", "long"} {
		p.create(id, all)
		p.ask(id, "Reply with exactly: ONE", string(id)+"-1")
		p.ask(id, "Reply with exactly: TWO", string(id)+"-2")
	}
	p.must(api.SessionDestroy, object{"sessionId": "talk"}, nil)
	p.must(api.SessionResume, object{"sessionId": "talk"}, nil)
	p.ask("talk", "Reply with exactly: THREE", "talk-3")
	var forked api.ForkResult
	p.must(api.SessionsFork, api.ForkParams{SessionID: "root", Name: "branch"}, &forked)
	p.must(api.SessionResume, object{"sessionId": forked.SessionID}, nil)
	p.ask(forked.SessionID, "Reply with exactly: FORKED", "fork-1")
	p.create("agent", all)
	p.ask("agent", `Use task with {"description":"d","prompt":"Reply with exactly: FOUND","agent_type":"task","name":"n"}`, "")
	p.create("hooks", object{"hooks": true, "abide": all["abide"]})
	p.ask("hooks", "Run `echo hooked`", "")
}

// makeCommands makes sessions that run commands.
func (p *peer) makeCommands() {
	p.create("commands", all)
	p.ask("commands", "Run `echo one; exit 3`", "")
	p.background("commands")
	p.kill("killed", func() {})
	p.await("killed", event.SystemNotification, 1)
	p.await("killed", event.SessionIdle, 2)
	p.kill("held", func() { p.must(api.SessionAbort, api.AbortParams{SessionID: "held", KeepQueue: true}, nil) })
	p.ask("held", "Reply with exactly: GOES ON", "")
}

// kill makes a session that runs a command in the background, and kills the command when
// something was done.
func (p *peer) kill(id event.SessionID, before func()) {
	p.create(id, all)
	p.ask(id, "Run `echo up; exec sleep 1000` in the background", "")
	before()
	var r api.TasksResult
	p.must(api.Tasks, api.TasksParams{SessionID: id}, &r)
	p.must(api.TaskStop, api.TaskParams{SessionID: id, TaskID: r.Tasks[0].TaskID}, nil)
}

// background runs a command that ends when its turn is over, and waits until the
// model was told.
func (p *peer) background(id event.SessionID) {
	gate := filepath.Join(p.t.TempDir(), "gate")
	p.ask(id, fmt.Sprintf("Run `while [ ! -e %s ]; do sleep 0.02; done; echo two` in the background", gate), "")
	idle := p.count(id, event.SessionIdle)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.await(id, event.SystemNotification, 1)
	p.await(id, event.SessionIdle, idle+1)
}

// makeQuestions makes sessions that ask.
func (p *peer) makeQuestions(work string) {
	asks := object{
		"requestPermission": true, "requestUserInput": true, "requestElicitation": true,
		"tools": []object{{"name": "lookup", "description": "Looks up.", "skipPermission": true}, {"name": "fetch", "description": "Fetches."}},
	}
	for _, id := range []event.SessionID{"asks", "denied", "stopped", "open", "waits", "form", "rests"} {
		p.create(id, asks)
	}
	p.ask("asks", "Run `echo asked`", "", p.permit("asks", 1, "approve-once"))
	p.ask("asks", "Use lookup with value 'x', then reply with the result", "", func() {
		id := p.requestID(p.await("asks", event.ExternalAsked, 1))
		p.must(api.AnswerTool, object{"sessionId": "asks", "requestId": id, "result": "found"}, nil)
	})
	p.ask("asks", "Use fetch with value 'y', then reply with the result", "", p.permit("asks", 2, "approve-once"), func() {
		id := p.requestID(p.await("asks", event.ExternalAsked, 2))
		p.must(api.AnswerTool, object{"sessionId": "asks", "requestId": id, "result": "fetched"}, nil)
	})
	p.answerUser("asks")
	p.ask("denied", "Run `echo no`", "", p.permit("denied", 1, "reject"))
	p.ask("denied", "Run `echo yes`", "", p.permit("denied", 2, "approve-for-session"))
	p.ask("denied", "Run `echo yes`", "")
	p.ask("stopped", "Run `echo never`", "", func() {
		p.await("stopped", event.PermissionAsked, 1)
		p.must(api.SessionAbort, object{"sessionId": "stopped"}, nil)
	})
	p.ask("stopped", "Reply with exactly: AGAIN", "")
	p.send("open", "Run `echo open`", "")
	p.await("open", event.PermissionAsked, 1)
	p.must(api.SessionsFork, api.ForkParams{SessionID: "open"}, nil)
	p.send("waits", "Run `echo first`", "")
	p.await("waits", event.PermissionAsked, 1)
	p.send("waits", "Reply with exactly: SECOND", "")
	p.fillForm()
	p.raiseBudget()
	p.send("rests", "Use lookup with value 'z', then reply with the result", "")
	p.await("rests", event.ExternalAsked, 1)
	p.must(api.SessionSuspend, object{"sessionId": "rests"}, nil)
}

// answerUser answers a question of the model.
func (p *peer) answerUser(id event.SessionID) {
	p.ask(id, "Ask me: which?", "", func() {
		asked := p.requestID(p.await(id, event.UserInputAsked, 1))
		p.must(api.AnswerUserInput, object{"sessionId": id, "requestId": asked, "response": object{"answer": "that", "wasFreeform": true}}, nil)
	})
}

// fillForm has a form filled in.
func (p *peer) fillForm() {
	done := make(chan error, 1)
	go func() {
		done <- p.Call(context.Background(), api.UIElicitation, object{"sessionId": "form", "message": "Name?", "requestedSchema": object{"type": "object"}}, nil)
	}()
	id := p.requestID(p.await("form", event.ElicitationAsked, 1))
	p.must(api.AnswerElicitation, object{"sessionId": "form", "requestId": id, "result": object{"action": "decline"}}, nil)
	if err := <-done; err != nil {
		p.t.Fatal(err)
	}
	p.ask("form", "Reply with exactly: FILLED", "")
}

// raiseBudget has a session reach its budget, and go on.
func (p *peer) raiseBudget() {
	p.create("budget", object{"abide": object{"limit": object{"sessionTokens": 0}}})
	p.ask("budget", "Reply with exactly: MORE", "", func() {
		id := p.requestID(p.await("budget", event.ElicitationAsked, 1))
		p.must(api.AnswerElicitation, object{"sessionId": "budget", "requestId": id, "result": object{"action": "accept", "content": object{}}}, nil)
	})
}

// makeHistory takes things back, and compacts.
func (p *peer) makeHistory(work string) {
	p.create("back", all)
	p.ask("back", "Reply with exactly: KEPT", "")
	path := filepath.Join(work, "made.txt")
	p.ask("back", fmt.Sprintf(`Use create with {"path":%q,"file_text":"hello"}`, path), "")
	at, err := p.await("back", event.UserMessage, 2).Head()
	if err != nil {
		p.t.Fatal(err)
	}
	p.must(api.HistoryRewind, api.RewindParams{SessionID: "back", EventID: at.ID}, nil)
	if _, err := os.Stat(path); err == nil {
		p.t.Fatal("the rewind has not taken the file back")
	}
	p.ask("back", "Reply with exactly: AFTER", "")
	p.ask("back", fmt.Sprintf(`Use view with {"path":%q}`, work), "")
	var done api.CompactResult
	p.must(api.HistoryCompact, api.CompactParams{SessionID: "long"}, &done)
	p.must(api.HistoryUncompact, object{"sessionId": "long"}, nil)
	p.ask("long", "Reply with exactly: END", "")
}
