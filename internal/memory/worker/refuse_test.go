package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/model"
)

// TestAnAnswerOfNoUseIsToldAndTriedAgain: a model whose answer cannot be used is told what was
// wrong with it, and tries again.
func TestAnAnswerOfNoUseIsToldAndTriedAgain(t *testing.T) {
	wrong := []*model.Reply{
		{Text: "I have noted everything."},
		{Calls: []model.Call{{ID: "c", Name: memory.WriteExtracted, Arguments: json.RawMessage(`{"decisions":[]}`)}}},
	}
	story(t, func(l *testWorker) {
		n := 0
		l.model.extract = func(ctx context.Context, req *model.Request) (*model.Reply, error) {
			if n++; n <= len(wrong) {
				return wrong[n-1], nil
			}
			return decided("at last")(ctx, req)
		}
	}, func(l *testWorker) {
		l.create("s")
		l.turn("s", "hello")
		l.await("s", event.MemoryExtracted, 1)
		if d := l.extracted("s")[0]; d.Found != 1 || d.Usage.Requests != 3 {
			l.Errorf("extracted = %+v", d)
		}
		if got := l.model.records; !strings.Contains(got[1], "write_extracted was not called") || !strings.Contains(got[2], "are all required") {
			l.Errorf("it was told %q", got)
		}
		if s := l.worker.Stats(); s.Failed != 0 {
			l.Errorf("stats = %+v", s)
		}
	})
}

func TestWhateverTheModelDoesTheSessionIsUsableAndNothingIsLost(t *testing.T) {
	endless := strings.Repeat("x", 100_000)
	for name, extract := range map[string]func(context.Context, *model.Request) (*model.Reply, error){
		"says nothing":  func(context.Context, *model.Request) (*model.Reply, error) { return &model.Reply{}, nil },
		"says too much": decided(endless),
		"fails": func(context.Context, *model.Request) (*model.Reply, error) {
			return nil, &model.Error{Kind: model.KindAuth, Message: "no key"}
		},
		"never returns": func(ctx context.Context, _ *model.Request) (*model.Reply, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(l *testWorker) { l.model.extract = extract }, func(l *testWorker) {
				l.create("s")
				l.turn("s", "alpha")
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				l.turn("s", "beta") // it goes on
				found := l.extracted("s")
				if len(found) != 1 || !found[0].Quarantined || found[0].Error == "" {
					l.Fatalf("extracted = %+v, want the part set aside", found)
				}
				if s := l.worker.Stats(); s.Failed < 5 || s.Aside != 1 || s.Turns != 0 {
					l.Errorf("stats = %+v", s)
				}
				l.model.mu.Lock()
				l.model.extract = nil
				l.model.mu.Unlock()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				l.contiguous("s", 2)
			})
		})
	}
}

// An outage is no reason to give anything up.
func TestAnOutageIsWaitedFor(t *testing.T) {
	story(t, func(l *testWorker) {
		l.model.extract = func(context.Context, *model.Request) (*model.Reply, error) {
			return nil, &model.Error{Kind: model.KindOverloaded, Status: 503, Message: "come back later"}
		}
	}, func(l *testWorker) {
		l.create("s")
		l.turn("s", "alpha")
		time.Sleep(72 * time.Hour)
		synctest.Wait()
		if n := len(l.extracted("s")); n != 0 {
			l.Errorf("%d parts were given up", n)
		}
		if n := l.worker.Stats().Failed; n < 20 || n > 90 {
			l.Errorf("%d attempts in three days, want about one an hour", n)
		}
		l.model.mu.Lock()
		l.model.extract = nil
		l.model.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		l.contiguous("s", 1)
	})
}

func TestAnAttemptHasATimeOutOfItsOwn(t *testing.T) {
	story(t, func(l *testWorker) {
		l.rules.TimeoutMs = 30_000
		l.model.extract = func(ctx context.Context, _ *model.Request) (*model.Reply, error) { <-ctx.Done(); return nil, ctx.Err() }
	}, func(l *testWorker) {
		l.create("s")
		l.turn("s", "alpha")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if jobs := l.jobs(); len(jobs) != 1 || jobs[0].Attempts != 1 || jobs[0].Error != "the model has not answered in time" {
			l.Errorf("jobs = %+v", jobs)
		}
	})
}

func TestAModelWhoseWindowIsTooSmallIsSaid(t *testing.T) {
	story(t, func(l *testWorker) { l.window = 100 }, func(l *testWorker) {
		l.rules.ExtractThreshold = 0
		l.create("s")
		l.turn("s", "alpha")
		id, err := l.host.Memory.Schedule(l.Context(), "s")
		if err != nil {
			l.Fatal(err)
		}
		synctest.Wait()
		if j, err := l.store.Job(l.Context(), id); err != nil || !strings.Contains(j.Error, "name another in memory.model") {
			l.Errorf("job = %+v, %v", j, err)
		}
		if n := l.model.extractions(); n != 0 {
			l.Errorf("it was asked %d times", n)
		}
	})
}
