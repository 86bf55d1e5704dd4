package session_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/todo"
	"github.com/abide-run/abide/internal/workspace"
)

func (m *scriptedModel) last() *model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

func TestTheSystemPromptOutlivesCompactions(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, eager())
	s.say("first")
	prompt := m.last().System
	s.say("second")
	if m.last().System != prompt || prompt == "" {
		t.Errorf("the system prompt became %q", m.last().System)
	}
	s.Restart()
	if f, err := s.Host.Context.Fill(t.Context(), "s"); err != nil || f.System == 0 || f.Head == 0 || f.EpochID == "" {
		t.Errorf("after a restart: %+v, %v", f, err)
	}
}

func TestOldOutputIsLeftOutOfRequestsAndStaysInTheLog(t *testing.T) {
	for name, keep := range map[string]bool{"left out": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			m := &scriptedModel{}
			for range 8 {
				m.lines = append(m.lines, scriptedReply{call: "print"})
			}
			m.lines = append(m.lines, scriptedReply{text: "done"})
			s := squeeze(t, m, event.SessionConfiguredData{Window: 64_000, Compaction: event.CompactionRules{KeepAll: keep}}, largeOutputTool{20_000})
			s.say("print a lot")
			first, stub := m.last().Messages[2], "old output was left out"
			if strings.Contains(first.Text, stub) == keep {
				t.Errorf("the first result has %d bytes: %.80q", len(first.Text), first.Text)
			}
			if newest := m.last().Messages[len(m.last().Messages)-1]; strings.Contains(newest.Text, stub) {
				t.Error("the newest result was left out")
			}
			for _, e := range s.since(0, event.ToolComplete) {
				if len(decoded[event.ToolCompleteData](t, e).Result.Content) < 19_000 {
					t.Error("a result in the log is not whole")
				}
			}
			f, err := s.Host.Context.Fill(t.Context(), "s")
			if err != nil || (f.Pruned > 0) == keep {
				t.Errorf("fill = %+v, %v", f, err)
			}
		})
	}
}

// todoCaller makes calls to the tools of the model's own list.
type todoCaller struct{ scriptedModel }

func (l *todoCaller) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	reply, err := l.scriptedModel.Ask(ctx, req, on)
	if err == nil && len(reply.Calls) > 0 && reply.Calls[0].Name == "task_create" {
		reply.Calls[0].Arguments = json.RawMessage(`{"subject":"Feed the cat."}`)
	}
	return reply, err
}

func TestOpenTasksModeAndPlanAreToldAfterACompaction(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.md")
	if err := os.WriteFile(plan, []byte("1. Feed the cat."), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &todoCaller{scriptedModel{lines: []scriptedReply{{call: "task_create"}, {text: "noted"}, {text: "on"}}, summaries: []scriptedReply{{text: "A task was noted."}}}}
	s := &compactedSession{Fixture: sessiontest.New(t, m, todo.New()...), m: &m.scriptedModel, v: sessiontest.NewViewer()}
	s.Options.Folder = func(event.SessionID) string { return filepath.Dir(plan) }
	s.Fixture.Restart()
	s.attach(session.Spec{}, &session.Client{})
	if err := s.Host.Settings.SetMode(t.Context(), "s", event.ModePlan); err != nil {
		t.Fatal(err)
	}
	s.say("remember to feed the cat")
	at := s.end()
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "done" {
		t.Fatalf("it ended with %+v, %v", d, err)
	}
	told := s.since(at, event.SystemMessage)
	if snapshot := decoded[event.SystemMessageData](t, told[1]).Content; !strings.Contains(snapshot, "Feed the cat.") {
		t.Errorf("the snapshot says %q", snapshot)
	}
	s.say("go on")
	for _, want := range []string{"Feed the cat.", "Mode: plan", "Plan: " + plan} {
		if tail := m.last().Tail; !strings.Contains(tail, want) {
			t.Errorf("the model is told %q, without %q", tail, want)
		}
	}
}

func TestInstructionsAreReadAnewAfterACompactionInATurn(t *testing.T) {
	text := "Be brief."
	m := &scriptedModel{lines: []scriptedReply{{call: "print", usage: 100}, {call: "print", usage: 5000}, {text: "done"}}, summaries: []scriptedReply{{text: "It printed."}}}
	s := &compactedSession{Fixture: sessiontest.New(t, m, largeOutputTool{70}), m: m, v: sessiontest.NewViewer()}
	s.Options.Instructions = func(context.Context, workspace.Projects, string, ...string) (string, []event.InstructionSource, error) {
		defer func() { text = "Be thorough." }()
		return text, nil, nil
	}
	s.Options.LookTime = time.Minute // a compaction goes on without what it has not found by then
	s.Fixture.Restart()
	s.attach(session.Spec{Config: event.SessionConfiguredData{Compaction: event.CompactionRules{RequestThreshold: num(4000), Retained: num(0)}}}, &session.Client{})
	s.say("first")
	if !strings.Contains(m.asked[1].System, "Be brief.") || !strings.Contains(m.asked[2].System, "Be thorough.") {
		t.Errorf("the model is told %q, then %q", m.asked[1].System, m.asked[2].System)
	}
	if d := s.compactions(0); len(d) != 1 || d[0].Outcome != "done" {
		t.Errorf("compactions = %+v", d)
	}
}

func TestWhatAProviderCountedCountsAfterARestart(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi", usage: 5000}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	before, err := s.Host.Context.Fill(t.Context(), "s")
	if err != nil || before.Tokens < 5000 || before.Source != "usage" {
		t.Fatalf("fill = %+v, %v", before, err)
	}
	s.Restart()
	if after, err := s.Host.Context.Fill(t.Context(), "s"); err != nil || after.Reading != before.Reading {
		t.Errorf("after a restart %+v, before %+v, %v", after.Reading, before.Reading, err)
	}
}

func TestAfterAChangeOfTheModelThatIsTheTrigger(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: strings.Repeat("long ", 3000)}, {text: "on"}}, summaries: []scriptedReply{{text: "It was long."}}}
	s := squeeze(t, m, event.SessionConfiguredData{Window: 20_000})
	s.say("first")
	if err := s.Host.SetModel(t.Context(), "s", session.Choice{Model: "test", Window: 4000}); err != nil {
		t.Fatal(err)
	}
	s.say("second")
	if d := s.compactions(0); len(d) != 1 || d[0].Trigger != event.TriggerModel || d[0].Outcome != "done" {
		t.Errorf("compactions = %+v", d)
	}
}

func TestThresholdsThatMakeNoSenseAreToldAndTheSessionWorks(t *testing.T) {
	share := 7.0
	for name, config := range map[string]event.SessionConfiguredData{
		"negative":               {Compaction: event.CompactionRules{Threshold: num(-5)}},
		"larger than the window": {Compaction: event.CompactionRules{RequestThreshold: num(1 << 40)}},
		"reversed":               {Compaction: event.CompactionRules{Threshold: num(9000), RequestThreshold: num(8000)}},
		"not a share":            {Infinite: &event.InfiniteSessions{Background: &share}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}}
			s := squeeze(t, m, config)
			s.say("first")
			s.say("second")
			told := 0
			for _, kind := range s.v.Kinds() {
				if kind == event.SessionWarning {
					told++
				}
			}
			if told != 1 || lastAnswer(t, s.Verify("s")) != "on" {
				t.Errorf("%d warnings, answer %q", told, lastAnswer(t, s.Verify("s")))
			}
		})
	}
}

func TestASummaryIsCopiedToACheckpoint(t *testing.T) {
	dir := t.TempDir()
	off := false
	for name, infinite := range map[string]*event.InfiniteSessions{"by default": nil, "without a workspace": {Enabled: &off}} {
		t.Run(name, func(t *testing.T) {
			m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{text: "<overview>All is well.</overview><checkpoint_title>First Steps!</checkpoint_title>"}}}
			s := &compactedSession{Fixture: sessiontest.New(t, m), m: m, v: sessiontest.NewViewer()}
			s.Options.Folder = func(id event.SessionID) string { return filepath.Join(dir, name, string(id)) }
			s.Fixture.Restart()
			s.attach(session.Spec{Config: event.SessionConfiguredData{Infinite: infinite}}, &session.Client{})
			s.say("first")
			d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{})
			if err != nil || d.Outcome != "done" {
				t.Fatalf("it ended with %+v, %v", d, err)
			}
			if infinite != nil {
				if d.CheckpointPath != "" || d.CheckpointNumber != 0 {
					t.Errorf("there is a checkpoint: %+v", d)
				}
				return
			}
			if want := filepath.Join(dir, name, "s", "checkpoints", "001-first-steps.md"); d.CheckpointPath != want || d.CheckpointNumber != 1 {
				t.Errorf("checkpoint %d is %s, want %s", d.CheckpointNumber, d.CheckpointPath, want)
			}
			for file, want := range map[string]string{d.CheckpointPath: "All is well.", filepath.Join(filepath.Dir(d.CheckpointPath), "index.md"): "001-first-steps"} {
				if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
					t.Errorf("%s: %q, %v", file, text, err)
				}
			}
		})
	}
}

var _ tool.Tool = largeOutputTool{}
