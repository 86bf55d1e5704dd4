package upgradetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// patience is how long the program may take for anything.
const patience = 20 * time.Second

// object is what a request says.
type object map[string]any

// A program is a running program of any version, and its client.
type program struct {
	t   *testing.T
	dir string // holds the data folder, the files of the sessions and the scenario
	cmd *exec.Cmd
	rpc *jsonrpc.Conn

	mu   sync.Mutex
	cond sync.Cond
	seen map[string][]event.Event // what was shown of each session
	over error                    // why nothing more will be shown
}

// startProgram starts the program on the data folder in dir, in an environment that says
// nothing about this machine.
func startProgram(t *testing.T, binary, dir string) *program {
	t.Helper()
	p := &program{t: t, dir: dir, seen: make(map[string][]event.Event)}
	p.cond.L = &p.mu
	p.cmd = exec.Command(binary, "--headless", "--stdio", "--home", filepath.Join(dir, "home"))
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	p.cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.rpc = jsonrpc.New(pipe{out, in}, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
	go func() { // kill and leave wait for it
		p.end(p.rpc.Run(context.Background()))
	}()
	p.call(api.Connect, object{}, nil)
	return p
}

// end tells those who wait that nothing more will be shown.
func (p *program) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = err
	p.cond.Broadcast()
}

type pipe struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipe) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipe) Close() error                { return p.in.Close() }

// leave ends the connection, and with it the program.
func (p *program) leave() {
	p.rpc.Close()
	_ = p.cmd.Wait() // its exit code says only how it was ended
}

// kill ends the program as a crash would.
func (p *program) kill() {
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.leave()
}

// handle takes what the program sends. Questions stay open. Hooks are answered, but
// for those of the session "hooked".
func (p *program) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
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
		if h.SessionID != "hooked" {
			return api.HookResult{Output: hookAnswers[h.HookType]}, nil
		}
	case api.SessionLifecycle:
		return nil, nil
	}
	<-ctx.Done()
	return nil, jsonrpc.ErrClosed
}

// call asks the program, and must succeed.
func (p *program) call(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.rpc.Call(ctx, method, params, result); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// ask makes a request that is answered when somebody has answered a question, and
// does not wait for that.
func (p *program) ask(method string, params any) {
	go func() { // ends with the connection
		_ = p.rpc.Call(context.Background(), method, params, nil)
	}()
}

// until waits for the nth event of a kind in a session, from 1, and returns it.
func (p *program) until(id string, kind event.Type, n int) event.Event {
	p.t.Helper()
	late := time.AfterFunc(patience, func() { p.end(fmt.Errorf("it did not come in %v", patience)) })
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		found := 0
		for _, e := range p.seen[id] {
			if e.Type == kind {
				if found++; found == n {
					return e
				}
			}
		}
		if p.over != nil {
			p.t.Fatalf("session %s: waiting for %s number %d: %v: %v", id, kind, n, p.over, kinds(p.seen[id]))
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
func (p *program) count(id string, kind event.Type) int {
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

// open makes a session that works in the folder "work".
func (p *program) open(id, model string, more object) {
	p.t.Helper()
	params := object{
		"sessionId": id, "model": model, "workingDirectory": filepath.Join(p.dir, "work"), "availableTools": nil,
		"requestPermission": true, "requestUserInput": true, "requestElicitation": true, "requestExitPlanMode": true,
		"tools":    []object{{"name": "lookup", "description": "Looks a thing up.", "skipPermission": true}},
		"commands": []object{{"name": "tidy", "description": "Tidies up."}},
	}
	for key, value := range more {
		params[key] = value
	}
	p.call(api.SessionCreate, params, nil)
}

// send gives a session an input and does not wait for what follows.
func (p *program) send(id, prompt string, more object) {
	p.t.Helper()
	params := object{"sessionId": id, "prompt": prompt}
	for key, value := range more {
		params[key] = value
	}
	p.call(api.SessionSend, params, nil)
}

// say gives a session an input and waits until it is idle.
func (p *program) say(id, prompt string) {
	p.t.Helper()
	n := p.count(id, event.SessionIdle)
	p.send(id, prompt, nil)
	p.until(id, event.SessionIdle, n+1)
}

// consent sends an input, gives one decision for each permission that it asks for,
// and waits until the session is idle.
func (p *program) consent(id, prompt string, decisions ...object) {
	p.t.Helper()
	asked, idle := p.count(id, event.PermissionAsked), p.count(id, event.SessionIdle)
	p.send(id, prompt, nil)
	for i, d := range decisions {
		p.decide(id, p.until(id, event.PermissionAsked, asked+i+1), d)
	}
	p.until(id, event.SessionIdle, idle+1)
}

func (p *program) decide(id string, asked event.Event, decision object) {
	p.t.Helper()
	p.call(api.AnswerPermission, object{"sessionId": id, "requestId": requestID(p.t, asked), "result": decision, "abideKey": "key-" + requestID(p.t, asked)}, nil)
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
