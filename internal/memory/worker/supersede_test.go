package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
)

// A later session shows that a fact is not true any more: the model that extracts is shown
// the fact, and what it finds takes its place. What a person wrote on the page stays, even if
// it says the same.
func TestAFactThatContradictsAKnownOneTakesItsPlace(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("a")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		b := l.books.For(l.work, "")
		text, was, err := b.Read(memory.KindDecisions)
		if err != nil {
			l.Fatal(err)
		}
		if _, err := b.Write(memory.KindDecisions, text+"\nSQLite it is: because\n", was); err != nil {
			l.Fatal(err)
		}
		var shown string
		l.model.mu.Lock()
		l.model.extract = func(_ context.Context, req *model.Request) (*model.Reply, error) {
			shown = req.Messages[0].Text
			return handIn(memory.Extracted{Decisions: []memory.Decision{{Chosen: "Postgres it is", Options: []string{}, Rationale: "it grew", Replacing: memory.Replacing{Supersedes: []int{1}}}}}), nil
		}
		l.model.mu.Unlock()
		l.noted("b")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if !strings.Contains(shown, "<known>\n1. SQLite it is: because\n</known>") {
			l.Errorf("the model was shown %.300q", shown)
		}
		page := l.page(memory.KindDecisions)
		if strings.Contains(page, "- SQLite it is") || !strings.Contains(page, "- Postgres it is: it grew [2000-01-01, b#") || !strings.Contains(page, "\nSQLite it is: because\n") {
			l.Errorf("decisions:\n%s", page)
		}
		done := l.consolidated("b")
		if len(done) != 1 || len(done[0].Pages) != 1 || done[0].Pages[0].Superseded != 1 {
			l.Errorf("recorded: %+v", done)
		}
		if versions, err := b.History(memory.KindDecisions); err != nil || len(versions) < 3 {
			l.Errorf("the fact cannot be had back: %v, %v", versions, err)
		}
	})
}

// A consolidation that has looked at a session before it was forgotten writes nothing of it.
func TestWhatIsForgottenDuringAConsolidationStaysForgotten(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("s")
		looked, err := l.host.Memory.Remembered(l.Context(), "s")
		if err != nil || looked.Waiting == 0 {
			l.Fatalf("%+v, %v", looked, err)
		}
		if _, err := l.worker.Forget(l.Context(), "s", ""); err != nil {
			l.Fatal(err)
		}
		if err := l.worker.WritePages(l.Context(), eventlog.Job{ID: "j", Session: "s"}, looked); !errors.Is(err, session.ErrMoved) {
			l.Errorf("err = %v", err)
		}
		for _, b := range l.books.All(l.work, "") {
			if names, err := b.Names(); err != nil || len(names) > 0 {
				l.Errorf("pages %q were written, %v", names, err)
			}
		}
		if n := len(l.events("s", event.MemoryConsolidated)); n != 1 {
			l.Errorf("%d consolidations are recorded, want the forgetting alone", n)
		}
	})
}
