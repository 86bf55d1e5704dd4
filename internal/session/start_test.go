package session_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

// A watchedStore counts how often sessions are looked up, but for the list of
// those that an engine has to attend to.
type watchedStore struct {
	eventlog.Store
	pause time.Duration // time that each reading takes

	events atomic.Int64 // number of events that were read

	mu        sync.Mutex
	reads     map[event.SessionID]int
	now, most int // readings at the same time
}

func watchStore(b *sessiontest.Fixture) *watchedStore {
	b.Host.Close()
	s := &watchedStore{Store: b.Store, reads: make(map[event.SessionID]int)}
	b.Store = s
	return s
}

func (s *watchedStore) count(id event.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[id]++
}

func (s *watchedStore) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, reads := range s.reads {
		n += reads
	}
	return n
}

func (s *watchedStore) begin(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += by
	s.most = max(s.most, s.now)
}

func (s *watchedStore) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	s.count(id)
	return func(yield func(event.Event, error) bool) {
		s.begin(1)
		defer s.begin(-1)
		time.Sleep(s.pause)
		s.counted(s.Store.Read(ctx, id, after))(yield)
	}
}

func (s *watchedStore) ReadFrom(ctx context.Context, id event.SessionID, after eventlog.End) iter.Seq2[event.Event, error] {
	s.count(id)
	return s.counted(s.Store.ReadFrom(ctx, id, after))
}

func (s *watchedStore) counted(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			s.events.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *watchedStore) Session(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	s.count(id)
	return s.Store.Session(ctx, id)
}

func (s *watchedStore) Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error) {
	s.count(id)
	return s.Store.Secret(ctx, id, name)
}

// outdate makes the index say what an older version would have written.
func (s *watchedStore) outdate(t *testing.T) {
	t.Helper()
	for is, err := range s.Sessions(t.Context(), eventlog.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		is.Info.Waiting, is.Info.Watch = false, nil
		if err := s.Reindex(t.Context(), is.ID, is.End, is.Info); err != nil {
			t.Fatal(err)
		}
	}
}

// asking makes sessions that wait for a permission, and names what they ask.
func asking(b *sessiontest.Fixture, n int) map[event.SessionID]string {
	b.T.Helper()
	questions := make(map[event.SessionID]string)
	for i := range n {
		id := event.SessionID(fmt.Sprintf("s%d", i))
		v := b.Create(id, &session.Client{Permission: true})
		b.Send(id, event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
		asked, _ := v.Await(b.T, 0, event.PermissionAsked)
		d, err := event.As[event.PermissionAskedData](asked)
		if err != nil {
			b.T.Fatal(err)
		}
		questions[id] = d.RequestID
	}
	return questions
}

func approve(b *sessiontest.Fixture, id event.SessionID, request string) {
	b.T.Helper()
	won, err := b.Host.Answer(b.T.Context(), id, turn.Answer{RequestID: request, Permission: &turn.Decision{Kind: turn.ApproveOnce}})
	if err != nil || !won {
		b.T.Fatalf("answer of %s: %v, %v", id, won, err)
	}
}

func TestASessionThatOnlyWaitsIsNotReadAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingTool{name: "act", ask: true}
		b := sessiontest.New(t, offline.Model{}, c)
		questions := asking(b, 20)
		s := watchStore(b)
		b.Start()
		synctest.Wait()
		if n := s.total(); n != 0 {
			t.Errorf("the store was asked %d times about sessions that only wait", n)
		}
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory", n)
		}
		for id, request := range questions {
			approve(b, id, request)
		}
		synctest.Wait()
		for id := range questions {
			b.Verify(id)
		}
		if c.runs != len(questions) {
			t.Errorf("%d calls were made after %d answers", c.runs, len(questions))
		}
	})
}

func TestASuspendedSessionIsNotReadAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, &silentModel{})
		b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "x"})
		synctest.Wait()
		if err := b.Host.Suspend(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		s := watchStore(b)
		b.Start()
		synctest.Wait()
		if n := s.total(); n != 0 {
			t.Errorf("the store was asked %d times about a session that is suspended", n)
		}
	})
}

// silentModel is a model that does not answer.
type silentModel struct {
	mu    sync.Mutex
	asked int
}

func (m *silentModel) Ask(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSessionsAreWokenAFewAtATimeAndNoneHasToWaitForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 30
		m := &silentModel{}
		b := sessiontest.New(t, m)
		for i := range sessions {
			id := event.SessionID(fmt.Sprintf("s%d", i))
			b.Create(id, &session.Client{})
			b.Send(id, event.InputAcceptedData{Prompt: "x"})
		}
		synctest.Wait()
		s := watchStore(b)
		s.pause = time.Second
		m.asked = 0
		b.Start()
		time.Sleep(sessions * time.Second)
		synctest.Wait()
		if m.asked != sessions {
			t.Errorf("the model was asked by %d sessions of %d", m.asked, sessions)
		}
		if s.most > 2 {
			t.Errorf("%d logs were read at the same time", s.most)
		}
	})
}

func TestSessionsOfAnOlderIndexAreReadAFewAtATimeAndLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingTool{name: "act", ask: true}
		b := sessiontest.New(t, offline.Model{}, c)
		questions := asking(b, 20)
		s := watchStore(b)
		s.outdate(t)
		s.pause = time.Second
		b.Start()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(s.reads) != len(questions) || s.most > 2 {
			t.Errorf("%d sessions of %d were read, %d at the same time", len(s.reads), len(questions), s.most)
		}
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions that only wait stay in memory", n)
		}
		before := s.total()
		b.Restart()
		synctest.Wait()
		if n := s.total() - before; n != 0 {
			t.Errorf("at the next start the store is asked %d times about sessions that only wait", n)
		}
		approve(b, "s3", questions["s3"])
		synctest.Wait()
		b.Verify("s3")
	})
}

func TestATaskIsWatchedWithoutReadingTheLog(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old=%v", old), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _, c, j, m := background(t)
				s := watchStore(b)
				if old {
					s.outdate(t)
				}
				b.Start()
				synctest.Wait()
				if n := s.total(); (n > 0) != old {
					t.Errorf("the store was asked %d times about a session that has only a task", n)
				}
				c.of(j.key(0)) <- ended(j.key(0), "NEWS")
				time.Sleep(time.Second)
				synctest.Wait()
				if got := notices(m.last(), "NEWS"); got != 1 {
					t.Errorf("the model reads the news %d times", got)
				}
			})
		})
	}
}

func TestTheStatusThatWasReportedLastIsKnownWithoutTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, c, j, m := background(t)
		waits := event.TaskReportedData{Key: j.key(0), Status: "waiting", Text: "IT WAITS"}
		c.of(j.key(0)) <- waits
		time.Sleep(time.Second)
		synctest.Wait()
		s := watchStore(b)
		b.Start()
		c.of(j.key(0)) <- waits // it is no news
		time.Sleep(time.Second)
		if n := s.total(); n != 0 {
			t.Errorf("the store was asked %d times because of what was told before", n)
		}
		c.of(j.key(0)) <- ended(j.key(0), "NEWS")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := notices(m.last(), "IT WAITS"); got != 1 {
			t.Errorf("the model reads %d times that the task waits", got)
		}
		if got := notices(m.last(), "NEWS"); got != 1 {
			t.Errorf("the model reads the news %d times", got)
		}
	})
}

func TestTasksOfManySessionsThatEndedMeanwhileAreToldAFewSessionsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 10
		c, j := newChores(), &taskTool{}
		b := sessiontest.New(t, offline.Model{}, j)
		b.Options.Tasks = c
		b.Restart()
		for i := range sessions {
			id := event.SessionID(fmt.Sprintf("s%d", i))
			b.Create(id, &session.Client{})
			b.Send(id, event.InputAcceptedData{Prompt: "Use job with value 'x'"})
			synctest.Wait()
		}
		s := watchStore(b)
		s.pause = time.Second
		for i := range sessions {
			c.of(j.key(i)) <- ended(j.key(i), "NEWS")
		}
		b.Start()
		time.Sleep(2 * sessions * time.Second)
		synctest.Wait()
		if len(s.reads) != sessions || s.most > 2 {
			t.Errorf("%d sessions of %d were read, %d at the same time", len(s.reads), sessions, s.most)
		}
		for i := range sessions {
			b.Verify(event.SessionID(fmt.Sprintf("s%d", i)))
		}
	})
}

func TestASessionThatWaitsUnattachedLeavesMemoryAfterItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingTool{name: "act", ask: true}
		b := sessiontest.New(t, offline.Model{}, c)
		b.Options.Rest = time.Minute
		b.Restart()
		client := &session.Client{Permission: true}
		b.Create("s", client)
		b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
		synctest.Wait()
		b.Host.Detach("s", client, false)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n := b.Host.Resident(); n != 1 {
			t.Fatalf("%d sessions are in memory before the rest is over, want 1", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%d sessions are in memory after the rest", n)
		}
	})
}

func TestAskingWhetherASessionAwaitsACallLeavesNothingInMemory(t *testing.T) {
	b, _, _, j, _ := background(t)
	b.Restart()
	awaits, err := b.Host.Tasks.Awaits(t.Context(), "s", j.key(0))
	if err != nil || !awaits {
		t.Errorf("awaits = %v, %v; want true", awaits, err)
	}
	if n := b.Host.Resident(); n != 0 {
		t.Errorf("%d sessions are in memory", n)
	}
}

// A client that was there before is shown what it has missed; what it has seen is
// not read again.
func TestAViewReadsOnlyWhatItHasMissed(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	for range 100 {
		if _, err := b.Host.Log.Note(t.Context(), "s", event.SessionInfoData{Message: "x"}, false); err != nil {
			t.Fatal(err)
		}
	}
	v.Await(t, 0, event.SessionInfo)
	s := watchStore(b)
	b.Start()
	st, err := b.Host.Status(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	s.events.Store(0)
	late := sessiontest.NewViewer()
	view, err := b.Host.Attach(t.Context(), "s", &session.Client{Viewer: late}, st.End.Seq-3)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if shown, read := len(late.Kinds()), s.events.Load(); shown != 3 || read > 3 {
		t.Errorf("%d events were shown, want 3, and %d were read", shown, read)
	}
}

// Questions that are asked about many sessions leave none of them in memory.
func TestAQuestionAboutASessionDoesNotKeepItInMemory(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	for name, ask := range map[string]func() error{
		"task":  func() error { _, err := b.Host.Tasks.Awaits(t.Context(), "s", "key"); return err },
		"agent": func() error { b.Host.Agents.WorksFor(t.Context(), "s", "other"); return nil },
	} {
		b.Restart()
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if n := b.Host.Resident(); n != 0 {
			t.Errorf("%s: %d sessions are in memory", name, n)
		}
	}
}
