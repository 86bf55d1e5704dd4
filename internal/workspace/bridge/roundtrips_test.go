package bridge_test

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/workspace"
)

// A requestLog is the names of the requests that a client makes.
type requestLog struct {
	mu    sync.Mutex
	names []string
}

func (l *requestLog) add(at string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, path.Base(at))
}

// take returns the requests since the last time.
func (l *requestLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names
	l.names = nil
	return names
}

// toolsOver returns the tools of a session whose workspace is elsewhere. It keeps replaced
// files in a folder.
func toolsOver(t *testing.T, ws workspace.Workspace, dir, keep string) map[string]tool.Tool {
	t.Helper()
	s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir, Mode: scope.Write}}, nil)
	must(t, err)
	notes, kept := t.TempDir(), files.NewCheckpoints(keep, ws.Files)
	commands := bash.New(bash.Options{Processes: ws.Processes, Notes: func(event.SessionID) (string, error) { return notes, nil }})
	tools := map[string]tool.Tool{}
	for _, one := range append(commands.Tools(), files.New(files.Options{
		Files:       func(tool.Call) (workspace.Files, error) { return ws.Files, nil },
		Scope:       func(context.Context, tool.Call) (*scope.Scope, error) { return s, nil },
		Checkpoints: func(event.SessionID) (*files.Checkpoints, error) { return kept, nil },
	})...) {
		tools[one.Spec().Name] = one
	}
	return tools
}

// Each request costs a round trip, which is what a workspace far away costs most. A call asks
// once to be judged, and once to be carried out; a change is judged again before it is made,
// and a command is started, waited for, read, and marked as seen.
func TestRoundTripsOfACall(t *testing.T) {
	r := &remoteWorkspace{wire: newBreaker(unixSocket(t)), records: t.TempDir()}
	r.dir = t.TempDir()
	r.serve(t)
	defer r.stop()
	c, log := r.connect(t), new(requestLog)
	c.OnRequest(log.add)
	must(t, os.WriteFile(filepath.Join(r.dir, "f"), []byte("one\ntwo\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(r.dir, "large"), []byte(strings.Repeat("a line\n", 1_000_000)), 0o644))
	tools := toolsOver(t, c.Workspace(), r.dir, t.TempDir())
	log.take()
	for i, call := range []struct{ tool, arguments, asked, run string }{
		{"view", `{"path":"f"}`, "Judge", "Show"},
		{"view", `{"path":"f","view_range":[1,1]}`, "Judge", "Show"},
		{"view", `{"path":"large","view_range":[900000,900001]}`, "Judge", "Show"},
		{"view", `{"path":"large","forceReadLargeFiles":true}`, "Judge", "Show"},
		{"view", `{"path":"."}`, "Judge", "Show"},
		{"edit", `{"path":"f","old_str":"one","new_str":"three"}`, "Judge", "Judge Apply"},
		{"create", `{"path":"new","file_text":"x"}`, "Judge", "Judge Apply"},
		{"grep", `{"pattern":"three","output_mode":"content"}`, "Judge", "Grep"},
		{"glob", `{"pattern":"*"}`, "Judge", "Glob"},
		{"bash", `{"command":"echo x","description":"d","initial_wait":600}`, "", "Start Wait Output MarkSeen"},
		{"bash", `{"command":"true","description":"d","initial_wait":600}`, "", "Start Wait MarkSeen"},
	} {
		key := "key-" + string(rune('a'+i))
		made := tool.Call{Session: "s", ID: key, Key: key, Attempt: 1, Arguments: json.RawMessage(call.arguments), Dir: r.dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
		_, err := tools[call.tool].Permission(t.Context(), made)
		must(t, err)
		if got := strings.Join(log.take(), " "); got != call.asked {
			t.Errorf("%s %s: to be judged it makes the requests %q, want %q", call.tool, call.arguments, got, call.asked)
		}
		result, err := tools[call.tool].Run(t.Context(), made)
		must(t, err)
		if got := log.take(); result.Failed || !slices.Equal(got, strings.Fields(call.run)) {
			t.Errorf("%s %s: to be carried out it makes the requests %q, want %q; %.200s", call.tool, call.arguments, got, call.run, result.Text)
		}
	}
}
