package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/cli"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// retries are short, so that no test waits for a clock.
var retries = []time.Duration{time.Millisecond, 2 * time.Millisecond}

// programs are what this binary is, by the name under which it is run.
var programs = map[string]func(){
	"abide":       main,
	"mcp-server":  serveMCP,
	"abide-tools": func() { os.Exit(cli.Process(cli.Options{Tools: turn.Catalog{note{}}, Retries: retries})) },
}

func TestMain(m *testing.M) { testscript.Main(m, programs) }

// noRaceSleep turns off the second that the race detector sleeps at the end of each
// process.
const noRaceSleep = "atexit_sleep_ms=0"

// Stories runs the real program, one story a file. See the files for how to
// write one; beside the commands of testscript there are those below.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ABIDE_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GORACE", noRaceSleep)
			e.Defer(func() { auditStory(t, e) })
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil // root may read everything
			case "landlock":
				return sandbox.Kernel() > 0, nil
			case "namespaces":
				return sandbox.TrySealed() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    exits,
			"capture":  capture,
			"damage":   damage,
			"endpoint": endpoint,
			"isjson":   isJSON,
		},
	})
}

// auditStory lets the auditor look at what a story has stored, unless that story is
// about damage.
func auditStory(t *testing.T, e *testscript.Env) {
	home := filepath.Join(e.WorkDir, "home")
	if _, err := os.Stat(filepath.Join(home, "abide.db")); err != nil {
		return // it has stored nothing, or elsewhere
	}
	report, err := audit.Run(context.Background(), home, audit.Options{})
	if err != nil {
		t.Errorf("%s: %v", e.WorkDir, err)
		return
	}
	for _, d := range report.Unknown {
		if d.Invariant == "I9" && !strings.HasSuffix(e.WorkDir, "-damage") {
			t.Errorf("%s: the auditor cannot decide what allowed a call: %s, session %q, event %d: %s", e.WorkDir, d.Rule, d.Session, d.Seq, d.Text)
		}
	}
	for _, f := range report.Findings {
		if !strings.HasSuffix(e.WorkDir, "-damage") && !strings.HasSuffix(e.WorkDir, "-audit") {
			t.Errorf("%s: the auditor finds %s broken: %s, session %q, event %d: %s", e.WorkDir, f.Invariant, f.Rule, f.Session, f.Seq, f.Text)
		}
	}
}

// exits CODE COMMAND… runs a command that must exit with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// capture NAME FILE PATTERN sets a variable to what the pattern's group matches
// in a file, or in the last stdout or stderr.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture NAME FILE PATTERN")
	}
	found := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if len(found) != 2 {
		ts.Fatalf("%s has no match of %s", args[1], args[2])
	}
	ts.Setenv(args[0], found[1])
}

// isjson FILE [COUNT] checks that every line is a JSON value.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for i, line := range lines {
		if !json.Valid([]byte(line)) {
			ts.Fatalf("line %d is not JSON: %s", i+1, line)
		}
	}
	if len(args) == 2 && strconv.Itoa(len(lines)) != args[1] {
		ts.Fatalf("%d lines, want %s", len(lines), args[1])
	}
}

// damage SESSION TEXT changes a letter of a text in a stored event.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage SESSION TEXT")
	}
	db, err := sql.Open("sqlite", filepath.Join(ts.Getenv("ABIDE_HOME"), "abide.db"))
	ts.Check(err)
	defer db.Close()
	other := strings.Replace(args[1], args[1][:1], "#", 1)
	r, err := db.Exec(`UPDATE records SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)
		WHERE key >> 32 = (SELECT id FROM sessions WHERE name = ?)`, args[1], other, args[0])
	ts.Check(err)
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		ts.Fatalf("nothing was damaged: %d rows, %v", n, err)
	}
}

// note is a tool that needs permission and leaves a trace: it appends its value
// to notes.txt in the working directory.
type note struct{}

func (note) Spec() tool.Spec {
	return tool.Spec{
		Name: "note", Description: "Write a note.", Replay: tool.Once,
		Parameters: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}`),
	}
}

func (note) Permission(_ context.Context, call tool.Call) (*approval.Request, error) {
	ask, err := json.Marshal(map[string]any{"kind": "shell", "fullCommandText": "note " + noted(call), "toolCallId": call.ID})
	return &approval.Request{Kind: approval.CustomTool, Subjects: []string{"note"}, Ask: ask, Prompt: ask}, err
}

func (note) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	f, err := os.OpenFile(filepath.Join(call.Dir, "notes.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	_, err = f.WriteString(noted(call) + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return tool.Fail(err.Error()), nil
	}
	return tool.Result{Text: "noted " + noted(call)}, nil
}

func noted(call tool.Call) string {
	var args struct{ Value string }
	_ = json.Unmarshal(call.Arguments, &args) // an empty note, then
	return args.Value
}
