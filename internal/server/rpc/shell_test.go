package rpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/server/rpc"
)

// A fakeShell remembers what it was asked to run; a command ends when it is
// killed.
type fakeShell struct {
	runs chan rpc.Run
	end  chan int
}

func (f fakeShell) Exec(_ context.Context, r rpc.Run) (api.Task, error) {
	f.runs <- r
	return api.Task{TaskID: "p1"}, nil
}

func (f fakeShell) Await(ctx context.Context, _ event.SessionID, _ string) (int, error) {
	select {
	case n := <-f.end:
		return 128 + n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (f fakeShell) Kill(_ context.Context, _ event.SessionID, task string, signal int) (bool, error) {
	if task == "p1" {
		f.end <- signal
	}
	return task == "p1", nil
}

func TestACommandOfAClientIsRunAndItsEndIsTold(t *testing.T) {
	r := newTestServer(t)
	shell := fakeShell{make(chan rpc.Run, 1), make(chan int, 1)}
	r.srv = rpc.New(r.host, rpc.Options{Version: "test", Shell: shell})
	dir := t.TempDir()
	p := r.open(api.SessionCreate, object{"workingDirectory": dir, "abide": object{"env": []string{"A=B"}}})
	var run api.ShellExecResult
	p.must(api.ShellExec, object{"sessionId": "s", "command": "make", "timeout": 1500}, &run)
	if got := <-shell.runs; run.ProcessID != "p1" || got.Command != "make" || got.Dir != dir || got.Limit.Milliseconds() != 1500 || len(got.Env) != 1 || got.Key == "" {
		t.Errorf("run is %+v, named %s", got, run.ProcessID)
	}
	var none, killed api.ShellKillResult
	p.must(api.ShellKill, object{"sessionId": "s", "processId": "p2"}, &none)
	p.must(api.ShellKill, object{"sessionId": "s", "processId": "p1", "signal": "SIGKILL"}, &killed)
	if none.Killed || !killed.Killed {
		t.Errorf("killed are %v and %v", none.Killed, killed.Killed)
	}
	var d api.ShellExitParams
	if err := json.Unmarshal(<-p.exits, &d); err != nil || d.ProcessID != "p1" || d.ExitCode != 137 {
		t.Errorf("the end is told as %+v", d)
	}
	for want, test := range map[string]struct {
		method string
		params object
	}{
		"command: it is empty":        {api.ShellExec, object{"sessionId": "s"}},
		"cwd: want an absolute path":  {api.ShellExec, object{"sessionId": "s", "command": "x", "cwd": "here"}},
		"timeout: it is negative":     {api.ShellExec, object{"sessionId": "s", "command": "x", "timeout": -1}},
		"processId: it is missing":    {api.ShellKill, object{"sessionId": "s"}},
		`signal: "SIGNAL" is unknown`: {api.ShellKill, object{"sessionId": "s", "processId": "p1", "signal": "SIGNAL"}},
	} {
		if fault := p.refused(test.method, test.params); !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %s", test.method, fault.Message)
		}
	}
	if fault := newTestServer(t).open(api.SessionCreate, nil).refused(api.ShellExec, object{"sessionId": "s", "command": "x"}); fault.Code != jsonrpc.CodeMethodNotFound {
		t.Error(fault) // a server without commands lacks the method
	}
}
