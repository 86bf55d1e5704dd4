package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/scripted"
)

// facts are what the model extracts from each turn, by its prompt.
var facts = map[string]string{"Reply with exactly: FIRST": "the first is noted", "Reply with exactly: SECOND": "the second is noted"}

// memoryScript writes the script of a model that extracts one fact from each turn.
func memoryScript(t *testing.T) string {
	t.Helper()
	var rules []rule
	for prompt, fact := range facts {
		_, word, _ := strings.Cut(prompt, ": ")
		rules = append(rules,
			rule{"when": rule{"tool": "write_extracted", "userContains": prompt}, "reply": rule{"calls": []rule{{"tool": "write_extracted", "arguments": rule{
				"decisions": []rule{{"options": []string{}, "chosen": fact, "rationale": ""}}, "discussions": []rule{}, "attempts": []rule{}, "requests": []rule{},
			}}}}},
			rule{"when": rule{"user": prompt}, "reply": rule{"text": word}})
	}
	rules = append(rules, rule{"when": rule{"tool": "write_extracted"}, "reply": rule{"calls": []rule{{"tool": "write_extracted", "arguments": rule{
		"decisions": []rule{}, "discussions": []rule{}, "attempts": []rule{}, "requests": []rule{},
	}}}}})
	b, err := json.Marshal(rule{"rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "remember.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A memoryRun is a run in which every turn is extracted and consolidated before the
// next one begins, so that every run has the same writes.
type memoryRun struct {
	*run
	source *modelSource
	dir    string // the workspace
}

func newMemoryRun(t *testing.T) *memoryRun {
	t.Helper()
	return newMemoryRunWith(t, &modelSource{model: scripted.Name + ":" + memoryScript(t), faults: noRequests, history: noRequests})
}

// newMemoryRunWith is newMemoryRun with a way to reach the model.
func newMemoryRunWith(t *testing.T, w *modelSource) *memoryRun {
	t.Helper()
	m := &memoryRun{source: w, dir: t.TempDir()}
	open := m.source.open("s")
	open.WorkingDirectory = m.dir
	m.run = newRun(t, conversation{open, []exchange{{prompt: "Reply with exactly: FIRST"}, {prompt: "Reply with exactly: SECOND"}}})
	m.driveClient = m.remember
	err := errors.Join(os.Mkdir(filepath.Join(m.dir, ".git"), 0o755), os.MkdirAll(m.instructions.Dir, 0o700),
		os.WriteFile(filepath.Join(m.instructions.Dir, "config.toml"), []byte("[memory]\nextract_threshold = 1\nidle = \"20ms\"\nrecall_tokens = 0\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// remember drives the client to the end of the conversation, and waits for the memory
// of each turn.
func (m *memoryRun) remember(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	done, err := c.turnsDone(ctx)
	if err != nil {
		return err
	}
	for _, x := range c.conversation.turns[done:] {
		if err := c.send(ctx, api.SendParams{Prompt: x.prompt}); err != nil {
			return err
		}
		if err := errors.Join(c.answerUntilIdle(ctx, x), c.awaitJobs(ctx)); err != nil {
			return err
		}
	}
	return c.awaitJobs(ctx)
}

// awaitJobs waits until no job is left.
func (c *client) awaitJobs(ctx context.Context) error {
	for {
		var list api.JobsResult
		if err := c.call(ctx, api.Jobs, api.SessionParams{}, &list); err != nil || len(list.Jobs) == 0 {
			return err
		}
		if err := c.call(ctx, api.JobWait, api.JobParams{JobID: list.Jobs[0].JobID}, nil); err != nil {
			return err
		}
	}
}

// judge reports every promise that a run broke: what was said was extracted exactly
// once, and is in the pages exactly once.
func (m *memoryRun) judge(t *testing.T, got outcome, want expected) {
	t.Helper()
	judgeRun(t, m.source, got, want)
	next, waiting := event.Seq(1), event.Seq(0)
	for _, e := range got.log {
		switch e.Type {
		case event.MemoryExtracted:
			d, err := event.As[event.MemoryExtractedData](e)
			if err != nil || d.From != next || d.To < d.From || d.Quarantined {
				t.Errorf("event %d: the part %d to %d was extracted, want one from %d: %v %s", e.Seq, d.From, d.To, next, err, d.Error)
			}
			if next = d.To + 1; d.Found > 0 {
				waiting = e.Seq
			}
		case event.MemoryConsolidated:
			d, err := event.As[event.MemoryConsolidatedData](e)
			if err != nil || d.Through < waiting {
				t.Errorf("event %d: consolidated through %d, want %d: %v", e.Seq, d.Through, waiting, err)
			}
			waiting = 0
		case event.UserMessage, event.AssistantMessage:
			if e.Seq < next {
				t.Errorf("event %d is in a part that was extracted before it was said", e.Seq)
			}
		}
	}
	if waiting != 0 {
		t.Errorf("what was found in event %d is not consolidated", waiting)
	}
	m.checkPage(t, got.log, next)
}

// checkPage checks that the page of memory has every fact once.
func (m *memoryRun) checkPage(t *testing.T, log []event.Event, extracted event.Seq) {
	t.Helper()
	for _, e := range log {
		if e.Seq >= extracted && (e.Type == event.UserMessage || e.Type == event.AssistantMessage) {
			t.Errorf("event %d was never extracted", e.Seq)
		}
	}
	page, err := os.ReadFile(filepath.Join(m.dir, ".abide", "memory", "decisions.md"))
	if err != nil {
		t.Error(err)
	}
	for _, fact := range facts {
		if n := strings.Count(string(page), fact); n != 1 {
			t.Errorf("the page says %d times %q:\n%s", n, fact, page)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(m.dir, ".abide", "memory", "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The engine is killed before, in and after every write of two turns, of their
// extraction and of their consolidation.
func TestKilledWhileItRemembersNothingIsForgottenAndNothingIsNotedTwice(t *testing.T) {
	calm := newMemoryRun(t)
	calmly := calm.play()
	calm.judge(t, calmly, calmly.expected())
	kinds := make(map[event.Type]int)
	for _, w := range calmly.writes {
		for _, kind := range w.Events {
			kinds[kind]++
		}
	}
	if kinds[event.MemoryExtracted] != 2 || kinds[event.MemoryConsolidated] != 2 {
		t.Fatalf("the writes are %v", calmly.writes)
	}
	for _, at := range stops(calmly.writes, true, 0) {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calmly.writes[at.Write-1].Events)
			m := newMemoryRun(t)
			m.judge(t, m.play(at), calmly.expected())
		})
	}
}
