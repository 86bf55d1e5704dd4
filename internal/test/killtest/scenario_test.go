package killtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/scripted"
)

// A scenario is a turn in which the victim is killed. Its prompts are commands that
// the offline model understands; the script of the scripted model has the same ones.
type scenario struct {
	name        string
	prompt      string
	later, mode string // a second prompt, sent while the first question is open, and its mode
	fails       bool   // true if the model fails twice before it answers
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
	{name: "list", prompt: `Call task_create with {"subject":"one"} and task_create with {"subject":"two"}, then reply with both results`},
	{name: "retry", prompt: "Reply with exactly: PATIENCE", fails: true},
}

// conversation returns the scenario as a client plays it with a model.
func (s scenario) conversation(w *modelSource) conversation {
	return conversation{w.open("s"), []exchange{{prompt: s.prompt, later: s.later, mode: s.mode}}}
}

// A modelSource is a model and the way to reach it. Every run has its own: what
// outlives the victim must not outlive the run.
type modelSource struct {
	model    string
	provider *api.Provider
	faults   func() []string // faults of the requests
	history  func() []string // the history of the last request
	settle   func()          // returns when no request is on its way any more
}

// open returns the parameters of a session with the model. Its client can answer
// everything that it may be asked.
func (w *modelSource) open(id event.SessionID) api.OpenParams {
	return api.OpenParams{
		SessionID: id, Model: w.model, Provider: w.provider, Streaming: true,
		RequestPermission: true, RequestUserInput: true,
		Tools: []event.ExternalTool{{Name: "lookup", Description: "Looks a thing up.", SkipPermission: true}},
	}
}

// modelSources make a model for a scenario, by the name of the way to reach it.
var modelSources = map[string]func(*testing.T, scenario) *modelSource{
	"scripted":  scriptedSource,
	"offline":   offlineSource,
	"chat":      chat.source,
	"anthropic": anthropic.source,
	"responses": responses.source,
}

// fits reports whether a scenario can be played with a model: the offline model
// never fails.
func (s scenario) fits(source string) bool { return !s.fails || source != "offline" }

// noRequests stands for the requests of a model in the victim, which cannot be seen.
func noRequests() []string { return nil }

func offlineSource(*testing.T, scenario) *modelSource {
	return &modelSource{model: offline.Name, faults: noRequests, history: noRequests}
}

func scriptedSource(t *testing.T, s scenario) *modelSource {
	return &modelSource{model: scripted.Name + ":" + writeScript(t, s.fails), faults: noRequests, history: noRequests}
}

// rule is a rule of the scripted model.
type rule map[string]any

func text(user, reply string) rule {
	return rule{"when": rule{"user": user}, "reply": rule{"text": reply}}
}

// calls makes two rules: the calls, and the reply when they are done.
func calls(user, reply string, calls ...rule) []rule {
	return []rule{
		{"when": rule{"user": user, "step": 1}, "reply": rule{"calls": calls}},
		{"when": rule{"user": user, "step": 2}, "reply": rule{"text": reply}},
	}
}

func call(tool, key, value string) rule {
	return rule{"tool": tool, "arguments": rule{key: value}}
}

// writeScript writes the scenario file of the scripted model. Its replies do not
// depend on once-only calls: after a crash the model may not know their results.
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
		calls(`Call task_create with {"subject":"one"} and task_create with {"subject":"two"}, then reply with both results`, "{{result}}.",
			call("task_create", "subject", "one"), call("task_create", "subject", "two")),
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
