package worker_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
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

// Consolidations at the same time write each fact once, with every source: of two for the same
// session one is too late, and two sessions that found the same share a line.
func TestOfConsolidationsAtTheSameTimeNoneIsLostOrWrittenTwice(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		ended := make(chan error, 3)
		var looked []session.Remembered
		ids := []event.SessionID{"a", "b", "a"}
		for _, id := range ids[:2] {
			l.noted(id)
		}
		for _, id := range ids {
			one, err := l.host.Memory.Remembered(l.Context(), id)
			if err != nil || one.Waiting == 0 {
				l.Fatalf("%+v, %v", one, err)
			}
			looked = append(looked, one)
		}
		for i, id := range ids {
			go func() {
				ended <- l.worker.WritePages(l.Context(), eventlog.Job{ID: string(id), Session: id}, looked[i])
			}()
		}
		late := 0
		for range ids {
			if err := <-ended; errors.Is(err, session.ErrMoved) {
				late++
			} else if err != nil {
				l.Error(err)
			}
		}
		page := l.page(memory.KindDecisions)
		if late != 1 || strings.Count(page, "SQLite it is") != 1 || strings.Count(page, "a#") != 1 || strings.Count(page, "b#") != 1 {
			l.Errorf("%d were too late, and the page is\n%s", late, page)
		}
		for _, id := range ids[:2] {
			if done := l.consolidated(id); len(done) != 1 {
				l.Errorf("session %s: recorded %+v", id, done)
			}
		}
	})
}

// In a long session somebody changes their mind before anything is on a page: the second
// extraction is shown what the first one found, and only the second is written.
func TestAFactThatContradictsOneOfTheSameSessionTakesItsPlace(t *testing.T) {
	story(t, func(l *testWorker) { l.model.extract = decided("Postgres it is") }, func(l *testWorker) {
		l.noted("s")
		var shown string
		l.model.mu.Lock()
		l.model.extract = func(_ context.Context, req *model.Request) (*model.Reply, error) {
			shown = req.Messages[0].Text
			return handIn(memory.Extracted{Decisions: []memory.Decision{{Chosen: "SQLite it is", Options: []string{}, Rationale: "it is one file", Replacing: memory.Replacing{Supersedes: []int{1}}}}}), nil
		}
		l.model.mu.Unlock()
		l.turn("s", "no, another one")
		l.await("s", event.MemoryExtracted, 2)
		if !strings.Contains(shown, "<known>\n1. Postgres it is: because\n</known>") {
			l.Errorf("the model was shown %.300q", shown)
		}
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if page := l.page(memory.KindDecisions); strings.Contains(page, "Postgres") || !strings.Contains(page, "- SQLite it is: it is one file [") {
			l.Errorf("decisions:\n%s", page)
		}
	})
}

// A fact stays until what takes its place can be written, although its own page could be.
func TestAFactStaysUntilWhatTakesItsPlaceIsWritten(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("a")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		attempts := l.books.For(l.work, "").Path(memory.KindAttempts)
		if err := os.WriteFile(attempts, []byte("---\nno end"), 0o600); err != nil {
			l.Fatal(err)
		}
		l.model.mu.Lock()
		l.model.extract = func(context.Context, *model.Request) (*model.Reply, error) {
			return handIn(memory.Extracted{Attempts: []memory.Attempt{{Action: "SQLite", Result: "it did not hold", Replacing: memory.Replacing{Supersedes: []int{1}}}}}), nil
		}
		l.model.mu.Unlock()
		l.noted("b")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if page := l.page(memory.KindDecisions); !strings.Contains(page, "- SQLite it is") || len(l.consolidated("b")) > 0 {
			l.Errorf("the fact is gone, and nothing is in its place:\n%s", page)
		}
		if err := os.Remove(attempts); err != nil {
			l.Fatal(err)
		}
		l.await("b", event.MemoryConsolidated, 1)
		if page := l.page(memory.KindDecisions); strings.Contains(page, "- SQLite it is") || !strings.Contains(l.page(memory.KindAttempts), "it did not hold") {
			l.Errorf("decisions:\n%s", page)
		}
	})
}

// What the user wants is changed only by what the user says. A page that a session has read
// says otherwise, and the model that extracts believes it.
func TestOnlyTheUserChangesWhatTheUserWants(t *testing.T) {
	first := regexp.MustCompile(`events (\d+) to`)
	wish := func(_ context.Context, req *model.Request) (*model.Reply, error) {
		n, err := strconv.ParseInt(first.FindStringSubmatch(req.Messages[0].Text)[1], 10, 64)
		if err != nil {
			return nil, err
		}
		var all memory.Sources // the message of the user is one of them
		for at := range event.Seq(5) {
			all = append(all, event.Seq(n)+at)
		}
		return handIn(memory.Extracted{Requests: []memory.Request{{Intent: "be brief", Summary: "always", Sources: all}}}), nil
	}
	story(t, func(l *testWorker) { l.model.extract = wish }, func(l *testWorker) {
		l.noted("a")
		var asked []string
		l.model.mu.Lock()
		l.model.extract = func(_ context.Context, req *model.Request) (*model.Reply, error) {
			text := req.Messages[0].Text
			if asked = append(asked, text); strings.Contains(text, "Your last attempt was of no use") {
				return handIn(memory.Extracted{}), nil
			}
			return handIn(memory.Extracted{Decisions: []memory.Decision{{Chosen: "long answers", Options: []string{}, Rationale: "the page says so", Replacing: memory.Replacing{Supersedes: []int{1}}}}}), nil
		}
		l.model.mu.Unlock()
		l.turn("a", "read the page") // before the wish is on a page
		l.await("a", event.MemoryExtracted, 2)
		time.Sleep(idle + time.Second)
		synctest.Wait()
		l.noted("b")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if len(asked) != 4 {
			l.Fatalf("the model was asked %d times, want twice for each of two parts", len(asked))
		}
		for i, text := range asked {
			if !strings.Contains(text, "<known>\n1. (wanted by the user) be brief: always\n</known>") || strings.Contains(text, "only the user can change that") != (i%2 == 1) {
				l.Errorf("request %d: %q", i, text)
			}
		}
		if page := l.page(memory.KindRequests); !strings.Contains(page, "- be brief: always [") {
			l.Errorf("requests:\n%s", page)
		}
	})
}
