package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/scripted"
)

const (
	delegatePrompt = "Let an agent do it"
	carefulPrompt  = "Do everything, and ask before each thing"
)

// questions is how many questions the agent asks. It is more than the number of requests
// that a session remembers, so that the request for the prompt is older than all of them.
const questions = 70

// An agentRun is a run of a session whose agent asks many questions.
type agentRun struct {
	*run
}

func newAgentRun(t *testing.T) *agentRun {
	t.Helper()
	var many []rule
	for i := range questions {
		many = append(many, call("pure", "value", fmt.Sprint("ask ", i)))
	}
	b, err := json.Marshal(rule{"rules": append(
		calls(delegatePrompt, "The agent says: {{result}}", rule{"tool": "task", "arguments": rule{"description": "d", "prompt": carefulPrompt, "agent_type": "task", "name": "n"}}),
		calls(carefulPrompt, "All is done.", many...)...)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &modelSource{model: scripted.Name + ":" + path}
	r := &agentRun{newRun(t, conversation{open: w.open("s")})}
	r.instructions.OneByOne = false
	r.driveClient = r.drive
	return r
}

// drive asks for the work, and answers the questions of the agent.
func (r *agentRun) drive(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.send(ctx, api.SendParams{Prompt: delegatePrompt}); err != nil {
		return err
	}
	for {
		var known int
		c.recorder.update(func() { known = c.recorder.count(c.number, event.PermissionAsked, event.SessionIdle) })
		log, err := c.log(ctx)
		if err != nil {
			return err
		}
		if agent := *c; agentOf(log) != "" {
			agent.session = agentOf(log)
			if err := agent.answerAll(ctx, exchange{}); err != nil {
				return err
			}
		}
		var status api.StatusResult
		if err := c.call(ctx, api.Status, api.SessionParams{SessionID: c.session}, &status); err != nil || !status.Active {
			return err
		}
		err = c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool {
			return c.recorder.count(c.number, event.PermissionAsked, event.SessionIdle) > known
		})
		if err != nil {
			return err
		}
	}
}

// agentOf returns the session of the agent that a log has started; empty if there is none.
func agentOf(log []event.Event) event.SessionID {
	for _, e := range log {
		if d, err := event.As[event.ToolBegunData](e); e.Type == event.ToolBegun && err == nil {
			return event.SessionID(d.Key)
		}
	}
	return ""
}

// The engine is killed when an agent has done its work, and before its answer is stored in
// the session that it works for. The next engine asks the agent again, with the same key,
// and the agent gives its answer: it does not work again, however many answers it got since.
func TestKilledBeforeTheAnswerOfAnAgentIsStoredTheAgentWorksOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []point{before, committed} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			r := newAgentRun(t)
			r.instructions.On = kindStop{Kind: event.ToolComplete, Session: "s", Point: at}
			if reached, err := r.runUntilStop(stop{}); err != nil || !reached {
				t.Fatalf("it was killed at the answer of the agent: %v, %v", reached, err)
			}
			r.instructions.On = kindStop{}
			out := r.play()
			effects, err := readEffects(r.instructions.Effects, agentOf(out.log))
			if err != nil || len(effects) != questions {
				t.Errorf("the agent did %d things, want %d: %v", len(effects), questions, err)
			}
			if answers := out.answers(); len(answers) != 1 || answers[0] != "The agent says: All is done." {
				t.Errorf("the answers are %q", answers)
			}
			if t.Failed() {
				t.Log(out.describeLog())
			}
		})
	}
}
