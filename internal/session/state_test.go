package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// A sealingModel adds to its n-th answer what only its provider understands, and keeps
// what it was told of it.
type sealingModel struct {
	mu    sync.Mutex
	n     int
	asked [][]string
}

func (m *sealingModel) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if isSummary(req) {
		return &model.Reply{Text: "They talked."}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var seals []string
	for _, told := range req.Messages {
		if r := told.Reasoning; r != nil {
			seals = append(seals, r.Opaque+" "+r.Encrypted)
		}
	}
	m.asked = append(m.asked, seals)
	m.n++
	return &model.Reply{
		Text: strings.Repeat(fmt.Sprintf("answer %d ", m.n), 200), Usage: model.Usage{Input: 1, Output: 1}, Finish: model.FinishStop,
		Reasoning: &model.Reasoning{Opaque: fmt.Sprintf(`{"signed":"<%d>"}`, m.n), Encrypted: fmt.Sprintf("locked %d", m.n)},
	}, nil
}

// told returns what the last request had of the seals.
func (m *sealingModel) told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

func TestWhatAProviderWantsBackOutlivesCrashForkAndCompaction(t *testing.T) {
	first, second := `{"signed":"<1>"} locked 1`, `{"signed":"<2>"} locked 2`
	m := new(sealingModel)
	b := sessiontest.New(t, m)
	v := b.Create("s", &session.Client{})
	ask := func(id event.SessionID, v *sessiontest.Viewer) {
		b.Send(id, event.InputAcceptedData{Prompt: "go on"})
		v.Await(t, 0, event.SessionIdle)
	}
	ask("s", v)
	b.Restart()
	ask("s", b.Resume("s", session.Resume{}, &session.Client{}))
	if got := m.told(); !slices.Equal(got, []string{first}) {
		t.Errorf("after a crash the provider gets %q", got)
	}
	child, err := b.Host.Fork(t.Context(), "child", "s", 0, "copy")
	if err != nil {
		t.Fatal(err)
	}
	ask(child, b.Resume(child, session.Resume{}, &session.Client{}))
	if got := m.told(); !slices.Equal(got, []string{first, second}) {
		t.Errorf("in a fork the provider gets %q", got)
	}
}

func TestWhatAProviderWantsBackStaysWithTheAnswersThatACompactionKeeps(t *testing.T) {
	m := new(sealingModel)
	b := sessiontest.New(t, m)
	rules := event.CompactionRules{Threshold: num(1500), Retained: num(1200)}
	v := sessiontest.NewViewer()
	view, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Compaction: rules}}, &session.Client{Viewer: v})
	if err == nil {
		err = view.CatchUp(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for range 4 {
		b.Send("s", event.InputAcceptedData{Prompt: "go on"})
		_, at = v.Await(t, at, event.SessionIdle)
	}
	if n := countEvents(b.Verify("s"), event.ContextEpoch); n == 0 {
		t.Fatal("nothing was compacted")
	}
	if got := m.told(); len(got) == 0 || len(got) == 3 || got[len(got)-1] != `{"signed":"<3>"} locked 3` {
		t.Errorf("after a compaction the provider gets %q", got)
	}
}

func countEvents(events []event.Event, kind event.Type) (n int) {
	for _, e := range events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// The session's own goroutine does not wait for a slow provider to say how large the
// window is. It is known when the model has been asked.
func TestAWindowThatIsToldLateCounts(t *testing.T) {
	var told atomic.Bool
	b := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: func(ctx context.Context, _ provider.Choice) (session.Endpoint, error) {
		to := session.Endpoint{Model: new(sealingModel), Name: "m", Window: 128_000, Output: 1000}
		if model.Hurry(ctx) == 0 {
			to.Window = 9000
			told.Store(true)
		} else if told.Load() {
			to.Window = 9000
		}
		return to, nil
	}})
	b.Start()
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "go"})
	v.Await(t, 0, event.SessionIdle)
	if f, err := b.Host.Context.Fill(t.Context(), "s"); err != nil || f.Limits.Window != 9000 {
		t.Errorf("the window is %+v, %v", f, err)
	}
}
