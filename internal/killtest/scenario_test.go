package killtest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/scripted"
)

// A scenario is a turn in which the victim is killed. Its prompts are in the
// language of the offline model; the scripted one knows them by heart.
type scenario struct {
	name        string
	prompt      string
	later, mode string // said while the first question is open
	fails       bool   // the model fails twice before it answers
}

var scenarios = []scenario{
	{name: "text", prompt: "Reply with exactly: HELLO"},
	{name: "tools", prompt: "Call pure with value 'a' and keyed with value 'b' and once with value 'c', then reply with all results"},
	{name: "permission", prompt: "Use once with value 'ask first', then reply with the result"},
	{name: "external", prompt: "Use lookup with value 'x', then reply with the result"},
	{name: "question", prompt: "Ask me: which colour do you like?"},
	{name: "steered", prompt: "Use lookup with value 'y', then reply with the result", later: "Reply with exactly: LATER", mode: event.ModeSteer},
	{name: "queued", prompt: "Use lookup with value 'y', then reply with the result", later: "Reply with exactly: LATER", mode: event.ModeQueue},
	{name: "interrupted", prompt: "Use lookup with value 'y', then reply with the result", later: "Reply with exactly: LATER", mode: event.ModeInterrupt},
	{name: "retry", prompt: "Reply with exactly: PATIENCE", fails: true},
}

// talk is the scenario as a client sees it, in a world.
func (s scenario) talk(w *world) talk {
	return talk{w.open("s"), []exchange{{prompt: s.prompt, later: s.later, mode: s.mode}}}
}

// A world is where the model comes from. Every run has its own: what outlives
// the victim must not outlive the run.
type world struct {
	model    string
	provider *api.Provider
	faults   func() []string // what was wrong with the requests
}

// open is a session in the world. Its client can do all that it may be asked.
func (w *world) open(id event.SessionID) api.OpenParams {
	return api.OpenParams{
		SessionID: id, Model: w.model, Provider: w.provider, Streaming: true,
		RequestPermission: true, RequestUserInput: true,
		Tools: []event.ExternalTool{{Name: "lookup", Description: "Looks a thing up.", SkipPermission: true}},
	}
}

// worlds are all the ways to reach a model.
var worlds = map[string]func(*testing.T, scenario) *world{
	"scripted": scriptedWorld,
	"offline":  offlineWorld,
	"wire":     wireWorld,
}

// fits reports whether a scenario can happen in a world: the offline model
// never fails.
func (s scenario) fits(world string) bool { return !s.fails || world != "offline" }

func noFaults() []string { return nil }

func offlineWorld(*testing.T, scenario) *world {
	return &world{model: offline.Name, faults: noFaults}
}

func scriptedWorld(t *testing.T, s scenario) *world {
	return &world{model: scripted.Name + ":" + writeScript(t, s.fails), faults: noFaults}
}

// wireWorld has the scripted model behind a server. Its key is checked, because
// that is kept beside the log.
func wireWorld(t *testing.T, s scenario) *world {
	played, err := scripted.Load(writeScript(t, false))
	if err != nil {
		t.Fatal(err)
	}
	return behindWire(t, played, func(n int) openaitest.Fault {
		switch {
		case s.fails && n == 1:
			return openaitest.Status(http.StatusInternalServerError, "out of order")
		case s.fails && n == 2:
			return openaitest.Status(http.StatusTooManyRequests, "too fast", "Retry-After", "0")
		}
		return nil
	})
}

// behindWire has a model behind a server in the parent.
func behindWire(t *testing.T, m model.Model, fault func(n int) openaitest.Fault) *world {
	judge := &judge{}
	server := openaitest.NewServer(m, openaitest.Options{Key: "key", Fault: func(n int, body []byte) openaitest.Fault {
		judge.look(body)
		return fault(n)
	}})
	t.Cleanup(server.Close)
	return &world{
		model: "m", provider: &api.Provider{Type: "openai", BaseURL: server.URL, APIKey: "key"}, faults: judge.faults,
	}
}

// A judge looks at requests as a provider does that refuses calls without
// results, and results without calls.
type judge struct {
	mu    sync.Mutex
	found []string
}

func (j *judge) look(body []byte) {
	var req struct {
		Messages []struct {
			Role       string
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
	}
	err := json.Unmarshal(body, &req)
	open := make(map[string]bool)
	wrong := err != nil
	for _, m := range req.Messages {
		wrong = wrong || (m.Role == "tool") != open[m.ToolCallID] || m.Role != "tool" && len(open) > 0
		delete(open, m.ToolCallID)
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if wrong || len(open) > 0 {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.found = append(j.found, string(body))
	}
}

func (j *judge) faults() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.found
}

// rule is a rule of the scripted model.
type rule map[string]any

func text(user, reply string) rule {
	return rule{"when": rule{"user": user}, "reply": rule{"text": reply}}
}

// calls makes two rules: the calls, and what is said when they are done.
func calls(user, reply string, calls ...rule) []rule {
	return []rule{
		{"when": rule{"user": user, "step": 1}, "reply": rule{"calls": calls}},
		{"when": rule{"user": user, "step": 2}, "reply": rule{"text": reply}},
	}
}

func call(tool, key, value string) rule {
	return rule{"tool": tool, "arguments": rule{key: value}}
}

// writeScript writes the scenario file of the scripted model. What it says does
// not depend on once-only calls: after a crash it may not know their results.
func writeScript(t *testing.T, fails bool) string {
	t.Helper()
	patience := text("Reply with exactly: PATIENCE", "PATIENCE")
	if fails {
		patience["reply"].(rule)["error"] = rule{"status": 503, "times": 2}
	}
	b, err := json.Marshal(rule{"witness": "attempts", "rules": slices.Concat(
		[]rule{text("Reply with exactly: HELLO", "HELLO"), text("Reply with exactly: LATER", "LATER"), patience},
		calls("Call pure with value 'a' and keyed with value 'b' and once with value 'c', then reply with all results", "All three are done.",
			call("pure", "value", "a"), call("keyed", "value", "b"), call("once", "value", "c")),
		calls("Use once with value 'ask first', then reply with the result", "It was allowed.", call("once", "value", "ask first")),
		calls("Use lookup with value 'x', then reply with the result", "It is {{result}}.", call("lookup", "value", "x")),
		calls("Use lookup with value 'y', then reply with the result", "It is {{result}}, too.", call("lookup", "value", "y")),
		calls("Ask me: which colour do you like?", "The {{result}}.", call("ask_user", "question", "Which colour?")),
	)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
