package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/model"
)

// noted is a session in which a decision was found, and when its last event was
// stored.
func (l *testWorker) noted(id event.SessionID) time.Time {
	l.Helper()
	l.create(id)
	l.turn(id, "remember this")
	l.await(id, event.MemoryExtracted, 1)
	index, err := l.store.Session(l.Context(), id)
	if err != nil {
		l.Fatal(err)
	}
	return index.Modified
}

func deciding(l *testWorker) { l.model.extract = decided("SQLite it is") }

func TestStartTwiceIsOneLoopAndStopTwiceIsNoError(t *testing.T) {
	story(t, func(l *testWorker) { deciding(l); l.opts.Parallel = 1 }, func(l *testWorker) {
		l.start() // it was started already
		l.start()
		for i := range 3 {
			l.create(event.SessionID(fmt.Sprint(i)))
			l.model.hold(fmt.Sprint(i))
			l.turn(event.SessionID(fmt.Sprint(i)), "hello")
		}
		synctest.Wait()
		if n := l.model.extractions(); n != 1 { // a second loop would work on a second job
			l.Errorf("%d jobs are worked on, want one at a time", n)
		}
		l.worker.Stop()
		l.worker.Stop()
	})
}

func TestStopReturnsPromptlyInALongWait(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("s")
		synctest.Wait() // the timer waits for the idle limit
		before := time.Now()
		l.worker.Stop()
		if took := time.Since(before); took != 0 { // nothing else could end the wait
			l.Errorf("it took %v to stop", took)
		}
		if n := len(l.consolidated("s")); n != 0 {
			l.Errorf("%d consolidations before the limit", n)
		}
	})
}

func TestASessionIsConsolidatedOnceItHasBeenIdleForLongerThanTheLimit(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		last := l.noted("s")
		for _, tt := range []struct {
			idle time.Duration
			want int
		}{{idle - time.Second, 0}, {idle, 0}, {idle + time.Millisecond, 1}, {5 * idle, 1}} {
			time.Sleep(time.Until(last.Add(tt.idle)))
			synctest.Wait()
			if n := len(l.consolidated("s")); n != tt.want {
				l.Errorf("idle for %v: %d consolidations, want %d", tt.idle, n, tt.want)
			}
		}
		if text := l.page(memory.KindDecisions); !strings.Contains(text, "- SQLite it is: because [2000-01-01, s#") {
			l.Errorf("decisions:\n%s", text)
		}
		if left := l.jobs(); len(left) != 0 {
			l.Errorf("jobs = %s", describe(left))
		}
	})
}

func TestActivityPutsConsolidationOff(t *testing.T) {
	story(t, func(l *testWorker) { deciding(l); l.rules.ExtractThreshold = 150 }, func(l *testWorker) {
		l.create("s")
		l.turn("s", strings.Repeat("long ", 200))
		l.await("s", event.MemoryExtracted, 1)
		for range 3 { // each turn is stored activity, and too short to be extracted
			time.Sleep(idle * 2 / 3)
			l.turn("s", "still here")
		}
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 0 {
			l.Errorf("%d consolidations of an active session", n)
		}
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 1 {
			l.Errorf("%d consolidations of an idle session, want 1", n)
		}
	})
}

// What is in memory does not count: after a restart the time of the last stored event
// decides, and not that of the restart.
func TestWithoutRecordedActivityTheStoredTimeDecides(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		last := l.noted("s")
		time.Sleep(idle - time.Minute)
		l.reopen()
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 0 {
			l.Errorf("%d consolidations before the limit", n)
		}
		time.Sleep(time.Until(last.Add(idle + time.Millisecond)))
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 1 {
			l.Errorf("%d consolidations, want one when the stored time says so", n)
		}
	})
}

func TestOfThreeIdleSessionsTheMiddleOneFailsAlone(t *testing.T) {
	story(t, func(l *testWorker) { deciding(l); l.opts.Parallel = 1 }, func(l *testWorker) {
		l.noted("a")
		own := l.work
		l.work = l.TempDir() // the middle session has a workspace of its own
		damaged := filepath.Join(l.work, ".abide", "memory", memory.KindDecisions+".md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(damaged), 0o755), os.WriteFile(damaged, []byte("---\nno end"), 0o644)); err != nil {
			l.Fatal(err)
		}
		l.noted("b")
		l.work = own
		l.noted("c")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		for id, want := range map[event.SessionID]int{"a": 1, "b": 0, "c": 1} {
			if n := len(l.consolidated(id)); n != want {
				l.Errorf("%s: %d consolidations, want %d", id, n, want)
			}
		}
		if text, _ := os.ReadFile(damaged); string(text) != "---\nno end" {
			l.Errorf("the damaged page was changed: %q", text)
		}
		jobs := l.jobs()
		if len(jobs) != 1 || jobs[0].Session != "b" || !strings.Contains(jobs[0].Error, "the front matter has no end") || !strings.Contains(jobs[0].Error, damaged) {
			l.Errorf("jobs = %s: %+v", describe(jobs), jobs)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if jobs := l.jobs(); len(jobs) != 1 || !jobs[0].Aside() || jobs[0].Attempts != 5 {
			l.Errorf("jobs = %s, want it set aside after 5 attempts", describe(jobs))
		}
		// A person mends the page and has it tried again.
		if err := os.Remove(damaged); err != nil {
			l.Fatal(err)
		}
		if err := l.host.Memory.RetryJob(l.Context(), jobs[0].ID); err != nil {
			l.Fatal(err)
		}
		if err := l.worker.Wait(l.Context(), jobs[0].ID); err != nil {
			l.Error(err)
		}
		if n := len(l.consolidated("b")); n != 1 {
			l.Errorf("b: %d consolidations, want 1", n)
		}
	})
}

func TestASessionWithARunningTurnIsSkipped(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("s")
		gate := make(chan struct{})
		l.model.mu.Lock()
		l.model.says = func(*model.Request) string { <-gate; return "at last" }
		l.model.mu.Unlock()
		l.send("s", "take your time")
		time.Sleep(3 * idle) // idle by the clock
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 0 {
			l.Errorf("%d consolidations during a turn", n)
		}
		close(gate)
		l.idle("s")
		time.Sleep(2*idle + time.Second)
		synctest.Wait()
		if n := len(l.consolidated("s")); n != 1 {
			l.Errorf("%d consolidations after it, want 1", n)
		}
	})
}

// What a job is about is known when it is written down. What comes later is for the
// next, also if the log is read then.
func TestAJobReadsWhatItIsAboutAndNoMore(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.worker.Stop()
		l.create("s")
		l.turn("s", "early")
		l.turn("s", "late")
		l.start()
		l.await("s", event.MemoryExtracted, 2)
		l.contiguous("s", 2)
		if first := l.model.records[0]; !strings.Contains(first, "early") || strings.Contains(first, "late") {
			l.Errorf("the first was given %q", first)
		}
	})
}

// What arrives while a job is at work is not part of it: it is found by the next.
func TestAMessageThatArrivesDuringAnExtractionIsLeftForTheNext(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.create("s")
		gate := l.model.hold("s")
		l.turn("s", "early")
		synctest.Wait()
		l.turn("s", "late")
		close(gate)
		l.await("s", event.MemoryExtracted, 2)
		if first := l.model.records[0]; !strings.Contains(first, "early") || strings.Contains(first, "late") {
			l.Errorf("the first was given %q", first)
		}
		if second := l.model.records[1]; strings.Contains(second, "early") || !strings.Contains(second, "late") {
			l.Errorf("the second was given %q", second)
		}
		found := l.extracted("s")
		if found[1].From != found[0].To+1 {
			l.Errorf("parts %d-%d and %d-%d", found[0].From, found[0].To, found[1].From, found[1].To)
		}
	})
}

func TestAJobInFlightAtShutdownIsResumedAndNeverHalfApplied(t *testing.T) {
	story(t, func(l *testWorker) { deciding(l) }, func(l *testWorker) {
		l.create("s")
		gate := l.model.hold("s")
		l.turn("s", "hello")
		synctest.Wait()
		before := time.Now()
		l.worker.Stop() // a model request is under way
		if took := time.Since(before); took != 0 {
			l.Errorf("it took %v to stop", took)
		}
		jobs := l.jobs()
		if len(jobs) != 1 || jobs[0].Holder != "" || jobs[0].Due.After(time.Now()) || jobs[0].Attempts != 0 {
			l.Fatalf("jobs = %+v, want the row back, due, and no attempt counted", jobs)
		}
		if n := len(l.extracted("s")); n != 0 {
			l.Errorf("%d extractions were recorded", n)
		}
		close(gate)
		l.reopen()
		l.await("s", event.MemoryExtracted, 1)
		if n := len(l.extracted("s")); n != 1 {
			l.Errorf("%d extractions, want 1", n)
		}
	})
}

// What a crash leaves is a lease; whoever comes next takes it over.
func TestAJobWhoseHolderIsGoneIsTakenAgain(t *testing.T) {
	story(t, nil, func(l *testWorker) {
		l.worker.Stop()
		l.create("s")
		l.turn("s", "hello")
		until := time.Now().Add(time.Hour)
		if j, _, err := l.store.TakeJob(l.Context(), "somebody who died", time.Now(), until); err != nil || j == nil {
			l.Fatal(j, err)
		}
		l.start()
		synctest.Wait()
		if n := len(l.extracted("s")); n != 0 {
			l.Errorf("%d extractions while somebody holds the job", n)
		}
		time.Sleep(time.Until(until))
		synctest.Wait()
		if n := len(l.extracted("s")); n != 1 {
			l.Errorf("%d extractions when the lease is over, want 1", n)
		}
	})
}

func TestConstantTrafficOnOneSessionDoesNotStarveAnother(t *testing.T) {
	story(t, func(l *testWorker) {
		l.opts.Parallel = 1
		l.model.extract = func(ctx context.Context, req *model.Request) (*model.Reply, error) {
			if req.Session == "busy" { // longer than until its next turn: there is always something due
				time.Sleep(15 * time.Second)
			}
			return decided("SQLite it is")(ctx, req)
		}
	}, func(l *testWorker) {
		last := l.noted("quiet")
		l.create("busy")
		ctx, cancel := context.WithCancel(l.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				l.turn("busy", "and another thing")
				time.Sleep(10 * time.Second)
			}
		}()
		time.Sleep(time.Until(last.Add(idle + 20*time.Second)))
		consolidated := len(l.consolidated("quiet"))
		cancel()
		<-done
		synctest.Wait()
		if n := consolidated; n != 1 {
			l.Errorf("%d consolidations of the quiet session within one interval, want 1", n)
		}
		if n := len(l.consolidated("busy")); n != 0 {
			l.Errorf("%d consolidations of the busy one", n)
		}
	})
}

func TestAFailingModelOfOneSessionDoesNotCountForAnother(t *testing.T) {
	story(t, func(l *testWorker) {
		failed := false
		l.model.extract = func(_ context.Context, req *model.Request) (*model.Reply, error) {
			if req.Session == "a" || !failed {
				failed = failed || req.Session == "b"
				return nil, &model.Error{Kind: model.KindRequest, Message: "no"}
			}
			return decided("fine")(nil, nil)
		}
		l.opts.Parallel = 1
	}, func(l *testWorker) {
		l.create("a")
		l.create("b")
		l.turn("a", "the secret word is plover")
		l.turn("b", "hello")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if jobs := l.jobs(); len(jobs) != 2 || jobs[0].Attempts != 1 || jobs[1].Attempts != 1 {
			l.Errorf("jobs = %s, want one attempt each", describe(jobs))
		}
		time.Sleep(4 * time.Minute) // 1 and 2 minutes between attempts
		synctest.Wait()
		jobs := l.jobs()
		if len(jobs) != 2 || jobs[0].Session != "a" || jobs[0].Attempts != 3 || jobs[1].Session != "b" || jobs[1].Attempts != 0 {
			l.Errorf("jobs = %s", describe(jobs))
		}
		if n := len(l.extracted("b")); n != 1 {
			l.Errorf("b: %d extractions", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		found := l.extracted("a")
		if len(found) != 1 || !found[0].Quarantined || found[0].Error != "no" || found[0].Found != 0 {
			l.Fatalf("extracted = %+v, want it set aside", found)
		}
		// What comes after it is read, and its content is there in full when the
		// model has recovered.
		l.model.mu.Lock()
		l.model.extract = decided("recovered")
		l.model.mu.Unlock()
		l.turn("a", "and now?")
		l.await("a", event.MemoryExtracted, 2)
		aside := l.jobs()[len(l.jobs())-1]
		if !aside.Aside() || aside.From != found[0].From || aside.To != found[0].To {
			l.Fatalf("jobs = %s, want the part that was set aside", describe(l.jobs()))
		}
		if err := l.host.Memory.RetryJob(l.Context(), aside.ID); err != nil {
			l.Fatal(err)
		}
		if err := l.worker.Wait(l.Context(), aside.ID); err != nil {
			l.Fatal(err)
		}
		if last := l.model.records[len(l.model.records)-1]; !strings.Contains(last, "plover") || strings.Contains(last, "and now?") {
			l.Errorf("it was given %q", last)
		}
		if r := l.looked("a"); len(r.Aside) != 0 || r.Pointer != l.extracted("a")[1].To {
			l.Errorf("remembered = %+v", r.Memory)
		}
	})
}

func TestScheduleReturnsAJobBeforeAnyWork(t *testing.T) {
	story(t, func(l *testWorker) {
		deciding(l)
		l.rules = event.MemoryRules{} // nothing happens by itself
	}, func(l *testWorker) {
		l.create("s")
		l.turn("s", "remember this")
		gate := l.model.hold("s")
		id, err := l.host.Memory.Schedule(l.Context(), "s")
		if err != nil {
			l.Fatal(err)
		}
		if j, err := l.store.Job(l.Context(), id); err != nil || j.Session != "s" || j.Kind != eventlog.JobConsolidate {
			l.Errorf("job = %+v, %v", j, err)
		}
		if again, err := l.host.Memory.Schedule(l.Context(), "s"); err != nil || again != id {
			l.Errorf("asked again: %q, %v; want the same job", again, err)
		}
		if text := l.page(memory.KindDecisions); text != "" {
			l.Errorf("it was done already:\n%s", text)
		}
		close(gate)
		if err := l.worker.Wait(l.Context(), id); err != nil {
			l.Fatal(err)
		}
		if text := l.page(memory.KindDecisions); !strings.Contains(text, "SQLite it is") {
			l.Errorf("decisions:\n%s", text)
		}
		if _, err := l.host.Memory.Schedule(l.Context(), "nobody"); !errors.Is(err, eventlog.ErrNotFound) {
			l.Errorf("schedule nobody: %v", err)
		}
	})
}

func TestOfTwoSessionsWithTheSameFactBothAreCited(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("a")
		l.noted("b")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if text := l.page(memory.KindDecisions); strings.Count(text, "SQLite it is") != 1 || !strings.Contains(text, "[2000-01-01, a#") || !strings.Contains(text, ", b#") {
			l.Errorf("decisions:\n%s", text)
		}
		// Forgetting one leaves what came from the other, too.
		if gone, err := l.worker.Forget(l.Context(), "a", ""); err != nil || gone != 0 {
			l.Errorf("forget a: %d, %v", gone, err)
		}
		if text := l.page(memory.KindDecisions); !strings.Contains(text, "SQLite it is: because [2000-01-01, b#") {
			l.Errorf("decisions:\n%s", text)
		}
		if gone, err := l.worker.Forget(l.Context(), "b", ""); err != nil || gone != 1 {
			l.Errorf("forget b: %d, %v", gone, err)
		}
		if text := l.page(memory.KindDecisions); strings.Contains(text, "SQLite") {
			l.Errorf("decisions:\n%s", text)
		}
		versions, err := l.books.For(l.work, "").History(memory.KindDecisions)
		if err != nil || len(versions) == 0 {
			l.Errorf("versions = %v, %v", versions, err)
		}
		for _, v := range versions {
			if text, _ := l.books.For(l.work, "").At(memory.KindDecisions, v.Number); strings.Contains(text, "SQLite") {
				l.Errorf("version %d still says it:\n%s", v.Number, text)
			}
		}
	})
}

// What was said before is not looked at again; what comes later is.
func TestWhatIsForgottenDoesNotComeBack(t *testing.T) {
	story(t, func(l *testWorker) { deciding(l); l.rules.ExtractThreshold = 1000 }, func(l *testWorker) {
		l.create("s")
		l.turn("s", strings.Repeat("unextracted ", 100))
		if _, err := l.worker.Forget(l.Context(), "s", ""); err != nil {
			l.Fatal(err)
		}
		id, err := l.host.Memory.Schedule(l.Context(), "s")
		if err != nil {
			l.Fatal(err)
		}
		if err := l.worker.Wait(l.Context(), id); err != nil {
			l.Fatal(err)
		}
		for _, record := range l.model.records {
			if strings.Contains(record, "unextracted") {
				l.Errorf("it was read again: %.200q", record)
			}
		}
		l.turn("s", strings.Repeat("newer ", 1000))
		l.await("s", event.MemoryExtracted, 1)
		if got := l.model.records[len(l.model.records)-1]; !strings.Contains(got, "newer") || strings.Contains(got, "unextracted") {
			l.Errorf("it was given %.200q", got)
		}
	})
}

// A person's edit while a job runs is kept, and so is what the job found.
func TestAPersonWhoEditsAPageWhileAJobRunsLosesNothing(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("a")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		b := l.books.For(l.work, "")
		text, was, err := b.Read(memory.KindDecisions)
		if err != nil {
			l.Fatal(err)
		}
		edited := text + "\nMy own words.\n"
		if _, err := b.Write(memory.KindDecisions, edited, was); err != nil {
			l.Fatal(err)
		}
		l.model.mu.Lock()
		l.model.extract = decided("Go it is")
		l.model.mu.Unlock()
		l.noted("b")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if text := l.page(memory.KindDecisions); !strings.Contains(text, "My own words.") || !strings.Contains(text, "Go it is") || !strings.Contains(text, "SQLite it is") {
			l.Errorf("decisions:\n%s", text)
		}
		if _, err := b.Write(memory.KindDecisions, "mine", was); !errors.Is(err, book.ErrChanged) {
			l.Errorf("a write over what was changed: %v", err)
		}
	})
}

func TestSecretsDoNotReachThePagesNorWhatIsNoted(t *testing.T) {
	story(t, func(l *testWorker) { l.model.extract = decided("use the key sk-abcdefghijklmnop1234 for it") }, func(l *testWorker) {
		l.noted("s")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		if text := l.page(memory.KindDecisions); strings.Contains(text, "sk-abc") || !strings.Contains(text, "use the key") {
			l.Errorf("decisions:\n%s", text)
		}
		if noted := string(l.extracted("s")[0].Decisions); strings.Contains(noted, "sk-abc") {
			l.Errorf("noted: %s", noted)
		}
	})
}

// A thousand idle sessions must not be in memory at once because somebody reads them.
func TestASessionThatOnlyAJobNeedsDoesNotStayInMemory(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("s")
		l.noted("watched")
		l.host.Detach("s", l.clients["s"], false)
		time.Sleep(idle - time.Second)
		if n := l.host.Resident(); n != 1 {
			l.Fatalf("%d sessions are in memory", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, done := l.host.Resident(), len(l.consolidated("s")); n != 1 || done != 1 {
			l.Errorf("%d sessions are in memory after %d consolidations, want the one that is watched", n, done)
		}
	})
}

func TestADeletedSessionHasNoJobsLeft(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("s")
		if err := l.host.Delete(l.Context(), "s"); err != nil {
			l.Fatal(err)
		}
		if jobs := l.jobs(); len(jobs) != 0 {
			l.Errorf("jobs = %s", describe(jobs))
		}
	})
}

func TestANewSessionIsToldWhatIsRemembered(t *testing.T) {
	story(t, deciding, func(l *testWorker) {
		l.noted("old")
		time.Sleep(idle + time.Second)
		synctest.Wait()
		var system string
		l.model.mu.Lock()
		l.model.says = func(req *model.Request) string { system = req.System; return "ok" }
		l.model.mu.Unlock()
		l.create("new")
		l.turn("new", "hello")
		if !strings.Contains(system, "<memory>") || !strings.Contains(system, "- SQLite it is: because (2000-01-01)\n") {
			l.Errorf("the model was told:\n%s", system)
		}
		first := system
		b := l.books.For(l.work, "")
		if _, was, err := b.Read(memory.KindDecisions); err != nil {
			l.Fatal(err)
		} else if _, err := b.Write(memory.KindDecisions, "Something else.\n", was); err != nil {
			l.Fatal(err)
		}
		l.turn("new", "again")
		if system != first {
			l.Errorf("the prompt of a session that goes on has changed:\n%s", system)
		}
		l.turn("old", "hello") // this session is not new
		if strings.Contains(system, "<memory>") {
			l.Errorf("the model was told:\n%s", system)
		}
		zero := 0
		l.rules.RecallTokens = &zero
		l.create("off")
		l.turn("off", "hello")
		if strings.Contains(system, "<memory>") {
			l.Errorf("the model was told:\n%s", system)
		}
	})
}
