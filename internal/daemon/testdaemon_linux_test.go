package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/scripted"
)

// patience bounds the time that a test waits.
const patience = time.Minute

// A testDaemon is a daemon whose sessions run real commands in a folder that the test
// can see.
type testDaemon struct {
	t      *testing.T
	config daemon.Config
	work   string
	node   *daemon.Node
}

func newTestDaemon(t *testing.T, change ...func(*daemon.Config)) *testDaemon {
	t.Helper()
	s := &testDaemon{t: t, work: t.TempDir()}
	s.config = daemon.Config{Dir: t.TempDir(), Version: "test", Defaults: api.Defaults{Cwd: s.work, Approve: approval.All}}
	for _, f := range change {
		f(&s.config)
	}
	s.open()
	t.Cleanup(s.close)
	return s
}

func (s *testDaemon) open() {
	s.t.Helper()
	n, err := daemon.Open(context.Background(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.node = n
}

// stop closes the daemon. Its commands keep running.
func (s *testDaemon) stop() {
	s.t.Helper()
	if err := s.node.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// close stops the daemon and its commands.
func (s *testDaemon) close() {
	p := connect(s.t, s.node)
	var r api.TasksResult
	p.must(api.Tasks, api.TasksParams{All: true}, &r)
	for _, task := range r.Tasks {
		p.must(api.TaskStop, api.TaskParams{SessionID: task.SessionID, TaskID: task.TaskID}, nil)
	}
	p.Close()
	s.stop()
}

// A gate is a named pipe at which commands wait.
type gate struct {
	t *testing.T
	f *os.File
}

// gate makes a gate that commands find under a name in their folder.
func (s *testDaemon) gate(name string) gate {
	s.t.Helper()
	path := filepath.Join(s.work, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // opening it never blocks
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return gate{s.t, f}
}

// open lets n commands pass the gate.
func (g gate) open(n int) {
	g.t.Helper()
	if _, err := g.f.WriteString(strings.Repeat("\n", n)); err != nil {
		g.t.Fatal(err)
	}
}

// await waits until commands have written n lines to the gate.
func (g gate) await(n int) {
	g.t.Helper()
	g.f.SetReadDeadline(time.Now().Add(patience))
	for b := make([]byte, 1); n > 0; {
		if _, err := g.f.Read(b); err != nil {
			g.t.Fatal(err)
		}
		n -= bytes.Count(b, []byte("\n"))
	}
}

// lines counts the lines of a file that commands write.
func (s *testDaemon) lines(name string) int {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.work, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// A rule is a rule of the scripted model.
type rule map[string]any

// noted is the reply to every notification of the model.
var noted = rule{"when": rule{"noticeContains": "<task-notification>"}, "reply": rule{"text": "Noted."}}

// says makes a rule that answers with a text.
func says(user, text string) rule {
	return rule{"when": rule{"user": user}, "reply": rule{"text": text}}
}

// does makes rules that make calls, one after the other, and then answer.
func does(user, text string, calls ...[]rule) (rules []rule) {
	results := 0
	for _, list := range calls {
		rules = append(rules, rule{"when": rule{"user": user, "results": results}, "reply": rule{"calls": list}})
		results += len(list)
	}
	return append(rules, says(user, text))
}

// call is a call of a tool.
func call(tool string, arguments rule) rule { return rule{"tool": tool, "arguments": arguments} }

// one is a step with one call.
func one(tool string, arguments rule) []rule { return []rule{call(tool, arguments)} }

// A recordingModel writes down what a model is told, and may hold its answers back.
type recordingModel struct {
	model.Model
	mu      sync.Mutex
	heard   []*model.Request
	held    map[int]chan struct{}
	changed chan struct{}
}

func (h *recordingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	h.mu.Lock()
	h.heard = append(h.heard, req)
	held := h.held[len(h.heard)]
	close(h.changed)
	h.changed = make(chan struct{})
	h.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Model.Ask(ctx, req, on)
}

// hold holds back the answer to the nth request, until release.
func (h *recordingModel) hold(n int) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{})
	h.held[n] = c
	return sync.OnceFunc(func() { close(c) })
}

func (h *recordingModel) requests() []*model.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// request waits for the nth request.
func (h *recordingModel) request(t *testing.T, n int) *model.Request {
	t.Helper()
	timeout := time.After(patience)
	for {
		h.mu.Lock()
		heard, changed := h.heard, h.changed
		h.mu.Unlock()
		if len(heard) >= n {
			return heard[n-1]
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("there are %d requests, want %d", len(heard), n)
		}
	}
}

// requestsAbout waits for the first request that tells of a task.
func (h *recordingModel) requestsAbout(t *testing.T, task string) *model.Request {
	t.Helper()
	for n := 1; ; n++ {
		if req := h.request(t, n); notices(req, task) > 0 {
			return req
		}
	}
}

// An testSession is a session with a client and a model.
type testSession struct {
	*peer
	stage *testDaemon
	id    event.SessionID
	model *recordingModel
	how   map[string]any
}

// newSession makes a session whose model plays some rules.
func (s *testDaemon) newSession(id string, rules ...rule) *testSession {
	s.t.Helper()
	b, err := json.Marshal(rule{"rules": append([]rule{noted}, rules...)})
	if err != nil {
		s.t.Fatal(err)
	}
	played, err := scripted.Parse(id+".json", b)
	if err != nil {
		s.t.Fatal(err)
	}
	h := &recordingModel{Model: played, held: make(map[int]chan struct{}), changed: make(chan struct{})}
	server := openaitest.NewServer(h, openaitest.Options{Key: "key"})
	s.t.Cleanup(server.Close)
	a := &testSession{stage: s, id: event.SessionID(id), model: h}
	a.how = map[string]any{
		"sessionId": id, "model": "m", "continuePendingWork": true,
		"provider": map[string]any{"type": "openai", "baseUrl": server.URL, "apiKey": "key"},
	}
	return a
}

// with says something more about the session that is to be made.
func (a *testSession) with(key string, value any) *testSession {
	a.how[key] = value
	return a
}

// create makes the session.
func (a *testSession) create() *testSession {
	a.t().Helper()
	a.peer = connect(a.t(), a.stage.node)
	a.must(api.SessionCreate, a.how, nil)
	return a
}

// resume comes back to the session, after a restart.
func (a *testSession) resume() {
	a.t().Helper()
	a.peer = connect(a.t(), a.stage.node)
	a.must(api.SessionResume, a.how, nil)
}

func (a *testSession) t() *testing.T { return a.stage.t }

// send gives the session an input.
func (a *testSession) send(prompt, mode string) {
	a.t().Helper()
	a.must(api.SessionSend, api.SendParams{SessionID: a.id, Prompt: prompt, Mode: mode}, nil)
}

// ask gives the session an input and waits until it is idle again.
func (a *testSession) ask(prompt string) {
	a.t().Helper()
	n := a.count(event.SessionIdle)
	a.send(prompt, "")
	a.await(event.SessionIdle, n+1)
}

// count counts what the client was shown.
func (a *testSession) count(kind event.Type) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// log reads what is stored, hidden events too.
func (a *testSession) log() (log []event.Event) {
	a.t().Helper()
	for {
		var r api.ReadResult
		a.must(api.Events, api.ReadParams{SessionID: a.id, After: event.Seq(len(log))}, &r)
		for _, b := range r.Events {
			e, err := event.Parse(event.Seq(len(log)+1), b)
			if err != nil {
				a.t().Fatal(err)
			}
			log = append(log, e)
		}
		if !r.More {
			return log
		}
	}
}

// stored returns the events of a kind that are stored.
func stored[T any](a *testSession, kind event.Type) (all []T) {
	a.t().Helper()
	for _, e := range a.log() {
		if e.Type == kind {
			d, err := event.As[T](e)
			if err != nil {
				a.t().Fatal(err)
			}
			all = append(all, d)
		}
	}
	return all
}

// reported waits until so many tasks have been reported as ended.
func (a *testSession) reported(n int) {
	a.t().Helper()
	for seen := 0; ; seen++ {
		if len(stored[event.TaskReportedData](a, event.TaskReported)) >= n {
			return
		}
		a.await(event.TasksChanged, seen+1)
	}
}

// tasks are the commands of the session, by name.
func (a *testSession) tasks() map[string]api.Task {
	a.t().Helper()
	var r api.TasksResult
	a.must(api.Tasks, api.TasksParams{SessionID: a.id, All: true}, &r)
	all := make(map[string]api.Task)
	for _, t := range r.Tasks {
		all[t.TaskID] = t
	}
	return all
}

// stop stops a command.
func (a *testSession) stop(task string) (t api.Task) {
	a.t().Helper()
	a.must(api.TaskStop, api.TaskParams{SessionID: a.id, TaskID: task}, &t)
	return t
}

// notices counts how often a request tells of a task.
func notices(req *model.Request, task string) (n int) {
	for _, m := range req.Messages {
		if m.Role == model.User {
			n += strings.Count(m.Text, "<task-id>"+task+"</task-id>")
		}
	}
	return n
}

// result returns what the nth call in a request came to.
func result(t *testing.T, req *model.Request, n int) string {
	t.Helper()
	for _, m := range req.Messages {
		if m.Role != model.ToolRole {
			continue
		}
		if n--; n == 0 {
			return m.Text
		}
	}
	t.Fatalf("the request has no such result: %s", withWindow(req))
	return ""
}

// withWindow is a request for people.
func withWindow(req *model.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		fmt.Fprintf(&b, "\n%s %s %s %s", m.Role, m.CallID, m.Text, callNames(m))
	}
	return b.String()
}

func callNames(m *model.Message) (names []string) {
	for _, c := range m.Calls {
		names = append(names, c.Name)
	}
	return names
}

const (
	summaryLine   = "Currently running background tasks:"
	reminderStart = "<system_reminder>"
	reminderEnd   = "</system_reminder>"
)

// tail returns the volatile end of a request, and the rest message by message.
func tail(req *model.Request) (tail string, rest []string) {
	for i, m := range req.Messages {
		text := m.Text
		if i == len(req.Messages)-1 && m.Role == model.User {
			if at := strings.LastIndex(text, reminderStart); at >= 0 && strings.HasSuffix(text, reminderEnd) {
				tail, text = text[at:], strings.TrimSpace(text[:at])
				if text == "" {
					continue
				}
			}
		}
		rest = append(rest, fmt.Sprint(m.Role, m.CallID, m.Calls, text))
	}
	return tail, rest
}
