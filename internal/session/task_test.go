package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

// testTasks are tasks whose status the test sets.
type testTasks struct {
	deaf bool // nobody who watches hears anything
	// asked gets the key of each task whose news somebody asks for, who waits for answers. Nobody
	// waits if it is nil.
	asked   chan string
	answers chan struct{}
	mu      sync.Mutex
	news    map[string]chan event.TaskReportedData
	seen    []string
}

func newChores() *testTasks { return &testTasks{news: make(map[string]chan event.TaskReportedData)} }

func (c *testTasks) of(key string) chan event.TaskReportedData {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news[key] == nil {
		c.news[key] = make(chan event.TaskReportedData, 8)
	}
	return c.news[key]
}

func (c *testTasks) Watch(ctx context.Context, _ event.SessionID, key, last string) (event.TaskReportedData, error) {
	if c.deaf {
		<-ctx.Done()
		return event.TaskReportedData{}, ctx.Err()
	}
	for {
		select {
		case news := <-c.of(key):
			if news.Status == last {
				continue
			}
			if news.Ended {
				c.of(key) <- news // it stays so
			}
			return news, nil
		case <-ctx.Done():
			return event.TaskReportedData{}, ctx.Err()
		}
	}
}

func (c *testTasks) News(ctx context.Context, _ event.SessionID, key string) (event.TaskReportedData, bool) {
	if c.asked != nil {
		c.asked <- key
		select {
		case <-c.answers:
		case <-ctx.Done():
			return event.TaskReportedData{}, false
		}
	}
	select {
	case news := <-c.of(key):
		if news.Ended {
			c.of(key) <- news
			return news, true
		}
		c.of(key) <- news
	default:
	}
	return event.TaskReportedData{}, false
}

func (c *testTasks) Summary(_ context.Context, _ event.SessionID, keys []string) (string, error) {
	return fmt.Sprintf("Currently running background tasks: %d", len(keys)), nil
}

func (c *testTasks) Seen(_ context.Context, _ event.SessionID, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, key)
}

// taskTool is a tool whose calls go on as tasks.
type taskTool struct {
	mu    sync.Mutex
	keys  []string
	begun chan struct{} // if not nil, a call waits until it is cancelled
}

func (j *taskTool) Spec() tool.Spec {
	return tool.Spec{Name: "job", Replay: tool.Keyed, Detaches: true}
}
func (j *taskTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (j *taskTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	j.mu.Lock()
	j.keys = append(j.keys, call.Key)
	begun := j.begun
	j.mu.Unlock()
	if begun != nil {
		close(begun)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Text: "it goes on", Task: true}, nil
}

func (j *taskTool) key(i int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.keys[i]
}

// recordingModel is a model that keeps what it was asked.
type recordingModel struct {
	offline.Model
	mu   sync.Mutex
	reqs []*model.Request
}

func (m *recordingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	m.reqs = append(m.reqs, req)
	m.mu.Unlock()
	return m.Model.Ask(ctx, req, on)
}

func (m *recordingModel) last() *model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reqs[len(m.reqs)-1]
}

// notices counts how often the model reads a text.
func notices(req *model.Request, text string) int {
	n := 0
	for _, m := range req.Messages {
		if m.Role == model.User {
			n += strings.Count(m.Text, text)
		}
	}
	return n
}

func ended(key, text string) event.TaskReportedData {
	return event.TaskReportedData{Key: key, Status: event.TaskCompleted, Ended: true, Text: text, Kind: json.RawMessage(`{"type":"shell_completed","shellId":"1"}`)}
}

// background is a session with a task that is running, at rest.
func background(t testing.TB) (*sessiontest.Fixture, *sessiontest.Viewer, *testTasks, *taskTool, *recordingModel) {
	m, c, j := &recordingModel{}, newChores(), &taskTool{}
	b := sessiontest.New(t, m, j)
	b.Options.Tasks = c
	b.Restart()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'x'"})
	v.Await(t, 0, event.SessionIdle)
	return b, v, c, j, m
}

func TestATaskWakesItsSessionOnce(t *testing.T) {
	b, v, c, j, m := background(t)
	if got := m.last().Tail; got != "Currently running background tasks: 1" {
		t.Errorf("the model is told %q of what runs", got)
	}
	n := len(v.Kinds())
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	v.Await(t, n, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 || m.last().Tail != "" {
		t.Errorf("the model reads the news %d times, and %q of what runs", got, m.last().Tail)
	}
	for range 2 {
		b.Restart()
		v = b.Resume("s", session.Resume{}, &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
		v.Await(t, 0, event.SessionIdle)
	}
	if got := notices(m.last(), "NEWS"); got != 1 {
		t.Errorf("after restarts the model reads the news %d times", got)
	}
	if !slices.Equal(c.seen, []string{j.key(0)}) {
		t.Errorf("seen: %v", c.seen)
	}
}

func TestATaskThatEndsWhileTheEngineIsDownIsToldOnce(t *testing.T) {
	b, _, c, j, m := background(t)
	b.Host.Close()
	info, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	b.Start()
	b.AwaitStored("s", info.End, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 {
		t.Errorf("the model reads the news %d times", got)
	}
}

// TestAStepBeginsWithWhatHappenedBeforeIt: whoever watches a task may be late.
func TestAStepBeginsWithWhatHappenedBeforeIt(t *testing.T) {
	b, _, c, j, m := background(t)
	b.Host.Close()
	c.deaf = true
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	b.Start()
	v := b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	v.Await(t, 0, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 || m.last().Tail != "" {
		t.Errorf("the model reads the news %d times, and %q of what runs", got, m.last().Tail)
	}
}

// createElsewhere creates the session "s" in another workspace.
func createElsewhere(b *sessiontest.Fixture) *sessiontest.Viewer {
	b.T.Helper()
	v := sessiontest.NewViewer()
	at := event.SessionConfiguredData{Workspace: &event.Workspace{Name: "box", Address: "unix:box", Identity: "i"}}
	view, err := b.Host.Create(b.T.Context(), "s", session.Spec{Config: at}, &session.Client{Viewer: v})
	if err == nil {
		err = view.CatchUp(b.T.Context())
	}
	if err != nil {
		b.T.Fatal(err)
	}
	return v
}

// TestAStepLooksElsewhereForWhatHappenedBeforeIt: the end of a task in another workspace is
// looked for beside the session, once.
func TestAStepLooksElsewhereForWhatHappenedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, j := &recordingModel{}, newChores(), &taskTool{}
		b := sessiontest.New(t, m, j)
		b.Options.Tasks = c
		b.Restart()
		v := createElsewhere(b)
		b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'x'"})
		v.Await(t, 0, event.SessionIdle)
		b.Host.Close()
		c.deaf, c.asked, c.answers = true, make(chan string), make(chan struct{})
		b.Start()
		v = b.Resume("s", session.Resume{}, &session.Client{})
		say := func(text string) {
			b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: " + text})
		}
		say("NEVER")
		<-c.asked
		synctest.Wait()
		if err := b.Host.Abort(t.Context(), "s", "enough"); err != nil { // nobody waits for the workspace
			t.Fatal(err)
		}
		v.Await(t, 0, event.SessionIdle)
		if len(m.reqs) != 2 {
			t.Errorf("the model was asked %d times before it was looked for", len(m.reqs))
		}
		c.of(j.key(0)) <- ended(j.key(0), "NEWS")
		n := len(v.Kinds())
		say("HI")
		if key := <-c.asked; key != j.key(0) {
			t.Errorf("asked for %s", key)
		}
		c.answers <- struct{}{}
		v.Await(t, n, event.SessionIdle)
		if got := notices(m.last(), "NEWS"); got != 1 || m.last().Tail != "" {
			t.Errorf("the model reads the news %d times, and %q of what runs", got, m.last().Tail)
		}
		b.Host.Close()
	})
}

// TestATaskElsewhereIsLookedForOnce: whoever watches it tells its end later.
func TestATaskElsewhereIsLookedForOnce(t *testing.T) {
	m, c, j := &recordingModel{}, newChores(), &taskTool{}
	c.asked, c.answers = make(chan string, 8), make(chan struct{}, 8)
	b := sessiontest.New(t, m, j)
	b.Options.Tasks = c
	b.Restart()
	v := createElsewhere(b)
	for range 8 {
		c.answers <- struct{}{}
	}
	for i, prompt := range []string{"Use job with value 'x'", "Reply with exactly: HI", "Reply with exactly: HO"} {
		n := len(v.Kinds())
		b.Send("s", event.InputAcceptedData{Prompt: prompt})
		v.Await(t, n, event.SessionIdle)
		if len(c.asked) != 1 {
			t.Errorf("turn %d: the task was looked for %d times", i, len(c.asked))
		}
	}
	n := len(v.Kinds())
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	v.Await(t, n, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 {
		t.Errorf("the model reads the news %d times", got)
	}
}

func TestManyTasksAreOneWake(t *testing.T) {
	m, c, j := &recordingModel{}, newChores(), &taskTool{}
	b := sessiontest.New(t, m, j)
	b.Options.Tasks = c
	b.Restart()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Call job with value 'x', job with value 'y' and job with value 'z'"})
	v.Await(t, 0, event.SessionIdle)
	b.Host.Close()
	for i := range 3 {
		c.of(j.key(i)) <- ended(j.key(i), "NEWS")
	}
	// What was recorded before the engine stopped is told in one turn.
	info, err := b.Store.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var news []event.Event
	for i := range 3 {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, ended(j.key(i), "NEWS"))
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = info.End.Seq + event.Seq(i) + 1
		news = append(news, e)
	}
	end, err := b.Store.Append(t.Context(), "s", eventlog.Batch{After: info.End, Events: news})
	if err != nil {
		t.Fatal(err)
	}
	before := len(m.reqs)
	b.Start()
	b.AwaitStored("s", end, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 3 || len(m.reqs) != before+1 {
		t.Errorf("the model reads %d news in %d requests, want 3 in one", got, len(m.reqs)-before)
	}
}

func TestAStoppedCallLeavesATask(t *testing.T) {
	m, c, j := &recordingModel{}, newChores(), &taskTool{begun: make(chan struct{})}
	b := sessiontest.New(t, m, j)
	b.Options.Tasks = c
	b.Restart()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Use job with value 'x'"})
	<-j.begun
	if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
		t.Fatal(err)
	}
	v.Await(t, 0, event.SessionIdle)
	// Its end wakes nobody: the user has stopped the work.
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	b.AwaitStored("s", eventlog.End{}, event.TaskReported)
	if len(m.reqs) != 1 {
		t.Errorf("the model was asked %d times, want once", len(m.reqs))
	}
	k := len(v.Kinds())
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	v.Await(t, k, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 {
		t.Errorf("the model reads the news %d times", got)
	}
}

func TestATaskThatStallsIsToldAndStaysATask(t *testing.T) {
	_, v, c, j, m := background(t)
	n := len(v.Kinds())
	c.of(j.key(0)) <- event.TaskReportedData{Key: j.key(0), Status: event.TaskStalled, Text: "PASSWORD?"}
	v.Await(t, n, event.SessionIdle)
	if got := notices(m.last(), "PASSWORD?"); got != 1 || m.last().Tail == "" {
		t.Errorf("the model reads the question %d times, and %q of what runs", got, m.last().Tail)
	}
	n = len(v.Kinds())
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	v.Await(t, n, event.SessionIdle)
	if got := notices(m.last(), "NEWS"); got != 1 || notices(m.last(), "PASSWORD?") != 1 {
		t.Errorf("the model reads the news %d times", got)
	}
}

func TestATaskIsAwaitedUntilItsEndIsTold(t *testing.T) {
	b, v, c, j, _ := background(t)
	awaits := func(key string) bool {
		t.Helper()
		is, err := b.Host.Tasks.Awaits(t.Context(), "s", key)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !awaits(j.key(0)) || awaits("another") {
		t.Error("a running task is not awaited, or one that never was is")
	}
	n := len(v.Kinds())
	c.of(j.key(0)) <- ended(j.key(0), "NEWS")
	v.Await(t, n, event.SessionIdle)
	if awaits(j.key(0)) {
		t.Error("a task is awaited after its end was told")
	}
	if _, err := b.Host.Tasks.Awaits(t.Context(), "unknown", "x"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of an unknown session: %v", err)
	}
}

func TestNothingThatWasBegunIsNotNews(t *testing.T) {
	b, v, c, j, m := background(t)
	n, asked := len(v.Kinds()), len(m.reqs)
	c.of(j.key(0)) <- event.TaskReportedData{Key: j.key(0), Status: event.TaskNone, Ended: true}
	v.Await(t, n, event.TasksChanged)
	n = len(v.Kinds())
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	v.Await(t, n, event.SessionIdle)
	if len(m.reqs) != asked+1 || m.last().Tail != "" {
		t.Errorf("%d requests, and the model is told %q", len(m.reqs)-asked, m.last().Tail)
	}
}
