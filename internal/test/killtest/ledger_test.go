package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// A meter is a model that counts what it bills. No two requests have the same number of
// output tokens, so that each can be found in the ledger.
type meter struct {
	model.Model

	mu     sync.Mutex
	billed []model.Usage
}

// bill counts a request.
func (m *meter) bill(input int64) model.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := model.Usage{Input: input, Output: int64(10 + len(m.billed))}
	m.billed = append(m.billed, u)
	return u
}

func (m *meter) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	reply, err := m.Model.Ask(ctx, req, on)
	if err == nil {
		reply.Usage = m.bill(reply.Usage.Input)
	}
	return reply, err
}

// breakOff is a stream of Anthropic Messages that ends after the request was billed.
func (m *meter) breakOff(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	u := m.bill(25)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d}}}\n\n", u.Input, u.Output)
}

// A meteredRun is a run whose model counts, and what the ledger says at its end.
type meteredRun struct {
	*run
	source *modelSource
	meter  *meter
	costs  api.CostResult
	agents []event.Event // the logs of agents
}

// measure makes a run ask for the costs at its end.
func measure(r *run, is *modelSource, m *meter) *meteredRun {
	metered := &meteredRun{run: r, source: is, meter: m}
	drive := r.driveClient
	r.driveClient = func(ctx context.Context, c *client) error {
		if err := drive(ctx, c); err != nil {
			return err
		}
		if err := c.call(ctx, api.Cost, api.CostParams{By: []string{"session"}}, &metered.costs); err != nil {
			return err
		}
		log, err := c.log(ctx)
		if agent := *c; err == nil && strings.Contains(c.conversation.turns[0].prompt, delegatePrompt) {
			agent.session = agentOf(log)
			metered.agents, err = agent.log(ctx)
		}
		return err
	}
	return metered
}

// checkLedger checks that the sums are those of the requests in the log, that each of these
// was billed and is there once, and that a kill loses no more than the requests under way.
func (r *meteredRun) checkLedger(log []event.Event, lost int) {
	r.t.Helper()
	r.source.settle()
	r.meter.mu.Lock()
	defer r.meter.mu.Unlock()
	want := api.CostSum{SessionID: "s"}
	left := slices.Clone(r.meter.billed)
	for _, u := range recordedUsage(r.t, slices.Concat(log, r.agents)) {
		i := slices.Index(left, u)
		if i < 0 {
			r.t.Errorf("the log has a request of %+v, which was not billed or is there twice; billed were %+v", u, r.meter.billed)
			continue
		}
		left = slices.Delete(left, i, i+1)
		want.Requests, want.InputTokens, want.OutputTokens = want.Requests+1, want.InputTokens+u.Input, want.OutputTokens+u.Output
	}
	if len(left) > lost {
		r.t.Errorf("the requests %+v are not in the log; a kill may lose %d", left, lost)
	}
	if len(r.costs.Costs) != 1 || r.costs.Unread > 0 {
		r.t.Fatalf("the ledger says %+v", r.costs)
	}
	got := r.costs.Costs[0]
	if got = (api.CostSum{SessionID: got.SessionID, Requests: got.Requests, InputTokens: got.InputTokens, OutputTokens: got.OutputTokens}); got != want {
		r.t.Errorf("the ledger says %+v, the log %+v", got, want)
	}
}

// recordedUsage returns the requests that a log tells of.
func recordedUsage(t *testing.T, log []event.Event) (all []model.Usage) {
	t.Helper()
	for _, e := range log {
		body, err := e.Body()
		if err != nil {
			t.Fatal(err)
		}
		switch d := body.(type) {
		case event.AssistantUsageData:
			all = append(all, model.Usage{Input: d.InputTokens, Output: d.OutputTokens})
		case event.LedgerRequestData:
			all = append(all, model.Usage{Input: d.InputTokens, Output: d.OutputTokens})
		}
	}
	return all
}

// answersOf counts the answers in a log, each of which has to be in the ledger.
func answersOf(log []event.Event) (n int) {
	for _, e := range log {
		if e.Type == event.AssistantMessage {
			n++
		}
	}
	return n
}

// meteredTools is a turn with tools whose first request breaks off after it was billed.
func meteredTools(t *testing.T) *meteredRun {
	s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == "tools" })]
	m := &meter{Model: load(t, writeScript(t, false))}
	is := anthropic.to(t, m, func(n int) remotetest.Fault {
		if n == 1 {
			return m.breakOff
		}
		return nil
	})
	return measure(newRun(t, s.conversation(is)), is, m)
}

// meteredCompaction is a turn with a compaction between two requests.
func meteredCompaction(t *testing.T) *meteredRun {
	s := compactionCases[slices.IndexFunc(compactionCases, func(s compactionCase) bool { return s.name == "between" })]
	k := &taskModel{compactionCase: s, turnContinued: make(chan struct{})}
	m := &meter{Model: k}
	is := k.at(t, chat, m)
	return measure(s.runWith(t, is, k), is, m)
}

// meteredAgent is a turn in which an agent works.
func meteredAgent(t *testing.T) *meteredRun {
	b, err := json.Marshal(rule{"rules": append(
		calls(delegatePrompt, "The agent says: {{result}}", rule{"tool": "task", "arguments": rule{"description": "d", "prompt": "Reply with exactly: HELLO", "agent_type": "task", "name": "n"}}),
		text("Reply with exactly: HELLO", "HELLO"))})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := &meter{Model: load(t, path)}
	is := chat.to(t, m, noFault)
	return measure(newRun(t, conversation{is.open("s"), []exchange{{prompt: delegatePrompt}}}), is, m)
}

func noFault(int) remotetest.Fault { return nil }

// meteredMemory is two turns that are remembered.
func meteredMemory(t *testing.T) *meteredRun {
	m := &meter{Model: load(t, memoryScript(t))}
	is := chat.to(t, m, noFault)
	return measure(newMemoryRunWith(t, is).run, is, m)
}

// meteredFallback is a turn that falls back to another model.
func meteredFallback(t *testing.T) *meteredRun {
	m := &meter{Model: load(t, writeScript(t, false))}
	r, is := fallbackRunOf(t, m)
	return measure(r, is, m)
}

// meteredRuns prepare the runs whose ledgers are compared with what their models have billed.
var meteredRuns = map[string]func(*testing.T) *meteredRun{
	"tools": meteredTools, "compaction": meteredCompaction, "agent": meteredAgent, "memory": meteredMemory, "fallback": meteredFallback,
	"budget of tools": asking(meteredTools), "budget of compactions": asking(meteredCompaction), "budget of agents": asking(meteredAgent),
}

// asking is a run with a budget of no tokens: it asks before every request.
func asking(prepare func(*testing.T) *meteredRun) func(*testing.T) *meteredRun {
	return func(t *testing.T) *meteredRun {
		r := prepare(t)
		r.configure("[budget]\nsession_tokens = 0\n")
		return r
	}
}

// checkBudget checks that no request was made beyond the limit, to the token: whenever one was
// made, less was spent than somebody had agreed to, and the limit was raised only by answers.
// The requests of agents are in other logs; they are counted at the end.
func (r *meteredRun) checkBudget(log []event.Event) {
	r.t.Helper()
	var limit, spent, last int64
	for _, e := range log {
		if e.Type == event.BudgetRaised {
			d, err := event.As[event.BudgetRaisedData](e)
			if err != nil || d.Limits.SessionTokens == nil || *d.Limits.SessionTokens <= limit {
				r.t.Fatalf("event %d raises the limit of %d: %s, %v", e.Seq, limit, e.Bytes, err)
			}
			limit = *d.Limits.SessionTokens
		}
		for _, u := range recordedUsage(r.t, []event.Event{e}) {
			if spent >= limit {
				r.t.Errorf("event %d is of a request that was made although %d of %d tokens were spent", e.Seq, spent, limit)
			}
			last = u.Input + u.Output
			spent += last
		}
	}
	for _, u := range recordedUsage(r.t, r.agents) {
		spent += u.Input + u.Output
	}
	if limit == 0 || spent-last >= limit {
		r.t.Errorf("%d tokens were spent before the last request, and the limit is %d", spent-last, limit)
	}
}

// The ledger says what the model has billed, to the token. A kill loses the request whose
// answer was not stored, which is made again; it loses nothing else and counts nothing twice.
// With a budget, no request is made beyond the limit wherever the engine is killed.
func TestKilledAtAnyWriteTheLedgerIsWhatTheModelHasBilled(t *testing.T) {
	for name, prepare := range meteredRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := prepare(t)
			calm := r.play()
			r.judgeMetered(name, calm, 0)
			if failed := r.costs.Costs[0].Failed; strings.HasSuffix(name, "tools") && failed != 1 {
				t.Errorf("the ledger has %d failed requests", failed)
			}
			for _, at := range stops(calm.writes, name == "budget of tools", 0) {
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
					r := prepare(t)
					out := r.play(at)
					r.judgeMetered(name, out, 1)
					if t.Failed() {
						t.Log(out.describeLog())
					}
				})
			}
		})
	}
}

// judgeMetered checks the ledger of a run, and its budget if it has one.
func (r *meteredRun) judgeMetered(name string, out outcome, lost int) {
	r.t.Helper()
	r.checkLedger(out.log, lost)
	if strings.HasPrefix(name, "budget") {
		r.checkBudget(out.log)
	}
	if answersOf(out.log) == 0 {
		r.t.Error("the turn has no answer")
	}
}
