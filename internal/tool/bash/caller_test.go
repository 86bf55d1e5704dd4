package bash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A caller makes tool calls for a session and checks their results.
type caller struct {
	t        testing.TB
	c        *bash.Commands
	tools    map[string]tool.Tool
	session  event.SessionID
	dir      string
	lastKeys int
}

func newCaller(t testing.TB, p bash.Processes, notes string) *caller {
	c := bash.New(bash.Options{Processes: p, Notes: func(id event.SessionID) (string, error) {
		dir := filepath.Join(notes, string(id))
		return dir, os.MkdirAll(dir, 0o700)
	}})
	d := &caller{t: t, c: c, tools: map[string]tool.Tool{}, session: "s1", dir: "/w"}
	for _, one := range c.Tools() {
		d.tools[one.Spec().Name] = one
	}
	return d
}

// restarted returns a caller for the same session after the daemon was killed.
func (d *caller) restarted(p bash.Processes, notes string) *caller {
	fresh := newCaller(d.t, p, notes)
	fresh.lastKeys, fresh.dir = d.lastKeys, d.dir
	return fresh
}

func (d *caller) call(args string) tool.Call {
	d.lastKeys++
	key := fmt.Sprintf("key-%d", d.lastKeys)
	return tool.Call{Session: d.session, ID: "toolcall_0", Key: key, Attempt: 1, Arguments: json.RawMessage(args), Dir: d.dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// run makes a call, which must not return an error.
func (d *caller) run(name string, call tool.Call) tool.Result {
	d.t.Helper()
	r, err := d.tools[name].Run(context.Background(), call)
	if err != nil {
		d.t.Fatalf("%s %s: %v", name, call.Arguments, err)
	}
	if faults := shapeErrors(r.Contents); len(faults) > 0 {
		d.t.Errorf("%s %s: typed clients cannot read %s: %q", name, call.Arguments, r.Contents, faults)
	}
	return r
}

// shapeErrors returns what is wrong with the contents of a result.
func shapeErrors(contents json.RawMessage) (faults []string) {
	var parts []json.RawMessage
	_ = json.Unmarshal(contents, &parts) // there may be none
	for _, part := range parts {
		faults = append(faults, shapetest.Value("ToolExecutionCompleteContent", part)...)
	}
	return faults
}

// mustCall makes a call that must succeed, and returns what the model reads.
func (d *caller) mustCall(name, format string, args ...any) string {
	d.t.Helper()
	r := d.run(name, d.call(fmt.Sprintf(format, args...)))
	if r.Failed {
		d.t.Fatalf("%s failed: %s", name, r.Text)
	}
	return r.Text
}

// mustFail makes a call that must fail, and returns what the model reads.
func (d *caller) mustFail(name, args string) string {
	d.t.Helper()
	r := d.run(name, d.call(args))
	if !r.Failed {
		d.t.Fatalf("%s %.100s did not fail: %.500s", name, args, r.Text)
	}
	return r.Text
}

// callInBackground makes a call in the background.
func (d *caller) callInBackground(name, args string) <-chan tool.Result {
	done := make(chan tool.Result, 1)
	call := d.call(args)
	go func() { done <- d.run(name, call) }()
	return done
}

func decode(t testing.TB, text string) (r bash.Result) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func decodeWaited(t testing.TB, text string) (w bash.Waited) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

// withScripted runs a test with fake time and scripted processes.
func withScripted(t *testing.T, test func(t *testing.T, d *caller, s *scriptedProcesses)) {
	notes := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		test(t, newCaller(t, s, notes), s)
	})
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
