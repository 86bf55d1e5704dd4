package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A shop is a runner on a memory store, whose work the test decides about.
type shop struct {
	*testing.T
	*jobs.Runner
	store *eventlog.Memory

	mu      sync.Mutex
	work    func(ctx context.Context, j eventlog.Job) error
	began   []string // ids of the jobs that were worked on, in order
	running int
	most    int
	gaveUp  []string
}

// Work removes the row if it succeeds, as work does.
func (s *shop) Work(ctx context.Context, j eventlog.Job) error {
	s.mu.Lock()
	s.began = append(s.began, j.ID)
	s.running++
	s.most = max(s.most, s.running)
	work := s.work
	s.mu.Unlock()
	defer func() { s.mu.Lock(); defer s.mu.Unlock(); s.running-- }()
	err := work(ctx, j)
	if err == nil {
		err = s.store.ChangeJobs(ctx, eventlog.JobChange{Verb: eventlog.DropJob, Job: j})
	}
	return err
}

func (s *shop) GiveUp(_ context.Context, j eventlog.Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaveUp = append(s.gaveUp, j.ID+": "+j.Error)
	return nil
}

// inShop runs a test with fake time.
func inShop(t *testing.T, opts jobs.Options, test func(*shop)) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{T: t, store: eventlog.NewMemory(), work: func(context.Context, eventlog.Job) error { return nil }}
		opts.Again = func(attempts int, now time.Time, _ error) time.Time {
			if attempts == 3 {
				return time.Time{}
			}
			return now.Add(time.Duration(attempts) * time.Minute)
		}
		s.Runner = jobs.New(s.store, s, opts)
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.SessionInfoData{Message: "x"})
		if err == nil {
			_, err = s.store.Append(t.Context(), "s", eventlog.Batch{Events: []event.Event{e}})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		defer s.Stop()
		test(s)
	})
}

// add writes a row down.
func (s *shop) add(id string, due time.Time) {
	s.Helper()
	err := s.store.ChangeJobs(s.Context(), eventlog.JobChange{Job: eventlog.Job{ID: id, Kind: "k" + id, Session: "s", Due: due}})
	if err != nil {
		s.Fatal(err)
	}
	s.Wake()
}

func (s *shop) order() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.began, " ")
}

func TestJobsAreDoneWhenTheyAreDueTheLongestDueFirst(t *testing.T) {
	inShop(t, jobs.Options{Parallel: 1}, func(s *shop) {
		now := time.Now()
		s.Stop()
		s.add("late", now.Add(time.Hour))
		s.add("second", now)
		s.add("first", now.Add(-time.Second))
		s.Start()
		synctest.Wait()
		if got := s.order(); got != "first second" {
			s.Errorf("worked on %q", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := s.order(); got != "first second late" || s.Stats().Done != 3 {
			s.Errorf("worked on %q, stats %+v", got, s.Stats())
		}
	})
}

func TestARowThatIsDueEarlierThanTheOneWaitedForIsNotMissed(t *testing.T) {
	inShop(t, jobs.Options{}, func(s *shop) {
		now := time.Now()
		s.add("late", now.Add(time.Hour))
		synctest.Wait()
		s.add("early", now.Add(time.Minute))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.order(); got != "early" {
			s.Errorf("worked on %q", got)
		}
	})
}

func TestOnlySoManyAreWorkedOnAtATime(t *testing.T) {
	inShop(t, jobs.Options{Parallel: 3}, func(s *shop) {
		s.work = func(context.Context, eventlog.Job) error { time.Sleep(time.Second); return nil }
		for i := range 10 {
			s.add(fmt.Sprint(i), time.Now())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.most != 3 || s.Stats().Done != 10 {
			s.Errorf("%d at a time, %d done", s.most, s.Stats().Done)
		}
	})
}

func TestWhatFailsIsTriedAgainLaterAndSetAsideInTheEnd(t *testing.T) {
	inShop(t, jobs.Options{}, func(s *shop) {
		s.work = func(_ context.Context, j eventlog.Job) error {
			if j.ID == "bad" {
				return errors.New("it cannot be done")
			}
			return nil
		}
		s.add("bad", time.Now())
		s.add("good", time.Now())
		if err := s.Wait(s.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "has failed, and is tried again at 2000-01-01T00:01:00.000Z: it cannot be done") {
			s.Errorf("wait: %v", err)
		}
		for _, tt := range []struct {
			after    time.Duration
			attempts int
		}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {119 * time.Second, 2}, {time.Second, 3}, {time.Hour, 3}} {
			time.Sleep(tt.after)
			synctest.Wait()
			j, err := s.store.Job(s.Context(), "bad")
			if err != nil || j.Attempts != tt.attempts || j.Error != "it cannot be done" || j.Aside() != (tt.attempts == 3) {
				s.Errorf("job = %+v, %v; want %d attempts", j, err, tt.attempts)
			}
		}
		if got := s.Stats(); got != (jobs.Stats{Done: 1, Failed: 3, Aside: 1}) {
			s.Errorf("stats = %+v", got)
		}
		if strings.Join(s.gaveUp, ";") != "bad: it cannot be done" {
			s.Errorf("gave up %q", s.gaveUp)
		}
		if err := s.Wait(s.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "set aside after 3 attempts: it cannot be done") {
			s.Errorf("wait: %v", err)
		}
	})
}

func TestWhatCannotBeDoneYetIsNoAttempt(t *testing.T) {
	inShop(t, jobs.Options{}, func(s *shop) {
		at := time.Now().Add(time.Hour)
		s.work = func(context.Context, eventlog.Job) error {
			if time.Now().Before(at) {
				return jobs.Later{At: at}
			}
			return jobs.ErrMoot
		}
		s.add("1", time.Now())
		synctest.Wait()
		if j, err := s.store.Job(s.Context(), "1"); err != nil || !j.Due.Equal(at) || j.Attempts != 0 || j.Holder != "" {
			s.Errorf("job = %+v, %v", j, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, err := s.store.Job(s.Context(), "1"); !errors.Is(err, eventlog.ErrNoJob) {
			s.Errorf("a job that there is nothing to do for is still there: %v", err)
		}
		if got := s.order(); got != "1 1" {
			s.Errorf("worked on %q", got)
		}
	})
}

func TestWorkEndsBeforeItsLeaseDoes(t *testing.T) {
	inShop(t, jobs.Options{Lease: time.Minute}, func(s *shop) {
		s.work = func(ctx context.Context, _ eventlog.Job) error { <-ctx.Done(); return context.Cause(ctx) }
		s.add("1", time.Now())
		time.Sleep(time.Minute)
		synctest.Wait()
		if j, err := s.store.Job(s.Context(), "1"); err != nil || j.Attempts != 1 || j.Error != "it took too long" {
			s.Errorf("job = %+v, %v", j, err)
		}
	})
}

func TestToScheduleAndToWaitAreTwoCallsAndATurnThatWaitsIsCounted(t *testing.T) {
	type turn struct{}
	inShop(t, jobs.Options{Turn: func(ctx context.Context) bool { return ctx.Value(turn{}) != nil }}, func(s *shop) {
		s.work = func(context.Context, eventlog.Job) error { time.Sleep(time.Minute); return nil }
		before := time.Now()
		s.add("1", before)
		if took := time.Since(before); took != 0 {
			s.Errorf("to write it down took %v", took)
		}
		if err := s.Wait(s.Context(), "1"); err != nil || time.Since(before) != time.Minute {
			s.Errorf("waited %v, %v", time.Since(before), err)
		}
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		s.add("2", time.Now())
		if err := s.Wait(ctx, "2"); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("wait: %v", err)
		}
		if n := s.Stats().Turns; n != 0 {
			s.Errorf("%d turns have waited", n)
		}
		if err := s.Wait(context.WithValue(s.Context(), turn{}, true), "none"); err != nil {
			s.Error(err)
		}
		if n := s.Stats().Turns; n != 1 {
			s.Errorf("%d turns have waited, want 1", n)
		}
	})
}

// A store that cannot say what is due for a while does not end the work.
func TestAStoreThatFailsForAWhileDoesNotEndTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &moody{Memory: eventlog.NewMemory(), until: time.Now().Add(time.Minute)}
		s := &shop{T: t, store: store.Memory, work: func(context.Context, eventlog.Job) error { return nil }}
		s.Runner = jobs.New(store, s, jobs.Options{})
		s.Start()
		defer s.Stop()
		time.Sleep(30 * time.Second)
		e, _ := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.SessionInfoData{Message: "x"})
		if _, err := s.store.Append(t.Context(), "s", eventlog.Batch{Events: []event.Event{e}}); err != nil {
			t.Fatal(err)
		}
		s.add("1", time.Now())
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.order(); got != "1" {
			t.Errorf("worked on %q", got)
		}
	})
}

type moody struct {
	*eventlog.Memory
	until time.Time
}

func (m *moody) TakeJob(ctx context.Context, holder string, now, until time.Time) (*eventlog.Job, time.Time, error) {
	if now.Before(m.until) {
		return nil, time.Time{}, errors.New("not now")
	}
	return m.Memory.TakeJob(ctx, holder, now, until)
}

// A runner that is not started does what is due for a short time. A job that does not end is
// put off, so that the next short engine does not begin it again, and is counted.
func TestWhatFitsIntoAMomentIsDoneAtTheEnd(t *testing.T) {
	inShop(t, jobs.Options{}, func(s *shop) {
		s.Stop()
		now := time.Now()
		s.add("quick", now.Add(-2*time.Second))
		s.add("endless", now.Add(-time.Second))
		s.add("later", now.Add(time.Hour))
		s.mu.Lock()
		s.work = func(ctx context.Context, j eventlog.Job) error {
			if j.ID == "endless" {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		s.mu.Unlock()
		if left := s.Drain(5 * time.Second); left != 1 {
			s.Errorf("%d jobs are left, want the endless one", left)
		}
		if got := s.order(); got != "quick endless" || time.Since(now) != 5*time.Second {
			s.Errorf("worked on %q in %s", got, time.Since(now))
		}
		j, err := s.store.Job(s.Context(), "endless")
		if err != nil || j.Attempts != 0 || !j.Due.After(time.Now()) || !strings.Contains(j.Error, "abide serve") {
			s.Errorf("the job that was cut is %+v, %v", j, err)
		}
		if left := s.Drain(5 * time.Second); left != 1 || s.order() != "quick endless" {
			s.Errorf("it is begun again: %d left, %q", left, s.order())
		}
		s.Start()
		if left := s.Drain(time.Second); left != 0 {
			s.Errorf("a runner that was started drains: %d left", left)
		}
	})
}
