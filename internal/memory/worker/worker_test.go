package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/worker"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A scriptedModel is a model whose answers the test chooses.
type scriptedModel struct {
	mu      sync.Mutex
	says    func(req *model.Request) string                                     // answer to a request of a turn; "ok" if nil
	extract func(ctx context.Context, req *model.Request) (*model.Reply, error) // four empty lists if nil
	records []string                                                            // records that it was given to extract from, in order
	does    func(req *model.Request) *model.Reply                               // in turns, before says; nil if it has nothing to do
	asked   int                                                                 // number of requests of turns
	gates   map[string]chan struct{}                                            // sessions whose extraction waits
}

func (m *scriptedModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary") {
		return &model.Reply{Text: "<overview>They talked.</overview>", Usage: model.Usage{Input: 10, Output: 1}}, nil
	}
	if !extracts(req) {
		m.mu.Lock()
		m.asked++
		says, does := m.says, m.does
		m.mu.Unlock()
		if does != nil {
			if reply := does(req); reply != nil {
				return reply, nil
			}
		}
		text := "ok"
		if says != nil {
			text = says(req)
		}
		return &model.Reply{Text: text, Usage: model.Usage{Input: 100, Output: 1}}, nil
	}
	m.mu.Lock()
	m.records = append(m.records, record(req))
	extract, gate := m.extract, m.gates[req.Session]
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if extract == nil {
		return handIn(memory.Extracted{}), nil
	}
	return extract(ctx, req)
}

// record returns the part of the log that an extraction is about, without what is known.
func record(req *model.Request) string {
	_, text, _ := strings.Cut(req.Messages[0].Text, "<record>")
	return text
}

func extracts(req *model.Request) bool {
	return req.Tools != nil && slices.ContainsFunc(req.Tools.List, func(t model.Tool) bool { return t.Name == memory.WriteExtracted })
}

// extractions counts what it was given to extract from.
func (m *scriptedModel) extractions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

func (m *scriptedModel) hold(session string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates == nil {
		m.gates = make(map[string]chan struct{})
	}
	m.gates[session] = make(chan struct{})
	return m.gates[session]
}

// handIn is a call of write_extracted.
func handIn(found memory.Extracted) *model.Reply {
	arguments, err := json.Marshal(map[string]any{
		"decisions": notNil(found.Decisions), "discussions": notNil(found.Discussions),
		"attempts": notNil(found.Attempts), "requests": notNil(found.Requests),
	})
	if err != nil {
		panic(err) // plain data
	}
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: memory.WriteExtracted, Arguments: arguments}}}
}

func notNil[T any](list []T) []T { return append([]T{}, list...) }

// decided answers every extraction with one decision.
func decided(text string) func(context.Context, *model.Request) (*model.Reply, error) {
	return func(context.Context, *model.Request) (*model.Reply, error) {
		return handIn(memory.Extracted{Decisions: []memory.Decision{{Chosen: text, Options: []string{}, Rationale: "because"}}}), nil
	}
}

// A testWorker is a host on a real store, with a worker of memory and a scripted model.
type testWorker struct {
	*testing.T
	dir     string // folder of the store
	work    string // workspace in which the sessions work
	user    string // memory
	rules   event.MemoryRules
	squeeze event.CompactionRules
	tools   []tool.Tool
	window  int // context window of the model; not known if zero
	opts    worker.Options
	model   *scriptedModel
	store   *eventlogtest.Watched
	clients map[event.SessionID]*session.Client
	host    *session.Host
	worker  *worker.Worker
	books   *book.Set
}

// idle is the limit of the sessions of a testWorker.
const idle = 10 * time.Minute

func newTestWorker(t *testing.T) *testWorker {
	l := &testWorker{T: t, dir: t.TempDir(), work: t.TempDir(), user: filepath.Join(t.TempDir(), "memory"), model: new(scriptedModel)}
	l.rules = event.MemoryRules{ExtractThreshold: 1, IdleMs: idle.Milliseconds()}
	if err := os.Mkdir(filepath.Join(l.work, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return l
}

// open opens the store and makes everything else. Nothing runs before start.
func (l *testWorker) open() {
	l.Helper()
	store, err := sqlite.Open(l.Context(), filepath.Join(l.dir, "abide.db"), sqlite.Options{Sync: eventlog.Normal})
	if err != nil {
		l.Fatal(err)
	}
	l.on(store)
}

func (l *testWorker) on(store eventlog.Store) {
	f := sessiontest.On(l.T, store, session.Options{
		Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: l.model, Name: as.Model, Window: l.window}, nil
		},
		Tools: l.tools,
	})
	l.store = f.Watched
	l.books = book.NewSet(l.user, memory.Kinds...)
	l.worker = worker.New(l.store, l.books, l.opts)
	f.Options.Memory = l.worker.Session()
	f.Open()
	l.host = f.Host
	l.worker.SetHost(l.host)
	if err := l.host.Start(l.Context()); err != nil {
		l.Fatal(err)
	}
}

func (l *testWorker) start() { l.worker.Start() }

// close stops everything, as an engine does.
func (l *testWorker) close() {
	l.worker.Stop()
	l.host.Close()
	l.store.Close()
}

// reopen stops everything and starts it again.
func (l *testWorker) reopen() {
	l.close()
	l.open()
	l.start()
}

// create makes a session.
func (l *testWorker) create(id event.SessionID) {
	l.Helper()
	if l.clients == nil {
		l.clients = make(map[event.SessionID]*session.Client)
	}
	l.clients[id] = &session.Client{Viewer: silentViewer{}}
	_, err := l.host.Create(l.Context(), id, session.Spec{Config: event.SessionConfiguredData{
		WorkingDirectory: l.work, Model: "test", Memory: l.rules, Compaction: l.squeeze,
	}}, l.clients[id])
	if err != nil {
		l.Fatal(err)
	}
}

type silentViewer struct{}

func (silentViewer) Event(event.SessionID, event.Event) bool { return true }

// turn has a session say something and waits until it is idle.
func (l *testWorker) turn(id event.SessionID, text string) {
	l.Helper()
	l.send(id, text)
	l.idle(id)
}

func (l *testWorker) send(id event.SessionID, text string) {
	l.Helper()
	if _, err := l.host.Send(l.Context(), id, event.InputAcceptedData{Prompt: text}); err != nil {
		l.Fatal(err)
	}
}

// idle waits until a session has nothing to do.
func (l *testWorker) idle(id event.SessionID) {
	l.Helper()
	for {
		changed := l.store.Changed()
		looked, err := l.host.Memory.Remembered(l.Context(), id)
		if err != nil {
			l.Fatal(err)
		}
		if !looked.Busy {
			return
		}
		<-changed
	}
}

// await waits until a session has an event of a kind, the nth of it.
func (l *testWorker) await(id event.SessionID, kind event.Type, nth int) event.Event {
	l.Helper()
	return l.store.Await(l, id, eventlog.End{}, func(e event.Event) bool {
		if e.Type == kind {
			nth--
		}
		return nth == 0
	})
}

// events returns those of a kind.
func (l *testWorker) events(id event.SessionID, kind event.Type) (list []event.Event) {
	l.Helper()
	for e, err := range l.store.Read(l.Context(), id, 0) {
		if err != nil {
			l.Fatal(err)
		}
		if e.Type == kind {
			list = append(list, e)
		}
	}
	return list
}

func (l *testWorker) extracted(id event.SessionID) (list []event.MemoryExtractedData) {
	l.Helper()
	for _, e := range l.events(id, event.MemoryExtracted) {
		list = append(list, as[event.MemoryExtractedData](l, e))
	}
	return list
}

func (l *testWorker) consolidated(id event.SessionID) (list []event.MemoryConsolidatedData) {
	l.Helper()
	for _, e := range l.events(id, event.MemoryConsolidated) {
		list = append(list, as[event.MemoryConsolidatedData](l, e))
	}
	return list
}

func as[T any](l *testWorker, e event.Event) T {
	l.Helper()
	d, err := event.As[T](e)
	if err != nil {
		l.Fatal(err)
	}
	return d
}

// looked is how far a session was remembered.
func (l *testWorker) looked(id event.SessionID) session.Remembered {
	l.Helper()
	r, err := l.host.Memory.Remembered(l.Context(), id)
	if err != nil {
		l.Fatal(err)
	}
	return r
}

// jobs describes the rows.
func (l *testWorker) jobs() (list []eventlog.Job) {
	l.Helper()
	list, err := l.store.Jobs(l.Context(), "")
	if err != nil {
		l.Fatal(err)
	}
	return list
}

func describe(jobs []eventlog.Job) string {
	var words []string
	for _, j := range jobs {
		words = append(words, fmt.Sprintf("%s %s %d-%d attempts=%d aside=%t", j.Session, j.Kind, j.From, j.To, j.Attempts, j.Aside()))
	}
	return strings.Join(words, "; ")
}

// page reads a page of the workspace's memory.
func (l *testWorker) page(name string) string {
	l.Helper()
	text, err := os.ReadFile(filepath.Join(l.work, ".abide", "memory", name+".md"))
	if err != nil && !os.IsNotExist(err) {
		l.Fatal(err)
	}
	return string(text)
}
