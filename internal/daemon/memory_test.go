package daemon_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/model/scripted"
)

// remembers is a script whose model notes one thing.
const remembers = `{"rules": [
  {"when": {"tool": "write_extracted"}, "reply": {"calls": [{"tool": "write_extracted", "arguments": {
    "decisions": [{"options": [], "chosen": "Go it is", "rationale": ""}], "discussions": [], "attempts": [], "requests": []}}]}},
  {"reply": {"text": "Noted."}}]}`

// openRemembering makes a node whose sessions are remembered.
func openRemembering(t *testing.T, dir string, visitor bool) *daemon.Node {
	t.Helper()
	return openRememberingAs(t, dir, daemon.Config{Visitor: visitor})
}

// openRememberingAs is openRemembering for an engine of any kind.
func openRememberingAs(t *testing.T, dir string, config daemon.Config) *daemon.Node {
	t.Helper()
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, []byte(remembers), 0o600); err != nil {
		t.Fatal(err)
	}
	config.Dir, config.Version = dir, "test"
	config.Defaults = api.Defaults{Cwd: dir, Model: scripted.Name + ":" + script, Memory: event.MemoryRules{ExtractThreshold: 1, Where: book.User}}
	n, err := daemon.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func (p *peer) jobs() api.JobsResult {
	p.t.Helper()
	var list api.JobsResult
	p.must(api.Jobs, api.SessionParams{}, &list)
	return list
}

// TestUpkeepStartsAndStopsWithTheEngine: an engine that is there for a moment runs no jobs
// of memory. An engine that stays runs them, and stops them when it is closed.
func TestUpkeepStartsAndStopsWithTheEngine(t *testing.T) {
	dir := t.TempDir()
	visitor := openRemembering(t, dir, true)
	p := connect(t, visitor)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "We use Go."}, nil)
	p.await(event.SessionIdle, 1)
	list := p.jobs()
	if len(list.Jobs) != 1 || list.Jobs[0].Kind != "extract" || list.Jobs[0].Status != api.JobWaiting || list.Stats != (api.JobStats{}) {
		t.Fatalf("a visitor has jobs %+v", list)
	}
	visitor.Close()

	n := openRemembering(t, dir, false)
	p = connect(t, n)
	p.must(api.JobWait, api.JobParams{JobID: list.Jobs[0].JobID}, nil)
	var asked api.JobParams
	p.must(api.MemoryConsolidate, api.SessionParams{SessionID: "s"}, &asked)
	p.must(api.JobWait, asked, nil)
	if left := p.jobs(); len(left.Jobs) != 0 || left.Stats.Done != 2 || left.Stats.Turns != 0 {
		t.Errorf("jobs = %+v", left)
	}
	var found api.MemoryResult
	p.must(api.MemoryShow, api.MemoryParams{Page: "decisions", User: true}, &found)
	if text := found.Books[0].Pages[0].Text; !strings.Contains(text, ", s#") || !strings.Contains(text, "- Go it is [20") {
		t.Errorf("decisions:\n%s", text)
	}
	if err := n.Close(); err != nil { // nothing is left: see TestMain
		t.Error(err)
	}
}

// An engine that is there for one command begins no job while the command runs, since it would
// have to cut it, and pay for it again. What fits into a moment is done at its end.
func TestAnEngineForOneCommandDoesJobsAtItsEnd(t *testing.T) {
	dir := t.TempDir()
	short := openRememberingAs(t, dir, daemon.Config{OneCommand: true})
	p := connect(t, short)
	p.must(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "We use Go."}, nil)
	p.await(event.SessionIdle, 1)
	if list := p.jobs(); len(list.Jobs) != 1 || list.Jobs[0].Status != api.JobWaiting || list.Stats != (api.JobStats{}) {
		t.Fatalf("a short engine has jobs %+v", list)
	}
	for !short.TryStop(true) { // as a command does before it closes
		runtime.Gosched()
	}
	if err := short.Close(); err != nil {
		t.Fatal(err)
	}
	p = connect(t, openRemembering(t, dir, true))
	for _, j := range p.jobs().Jobs {
		if j.Kind == "extract" {
			t.Errorf("the job was not done: %+v", j)
		}
	}
}

func TestWhatIsWrongWithARequestAboutMemoryIsSaid(t *testing.T) {
	p := connect(t, openRemembering(t, t.TempDir(), false))
	for method, tt := range map[string]struct {
		params any
		want   string
	}{
		api.MemoryShow:        {api.MemoryParams{Page: "../x"}, "cannot be the name of a page"},
		api.MemoryEdit:        {api.MemoryEditParams{Page: "p", Text: "---\n"}, "the front matter has no end"},
		api.MemoryHistory:     {api.MemoryParams{Page: "X"}, "cannot be the name of a page"},
		api.MemoryRevert:      {api.MemoryParams{Page: "p", Version: 3}, "no such page"},
		api.MemoryForget:      {api.MemoryForgetParams{}, "sessionId: it is empty"},
		api.MemoryConsolidate: {api.SessionParams{SessionID: "nobody"}, "Session not found: nobody"},
		api.JobRetry:          {api.JobParams{JobID: "none"}, "no such job"},
	} {
		if err := p.Call(t.Context(), method, tt.params, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want it to say %q", method, err, tt.want)
		}
	}
	p.must(api.JobWait, api.JobParams{JobID: "none"}, nil) // it is over
}
