package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
)

func num(n int) *int { return &n }

// contiguous checks that each part begins where the last one ended.
func (l *testWorker) contiguous(id event.SessionID, want int) []event.MemoryExtractedData {
	l.Helper()
	found := l.extracted(id)
	if len(found) != want {
		l.Fatalf("%d extractions, want %d", len(found), want)
	}
	next := event.Seq(1)
	for _, d := range found {
		if d.From != next || d.To < d.From {
			l.Errorf("part %d-%d, want one from %d", d.From, d.To, next)
		}
		next = d.To + 1
	}
	return found
}

// once checks that each word was given to be extracted exactly once.
func (l *testWorker) once(words ...string) {
	l.Helper()
	all := strings.Join(l.model.records, "\n")
	for _, w := range words {
		if n := strings.Count(all, w); n != 1 {
			l.Errorf("%q was read %d times, want once", w, n)
		}
	}
}

func TestExtractionGoesOnAfterACompactionWithoutAGapOrARepeat(t *testing.T) {
	story(t, func(l *testWorker) {
		l.rules.ExtractThreshold = 300
		l.squeeze = event.CompactionRules{Retained: num(0)}
	}, func(l *testWorker) {
		long := strings.Repeat(" and so on", 150)
		l.create("s")
		l.turn("s", "alpha"+long)
		l.await("s", event.MemoryExtracted, 1)
		l.turn("s", "beta") // too short to be extracted
		if d, err := l.host.Context.Compact(l.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "done" {
			l.Fatalf("compaction: %+v, %v", d, err)
		}
		l.turn("s", "gamma"+long)
		l.await("s", event.MemoryExtracted, 2)
		found := l.contiguous("s", 2)
		l.once("alpha", "beta", "gamma") // beta from the log, though the context has a summary
		if found[0].EpochID != "" || found[1].EpochID == "" || found[1].EpochID != l.looked("s").Epoch {
			l.Errorf("epochs %q and %q", found[0].EpochID, found[1].EpochID)
		}
		// A restart counts the same from the log.
		before := l.looked("s").Memory
		l.reopen()
		if after := l.looked("s").Memory; after.Pointer != before.Pointer || after.Size != before.Size || after.Hash != before.Hash || after.Waiting != before.Waiting {
			l.Errorf("before %+v, after %+v", before, after)
		}
	})
}

// print is a tool that prints.
type print struct{ run func() }

func (print) Spec() tool.Spec                                                  { return tool.Spec{Name: "print", Replay: tool.Keyed} }
func (print) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }
func (p print) Run(context.Context, tool.Call) (tool.Result, error) {
	p.run()
	return tool.Result{Text: "printed"}, nil
}

func TestAnExtractionThatEndsAfterACompactionInATurnLandsOnItsEpoch(t *testing.T) {
	ran := false
	story(t, func(l *testWorker) {
		l.squeeze = event.CompactionRules{RequestThreshold: num(800), Retained: num(0)}
		l.tools = []tool.Tool{print{func() { ran = true }}}
	}, func(l *testWorker) {
		l.create("s")
		gate := l.model.hold("s")
		l.turn("s", "alpha")
		synctest.Wait() // the extraction of the first turn is under way
		l.model.mu.Lock()
		l.model.does = func(req *model.Request) *model.Reply {
			if ran || !strings.Contains(req.Messages[len(req.Messages)-1].Text, "beta") {
				return nil
			}
			return &model.Reply{Calls: []model.Call{{ID: "c", Name: "print", Arguments: json.RawMessage("{}")}}, Usage: model.Usage{Input: 1000, Output: 1}}
		}
		l.model.mu.Unlock()
		l.turn("s", "beta")
		if !ran {
			l.Fatal("the turn has made no call")
		}
		var compacted []string
		for _, e := range l.events("s", event.CompactionComplete) {
			compacted = append(compacted, as[event.CompactionCompleteData](l, e).Outcome)
		}
		if len(compacted) == 0 || compacted[len(compacted)-1] != "done" {
			l.Fatalf("compactions = %v, want one in the middle of the turn", compacted)
		}
		close(gate)
		l.await("s", event.MemoryExtracted, 2)
		found := l.contiguous("s", 2)
		if found[0].EpochID != "" || found[1].EpochID == "" || found[1].EpochID != l.looked("s").Epoch {
			l.Errorf("epochs %q and %q, want those in which it was said", found[0].EpochID, found[1].EpochID)
		}
		l.once("alpha", "beta", "printed")
		if _, err := l.host.Log.Verify(l.Context(), "s"); err != nil {
			l.Error(err)
		}
	})
}

// rewindToMessage takes back the message of the user with an index, and what followed it.
func (l *testWorker) rewindToMessage(id event.SessionID, index int) {
	l.Helper()
	head, err := l.events(id, event.UserMessage)[index].Head()
	if err != nil {
		l.Fatal(err)
	}
	if _, err := l.host.Rewind(l.Context(), id, session.Rewind{EventID: head.ID, KeepFiles: true}); err != nil {
		l.Fatal(err)
	}
}

// What was taken back while a job was at work is not remembered.
func TestWhatWasTakenBackMeanwhileIsNotRemembered(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.create("s")
		l.turn("s", "keep this")
		l.await("s", event.MemoryExtracted, 1)
		gate := l.model.hold("s")
		l.turn("s", "no, the secret plan")
		synctest.Wait()
		l.rewindToMessage("s", 1)
		close(gate)
		l.await("s", event.MemoryExtracted, 2)
		synctest.Wait()
		found := l.contiguous("s", 2)
		if found[1].Found != 0 {
			l.Errorf("%d findings in what was taken back", found[1].Found)
		}
		if len(l.jobs()) != 1 { // the consolidation of the first
			l.Errorf("jobs = %s", describe(l.jobs()))
		}
	})
}

// A rewind in the middle of a part leaves the places of all others as they are.
func TestARewindInAPartMovesNothingElse(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.worker.Stop()
		l.create("s")
		l.turn("s", "alpha")
		l.turn("s", "taken back")
		l.rewindToMessage("s", 1)
		l.turn("s", "beta")
		l.start()
		synctest.Wait()
		l.turn("s", "gamma")
		synctest.Wait()
		l.turn("s", "delta")
		synctest.Wait()
		found := l.extracted("s")
		l.contiguous("s", len(found))
		l.once("alpha", "beta", "gamma", "delta")
		if strings.Contains(strings.Join(l.model.records, ""), "taken back") {
			l.Errorf("it was given what was taken back: %q", l.model.records)
		}
		if r := l.looked("s"); r.Size != 0 || len(l.jobs()) != 0 {
			l.Errorf("%d bytes are left, jobs %s", r.Size, describe(l.jobs()))
		}
	})
}

func TestABacklogIsReadInPartsAndNothingIsCut(t *testing.T) {
	story(t, func(l *testWorker) {
		l.rules = event.MemoryRules{}
		l.window = 3000
	}, func(l *testWorker) {
		l.create("s")
		var words []string
		for i := range 12 {
			word := "word" + string(rune('a'+i)) + " "
			words = append(words, word)
			l.turn("s", word+strings.Repeat("and so on ", 200))
		}
		id, err := l.host.Memory.Schedule(l.Context(), "s")
		if err != nil {
			l.Fatal(err)
		}
		if err := l.worker.Wait(l.Context(), id); err != nil {
			l.Fatal(err)
		}
		l.once(words...)
		if n := len(l.extracted("s")); n < 4 {
			l.Errorf("%d parts, want several", n)
		}
		l.contiguous("s", len(l.extracted("s")))
		if size := l.looked("s").Size; size != 0 {
			l.Errorf("%d bytes are left", size)
		}
	})
}

// Whoever is second finds that the session has moved on, and begins where the first
// has ended.
func TestOfTwoJobsAboutTheSamePartOneCounts(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.create("s")
		gate := l.model.hold("s")
		l.turn("s", "alpha")
		synctest.Wait()
		id, err := l.host.Memory.Schedule(l.Context(), "s")
		if err != nil {
			l.Fatal(err)
		}
		synctest.Wait()
		if n := l.model.extractions(); n != 2 {
			l.Fatalf("%d extractions are under way, want two of the same part", n)
		}
		close(gate)
		if err := l.worker.Wait(l.Context(), id); err != nil {
			l.Fatal(err)
		}
		l.contiguous("s", 1)
		if text := l.page(memory.KindDecisions); strings.Count(text, "SQLite it is") != 1 {
			l.Errorf("decisions:\n%s", text)
		}
	})
}

func TestAForkIsExtractedOnItsOwn(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.create("s")
		l.turn("s", "alpha")
		l.await("s", event.MemoryExtracted, 1)
		if _, err := l.host.Fork(l.Context(), "fork", "s", 0, ""); err != nil {
			l.Fatal(err)
		}
		l.turn("fork", "beta")
		l.await("fork", event.MemoryExtracted, 2) // the first is its parent's
		l.contiguous("fork", 2)
		l.once("alpha", "beta")
	})
}
