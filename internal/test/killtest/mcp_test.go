package killtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/scripted"
)

// mcpVariable is the environment variable that makes this binary an MCP server. It names a
// folder in which the server counts what it does.
const mcpVariable = "ABIDE_KILLTEST_MCP"

// serveMCP is a server with three tools: count has an effect, ask puts a question to a person,
// and sample one to the model. It refuses a second handshake, and ends if it is given an answer twice.
func serveMCP(dir string) int {
	note := func(file, line string) {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, line)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	note("servers", strconv.Itoa(os.Getpid()))
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string            `json:"name"`
			Arguments map[string]string `json:"arguments"`
		} `json:"params"`
		Result struct {
			Content map[string]string `json:"content"`
		} `json:"result"`
		Error json.RawMessage `json:"error"`
	}
	say := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	text := func(id json.RawMessage, words string) {
		say(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, words))
	}
	greeted := false
	var asking json.RawMessage
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return 4
		}
		switch {
		case m.Method == "initialize" && greeted:
			return 5
		case m.Method == "initialize":
			greeted = true
			say(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"counter","version":"1"}}`)
		case m.Method == "tools/list":
			say(m.ID, `{"tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"sample","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call" && m.Params.Name == "count":
			note("effects", m.Params.Arguments["value"])
			text(m.ID, "counted "+m.Params.Arguments["value"])
		case m.Method == "tools/call" && m.Params.Name == "sample":
			note("effects", "sampled")
			asking = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"maxTokens":10,"messages":[{"role":"user","content":{"type":"text","text":"What colour?"}}]}}`)
		case m.Method == "" && string(m.ID) == "2" && asking != nil:
			text(asking, "sampled "+m.Result.Content["text"]+string(m.Error))
			asking = nil
		case m.Method == "tools/call":
			note("effects", "asked")
			asking = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}}`)
		case m.Method == "" && asking != nil:
			text(asking, "chosen "+m.Result.Content["colour"])
			asking = nil
		case m.Method == "":
			return 6
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", m.ID)
		}
	}
	if os.Getenv(deafVariable) != "" {
		select {} // a server that does not notice that nobody speaks with it any more
	}
	return 0
}

// deafVariable is the environment variable that makes a server go on when its input ends.
const deafVariable = "ABIDE_KILLTEST_MCP_DEAF"

// An mcpRun is a run of a turn that calls tools of the server.
type mcpRun struct {
	*run
	dir     string
	model   *modelSource
	effects []string // effects that the turn has
	answer  string   // answer of the turn
}

// newMCPRun prepares a run of a turn that counts and asks a person.
func newMCPRun(t *testing.T) *mcpRun {
	t.Helper()
	r := newMCPRunOf(t, false, "Count, then ask.",
		rule{"when": rule{"user": "Count, then ask.", "step": 1}, "reply": rule{"calls": []rule{call("one-count", "value", "a")}}},
		rule{"when": rule{"user": "Count, then ask.", "step": 2}, "reply": rule{"calls": []rule{call("one-ask", "value", "b")}}},
		rule{"when": rule{"user": "Count, then ask.", "step": 3}, "reply": rule{"text": "It is {{result}}."}},
	)
	r.effects, r.answer = []string{"a", "asked"}, "It is chosen green."
	return r
}

// newSamplingRun prepares a run of a turn whose call asks the model, when a person has allowed
// it.
func newSamplingRun(t *testing.T) *mcpRun {
	t.Helper()
	r := newMCPRunOf(t, true, "Sample.",
		rule{"when": rule{"user": "What colour?"}, "reply": rule{"text": "green"}},
		rule{"when": rule{"user": "Sample.", "step": 1}, "reply": rule{"calls": []rule{call("one-sample", "value", "a")}}},
		rule{"when": rule{"user": "Sample.", "step": 2}, "reply": rule{"text": "It is {{result}}."}},
	)
	r.effects, r.answer = []string{"sampled"}, "It is sampled green."
	return r
}

// newMCPRunOf prepares a run of a turn with a prompt and a model with rules.
func newMCPRunOf(t *testing.T, sampling bool, prompt string, rules ...rule) *mcpRun {
	t.Helper()
	b, err := json.Marshal(rule{"rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := &modelSource{model: scripted.Name + ":" + script, faults: noRequests, history: noRequests}
	open := m.open("s")
	open.RequestElicitation = true
	if open.MCPServers, err = json.Marshal(map[string]any{"one": map[string]any{
		"command": os.Args[0], "env": map[string]string{mcpVariable: dir}, "sampling": sampling,
	}}); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, conversation{open, []exchange{{prompt: prompt}}})
	r.instructions.OneByOne, r.instructions.Servers = false, dir
	return &mcpRun{run: r, dir: dir, model: m}
}

// lines returns what the servers have noted in a file.
func (r *mcpRun) lines(file string) []string {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// judge reports every promise that was broken: those about all logs, effects that are not there
// once, calls that are told as unknown, and servers that still run. If an engine was killed
// after it had stored that a call begins, and before the server was sent it, the call may be
// told as unknown.
func (r *mcpRun) judge(got outcome, unsent bool) {
	r.t.Helper()
	for _, broken := range got.checkLog() {
		r.t.Error(broken)
	}
	if unsure := got.unsure(); unsent && len(unsure) == 1 {
		r.judgeEffects(slices.DeleteFunc(slices.Clone(r.effects), func(effect string) bool { return len(r.effects) == 1 || (effect == "a") == (unsure[0] == "one-count") }))
		return
	}
	if unsure := got.unsure(); len(unsure) > 0 {
		r.t.Errorf("the outcome of %v is told to be unknown, and the server was not killed", unsure)
	}
	if answers := got.answers(); !slices.Equal(answers, []string{r.answer}) {
		r.t.Errorf("the answers are %q", answers)
	}
	r.judgeEffects(r.effects)
	if r.t.Failed() {
		r.t.Log(got.describeLog())
		r.logServer()
	}
}

// logServer adds the log of the server to that of the test.
func (r *mcpRun) logServer() {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.instructions.Dir, "mcp-logs", "one.log"))
	r.t.Logf("the log of the server: %s (%v)", text, err)
}

func (r *mcpRun) judgeEffects(want []string) {
	r.t.Helper()
	if effects := r.lines("effects"); !slices.Equal(effects, want) {
		r.t.Errorf("the effects are %q, want %q", effects, want)
	}
	r.judgeServers()
}

// judgeServers reports the servers that still run.
func (r *mcpRun) judgeServers() {
	r.t.Helper()
	for _, pid := range r.lines("servers") {
		n, err := strconv.Atoi(pid)
		if err != nil || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			r.t.Errorf("the server %s still runs (%v)", pid, err)
		}
	}
}

// The engine is killed, and the server is not: it goes on without the engine.
func TestKilledAtAnyWriteCallsOfMCPServersGoOn(t *testing.T) {
	first := newMCPRun(t)
	calm := first.play()
	first.judge(calm, false)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			r := newMCPRun(t)
			r.judge(r.play(at), begins(calm.writes[at.Write-1]))
		})
	}
}

// begins reports whether a write stores that a call begins.
func begins(w report) bool { return slices.Contains(w.Events, event.ToolBegun) }

// The second engine is killed, too, at every write of its recovery.
func TestKilledAgainCallsOfMCPServersGoOn(t *testing.T) {
	first := newMCPRun(t)
	calm := first.play()
	first.judge(calm, false)
	asked := 1 + slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.ElicitationAsked) })
	begun := stop{asked, committed}
	recovered := newMCPRun(t)
	for _, second := range recovered.play(begun).writes {
		for _, p := range []point{before, committed, after} {
			at := stop{second.Write, p}
			t.Run(at.String(), func(t *testing.T) {
				t.Parallel()
				r := newMCPRun(t)
				r.judge(r.play(begun, at), begins(second))
			})
		}
	}
}

// The engine is killed while a server waits for the model: the request is made by the next one,
// and nobody is asked again for what was allowed.
func TestKilledAtAnyWriteRequestsOfTheModelGoOn(t *testing.T) {
	first := newSamplingRun(t)
	calm := first.play()
	first.judge(calm, false)
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			r := newSamplingRun(t)
			out := r.play(at)
			r.judge(out, begins(calm.writes[at.Write-1]))
			if n := countKind(out.log, event.ElicitationAsked); n > 1 {
				t.Errorf("a person is asked %d times", n)
			}
		})
	}
}
