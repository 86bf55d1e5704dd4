package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/window"
)

// A longSession is a session with many turns in a small window, on a real store.
// It is the model, which counts more tokens than we do, and the tool.
type longSession struct {
	*requestChecker
	host  *session.Host
	store *sqlite.Store
	idle  chan event.SessionIdleData

	mu   sync.Mutex
	rand *rand.Rand
	left int // answers with calls that are to come in this turn
	call int // calls so far
	said int // tokens of all that was ever said, called and given
}

const (
	marathonWindow = 16_000
	marathonCounts = 1.2
	firstWords     = "The word that began it all is abracadabra."
)

// Ask makes calls for a while, then answers.
func (m *longSession) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.examine(req)
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &model.Reply{Text: "So it was done.", Finish: "stop", Usage: model.Usage{Input: int64(marathonCounts * float64(tokensOf(req)))}}
	switch {
	case int(reply.Usage.Input) > m.limit("test"):
		return nil, &model.Error{Kind: model.KindOverflow, Message: "The request is too large."}
	case wantsSummary(req):
		reply.Text = fmt.Sprintf("<overview>It went on: %d calls.</overview>%s", m.call, strings.Repeat(" More was done.", m.rand.IntN(60)))
		return reply, nil
	case m.left > 0:
		m.left--
		reply.Text = ""
		for range 1 + m.rand.IntN(3) {
			m.call++
			reply.Calls = append(reply.Calls, model.Call{ID: fmt.Sprintf("c%d", m.call), Name: "act", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, m.call))})
		}
	}
	m.said += window.Of(&model.Message{Text: reply.Text, Calls: reply.Calls})
	return reply, nil
}

func (m *longSession) Spec() tool.Spec { return tool.Spec{Name: "act", Description: "Does something."} }

func (m *longSession) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}

// Run gives little, or much, or now and then more than the window has room for.
func (m *longSession) Run(context.Context, tool.Call) (tool.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := m.rand.IntN(1 + m.rand.IntN(12_000))
	if m.rand.IntN(200) == 0 {
		size = 6 * marathonWindow
	}
	text := strings.Repeat("x y z\n", size/6)
	m.said += window.Of(&model.Message{Text: text})
	return tool.Result{Text: text}, nil
}

func (m *longSession) Event(_ event.SessionID, e event.Event) bool {
	switch e.Type {
	case event.SessionError:
		m.fault("%s", e.Bytes)
	case event.SessionIdle:
		d, _ := event.As[event.SessionIdleData](e)
		m.idle <- d
	}
	return true
}

func newMarathon(t testing.TB) *longSession {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "abide.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &longSession{requestChecker: new(requestChecker), store: store, idle: make(chan event.SessionIdleData, 1), rand: rand.New(rand.NewPCG(6, 18))}
	m.allow("test", window.Limits{Window: marathonWindow, Output: reserved})
	m.start(t)
	t.Cleanup(func() { m.host.Close(); store.Close() })
	if _, err := m.host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Model: "test"}}, nil); err != nil {
		t.Fatal(err)
	}
	m.attach(t)
	return m
}

func (m *longSession) start(t testing.TB) {
	m.host = session.New(m.store, session.Options{
		Resolve: func(context.Context, provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: m, Name: "test", Window: marathonWindow, Output: reserved}, nil
		},
		Tools: []tool.Tool{m},
	})
	if err := m.host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (m *longSession) attach(t testing.TB) {
	st, err := m.host.Status(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	view, err := m.host.Attach(t.Context(), "s", &session.Client{Viewer: m}, st.End.Seq)
	if err == nil {
		err = view.CatchUp(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// turn has one turn.
func (m *longSession) turn(t testing.TB, prompt string) {
	m.mu.Lock()
	m.left = m.rand.IntN(4)
	m.said += window.Tokens(prompt)
	m.mu.Unlock()
	m.asked(prompt)
	if _, err := m.host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: prompt}); err != nil {
		t.Fatal(err)
	}
	<-m.idle
	if len(m.found) > 0 {
		t.Fatalf("%.40q: %s", prompt, strings.Join(m.found, "\n"))
	}
}

// A soakPart is what was measured in a tenth of the turns.
type soakPart struct {
	took        time.Duration
	heap        uint64
	said        int
	compactions int
}

// run runs a tenth of the turns.
func (m *longSession) run(t testing.TB, from, turns int) (is soakPart) {
	said, done, begun := m.said, m.compactions(t), time.Now()
	for n := from; n < from+turns; n++ {
		m.turn(t, fmt.Sprintf("Turn %d: go on. %s", n, strings.Repeat("Please. ", n%50)))
	}
	is = soakPart{took: time.Since(begun) / time.Duration(turns), said: m.said - said, compactions: m.compactions(t) - done}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	is.heap = mem.HeapAlloc
	return is
}

// compactions counts those that are done.
func (m *longSession) compactions(t testing.TB) int {
	f, err := m.host.Context.Fill(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return f.Epoch
}

// soakTurns is how long the way is: ABIDE_TURNS makes it longer.
func soakTurns(t testing.TB) int {
	text := os.Getenv("ABIDE_TURNS")
	if text == "" {
		return 300
	}
	turns, err := strconv.Atoi(text)
	if err != nil || turns < 10 {
		t.Fatalf("ABIDE_TURNS=%s is no number of turns", text)
	}
	return turns
}

func TestSoakAContextThatNeverOverflowsAndForgetsNothing(t *testing.T) {
	m := newMarathon(t)
	m.turn(t, firstWords)
	var way []soakPart
	part := soakTurns(t) / 10
	for i := range 10 {
		way = append(way, m.run(t, i*part, part))
		t.Logf("part %d: %+v", i+1, way[i])
	}
	t.Logf("%d tokens said, %d requests, %d for summaries, the largest had %d tokens of %d", m.said, m.requests, m.summaries, m.largest, m.limit("test"))
	m.judge(t, way)
	m.remembers(t)
	m.host.Close()
	m.start(t)
	m.attach(t)
	m.turn(t, "Once more, after a rest.")
	events, err := readLog(m.store, "s")
	if err == nil {
		err = paired(events, false)
	}
	if err != nil {
		t.Error(err)
	}
}

// judge: compactions are in proportion to what was said, and nothing grows with
// the length of the way. Times are for people to look at.
func (m *longSession) judge(t testing.TB, way []soakPart) {
	for i, is := range way {
		// Between two of them at least a quarter of what was there has come, or of
		// what was left, and what does not fit comes on top.
		if most := 8*is.said/m.limit("test") + 3; is.compactions == 0 || is.compactions > most {
			t.Errorf("part %d: %d compactions for %d tokens, want at most %d", i+1, is.compactions, is.said, most)
		}
	}
	first, last := way[0], way[len(way)-1]
	const slack = 4 << 20 // allowance for differences of a window, of a cache of the store and of the runtime
	if last.heap > first.heap*3/2+slack {
		t.Errorf("%d bytes are held at the end, %d after the first part", last.heap, first.heap)
	}
	t.Logf("the last part beside the first: time %.2f, memory %.2f", last.took.Seconds()/first.took.Seconds(), float64(last.heap)/float64(first.heap))
}

// remembers: what was said first can still be read and found.
func (m *longSession) remembers(t testing.TB) {
	shown, err := m.host.Log.Messages(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(shown, func(e event.Event) bool { return e.Type == event.UserMessage })
	if d, err := event.As[event.UserMessageData](shown[first]); err != nil || d.Content != firstWords {
		t.Errorf("the first message is %q, %v", d.Content, err)
	}
	var found []string
	matches, err := m.host.Log.Search(t.Context(), eventlog.Search{Text: "ABRACADABRA"})
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range matches.Matches {
		found = append(found, match.Line)
	}
	if !slices.Equal(found, []string{firstWords}) {
		t.Errorf("a search gives %q", found)
	}
}
