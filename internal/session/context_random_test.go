package session_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/compact"
)

// A randomPlan is everything that is random about a session. It is made
// before the session begins, so that a failure can be repeated.
type randomPlan struct {
	Window    int
	Counts    float64 // tokens that the provider counts for each of ours; zero if it does not tell
	Rules     event.CompactionRules
	Infinite  *event.InfiniteSessions
	Summaries []string // outcomes of requests for a summary, over and over
	Days      []randomStep
}

// A randomStep is one thing that happens to the session.
type randomStep struct {
	Kind   string
	Prompt int            // bytes
	Steps  [][]randomCall // the calls of each answer but the last
	Answer int            // bytes
	Beside bool           // somebody wants it compacted at the same time
	Back   int            // number of messages that are taken back
	Window int
}

// A randomCall is what a call does, and what else happens while it is made.
type randomCall struct {
	Gives int // bytes
	Wide  bool
	Event string // "", "crash", "steer", "compact" or "stop"
}

// The window of a model that only writes summaries.
const otherWindow = 9000

// reserved is what is kept free for answers.
const reserved = 700

func drawFate(t *rapid.T) randomPlan {
	f := randomPlan{
		Window:    rapid.SampledFrom([]int{6000, 12_000, 40_000}).Draw(t, "window"),
		Counts:    rapid.SampledFrom([]float64{0, 0.8, 1, 1.4}).Draw(t, "counts"),
		Summaries: rapid.SliceOfN(rapid.SampledFrom([]string{"text", "text", "tool", "empty", "none", "refuse", "down", "overflow", "endless", "huge", "cut"}), 1, 8).Draw(t, "summaries"),
	}
	f.Rules = event.CompactionRules{
		Threshold: drawTokens(t, "compact_threshold", f.Window), RequestThreshold: drawTokens(t, "compact_request_threshold", f.Window),
		Retained: drawTokens(t, "compact_retained_tokens", f.Window/4), TimeoutMs: 3000,
		Model: rapid.SampledFrom([]string{"", "", "other"}).Draw(t, "summariser"),
	}
	if rapid.Bool().Draw(t, "infinite") {
		f.Infinite = &event.InfiniteSessions{
			Enabled: drawMaybe(t, "enabled", rapid.Bool()), Background: drawMaybe(t, "background", rapid.Float64Range(0, 1)),
			Exhaustion: drawMaybe(t, "exhaustion", rapid.Float64Range(-1, 2)),
		}
	}
	f.Days = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) randomStep { return drawDay(t, f.Window) }), 1, 14).Draw(t, "days")
	return f
}

func drawMaybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) *T {
	return rapid.Ptr(g, true).Draw(t, label)
}

func drawTokens(t *rapid.T, label string, window int) *int {
	return drawMaybe(t, label, rapid.OneOf(rapid.IntRange(0, window), rapid.Just(0), rapid.Just(-1), rapid.Just(10*window)))
}

// drawSize draws bytes: mostly few, sometimes more than the window has tokens.
func drawSize(t *rapid.T, label string, most int) int {
	return rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, most/4), rapid.IntRange(0, most)).Draw(t, label)
}

func drawDay(t *rapid.T, window int) randomStep {
	d := randomStep{
		Kind:   rapid.SampledFrom([]string{"turn", "turn", "turn", "turn", "compact", "undo", "rewind", "restart", "rest", "switch", "cancel"}).Draw(t, "kind"),
		Prompt: drawSize(t, "prompt", window), Answer: drawSize(t, "answer", window),
		Beside: rapid.IntRange(0, 9).Draw(t, "beside") == 0, Back: rapid.IntRange(1, 3).Draw(t, "back"),
		Window: rapid.SampledFrom([]int{6000, 9000, 40_000}).Draw(t, "new window"),
	}
	if rapid.IntRange(0, 19).Draw(t, "far too long") == 0 {
		d.Prompt = 8 * window
	}
	d.Steps = rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) randomCall {
		return randomCall{
			Gives: drawSize(t, "gives", 5*window), Wide: rapid.IntRange(0, 4).Draw(t, "wide") == 0,
			Event: rapid.SampledFrom([]string{"", "", "", "", "", "", "crash", "steer", "compact", "stop"}).Draw(t, "event"),
		}
	}), 1, 3), 0, 5).Draw(t, "steps")
	for _, calls := range d.Steps {
		for i := range calls[1:] {
			calls[i+1].Event = "" // one at a time: nobody knows which would come first
		}
	}
	return d
}

// A randomSession is a session that follows a random plan. It is the model, the tool and the
// client in one.
type randomSession struct {
	*requestChecker
	randomPlan
	t       testing.TB
	b       *sessiontest.Fixture
	session event.SessionID
	idle    chan event.SessionIdleData
	crash   chan struct{}

	mu     sync.Mutex
	day    int // the day of the turn
	walked int // steps of it whose calls were made
	ran    map[string]int
	told   int            // requests for summaries
	last   *model.Request // last request of a turn, if requests have to begin with the one before; else nil

	seen map[string]int // counts over all hosts of the session
}

func newLife(t testing.TB, f randomPlan, seen map[string]int) *randomSession {
	return &randomSession{
		requestChecker: &requestChecker{counts: f.Counts}, randomPlan: f, t: t, session: "s",
		idle: make(chan event.SessionIdleData, 16), crash: make(chan struct{}, 1), ran: make(map[string]int), seen: seen,
	}
}

func (l *randomSession) Event(_ event.SessionID, e event.Event) bool {
	if e.Type == event.SessionIdle {
		d, _ := event.As[event.SessionIdleData](e)
		l.idle <- d
	}
	return true
}

// Ask answers as it is written.
func (l *randomSession) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	l.examine(req)
	usage := model.Usage{Input: int64(l.Counts * float64(tokensOf(req)))}
	if int(usage.Input) > l.limit(req.Model) {
		return nil, &model.Error{Kind: model.KindOverflow, Message: "The request is too large."}
	}
	if wantsSummary(req) {
		return l.summary(ctx, usage)
	}
	if err := fromLog(l.b.Store, req, l.limit(req.Model)); err != nil {
		l.fault("%v", err)
	}
	l.mu.Lock()
	d, step := l.Days[l.day], l.walked
	if before := l.last; before != nil {
		l.last = req
		defer l.begins(before, req)
	}
	l.mu.Unlock()
	if step >= len(d.Steps) {
		return &model.Reply{Text: l.answer(), Usage: usage, Finish: "stop"}, nil
	}
	reply := &model.Reply{Usage: usage, Finish: "tool_calls"}
	for i := range d.Steps[step] {
		id := fmt.Sprintf("d%d.s%d.c%d", l.day, step, i)
		reply.Calls = append(reply.Calls, model.Call{ID: id, Name: "act", Arguments: json.RawMessage(`{"id":"` + id + `"}`)})
	}
	return reply, nil
}

// begins reports a fault if a request does not begin with the one before, byte for byte.
func (l *randomSession) begins(before, req *model.Request) {
	n := len(before.Messages)
	if len(req.Messages) < n || !slices.EqualFunc(req.Messages[:n], before.Messages, sameMessage) {
		l.fault("a request does not begin with the messages of the one before:%s\nthen:%s", outline(before.Messages), outline(req.Messages))
	}
	if n > 0 && (req.System != before.System || !reflect.DeepEqual(req.Tools, before.Tools)) {
		l.fault("the system prompt or the tools have changed:\n%s\n%s", before.System, req.System)
	}
}

func (l *randomSession) answer() string {
	return fmt.Sprintf("That was day %d.", l.day) + strings.Repeat(" And so on.", l.Days[l.day].Answer/11)
}

// summary is what a summariser may do.
func (l *randomSession) summary(ctx context.Context, usage model.Usage) (*model.Reply, error) {
	l.mu.Lock()
	what := l.Summaries[l.told%len(l.Summaries)]
	l.told++
	text := fmt.Sprintf("<overview>Summary %d: all is well.</overview>", l.told)
	l.mu.Unlock()
	reply := &model.Reply{Text: text, Usage: usage, Finish: "stop"}
	switch what {
	case "tool":
		reply.Text, reply.Calls = "", []model.Call{{ID: "w", Name: compact.WriteSummary, Arguments: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}}
	case "empty":
		reply.Text = ""
	case "none":
		reply.Text = "<overview>None.</overview>"
	case "huge":
		reply.Text = strings.Repeat("It goes on and on. ", 20_000)
	case "cut":
		reply.Finish = "length"
	case "refuse":
		return nil, &model.Error{Kind: model.KindRequest, Message: "No."}
	case "down":
		return nil, &model.Error{Kind: model.KindOverloaded, Message: "Come back later."}
	case "overflow":
		return nil, &model.Error{Kind: model.KindOverflow, Message: "The request is too large."}
	case "endless":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return reply, nil
}

func (l *randomSession) Spec() tool.Spec {
	return tool.Spec{Name: "act", Description: "Does something.", Replay: tool.Pure}
}

func (l *randomSession) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}

// Run does what is written, the first time.
func (l *randomSession) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	var day, step, i int
	if _, err := fmt.Sscanf(call.ID, "d%d.s%d.c%d", &day, &step, &i); err != nil {
		return tool.Result{}, err
	}
	f := l.Days[day].Steps[step][i]
	l.mu.Lock()
	l.ran[call.ID]++
	again := l.ran[call.ID] > 1
	l.mu.Unlock()
	switch {
	case f.Event == "crash" && !again:
		l.crash <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	case f.Event == "steer": // the key keeps an input that was sent before from being taken again
		in := event.InputAcceptedData{Prompt: fmt.Sprintf("And mind this, by the way: %s.", call.ID), Mode: event.ModeSteer, Key: call.Key}
		l.asked(in.Prompt)
		if _, err := l.b.Host.Send(ctx, l.session, in); err != nil {
			return tool.Result{}, err
		}
	case f.Event == "compact" && !again:
		if err := l.compact(l.b.Host); err != nil {
			return tool.Result{}, err
		}
	case f.Event == "stop":
		if err := l.b.Host.Abort(ctx, l.session, "enough"); err != nil {
			return tool.Result{}, err
		}
	}
	l.mu.Lock()
	l.walked = max(l.walked, step+1)
	l.mu.Unlock()
	unit := "output "
	if f.Wide {
		unit = "größer "
	}
	return tool.Result{Text: strings.Repeat(unit, f.Gives/len(unit)) + call.ID}, ctx.Err()
}

// live lives a whole life.
func (l *randomSession) live() error {
	l.b = sessiontest.New(l.t, l, l)
	l.b.Options.Resolve = func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
		return session.Endpoint{Model: l, Name: cmp.Or(as.Model, "test"), Window: otherWindow, Output: reserved}, nil
	}
	l.b.Restart()
	l.allow("test", window.Limits{Window: l.Window, Output: reserved})
	l.allow("other", window.Limits{Window: otherWindow, Output: reserved})
	config := event.SessionConfiguredData{Model: "test", Window: l.Window, Compaction: l.Rules, Infinite: l.Infinite}
	if _, err := l.b.Host.Create(l.t.Context(), l.session, session.Spec{Config: config}, nil); err != nil {
		return err
	}
	if err := l.attach(0); err != nil {
		return err
	}
	for i, d := range l.Days {
		if err := l.spend(i, d); err != nil {
			return fmt.Errorf("day %d (%s): %w", i, d.Kind, err)
		}
		synctest.Wait()
		if len(l.idle) > 0 {
			return fmt.Errorf("day %d (%s): the session was idle twice", i, d.Kind)
		}
		if len(l.found) > 0 {
			return fmt.Errorf("day %d (%s): %s", i, d.Kind, strings.Join(l.found, "\n"))
		}
	}
	time.Sleep(time.Hour) // work in the background ends within this time
	events, err := readLog(l.b.Store, l.session)
	if err == nil {
		err = paired(events, true)
	}
	l.happened(events)
	return err
}

// happened counts what there was to see.
func (l *randomSession) happened(events []event.Event) {
	for _, e := range events {
		switch e.Type {
		case event.CompactionStart:
			d, _ := event.As[event.CompactionStartData](e)
			l.seen[fmt.Sprintf("%s %s must=%v", d.Point, d.Trigger, d.Must)]++
		case event.CompactionComplete:
			d, _ := event.As[event.CompactionCompleteData](e)
			l.seen[fmt.Sprintf("%s %s digest=%v", d.Outcome, d.Cause, d.Digest)]++
		case event.SessionError, event.ContextEpoch, event.HistoryHidden, event.Abort:
			l.seen[string(e.Type)]++
		}
	}
}

func (l *randomSession) attach(at event.Seq) error {
	view, err := l.b.Host.Attach(l.t.Context(), l.session, &session.Client{Viewer: l}, at)
	if err != nil {
		return err
	}
	return view.CatchUp(l.t.Context())
}

// restart ends the engine wherever it is, and starts the next.
func (l *randomSession) restart() error {
	l.b.Host.Close()
	index, err := l.b.Store.Session(l.t.Context(), l.session)
	if err != nil {
		return err
	}
	l.b.Start()
	return l.attach(index.End.Seq)
}

func (l *randomSession) spend(i int, d randomStep) error {
	ctx := l.t.Context()
	switch d.Kind {
	case "turn":
		return l.turn(i, d)
	case "compact":
		return l.compact(l.b.Host)
	case "cancel":
		_, err := l.b.Host.Context.CancelCompaction(ctx, l.session, false)
		return err
	case "restart":
		return l.restart()
	case "rest":
		time.Sleep(time.Minute) // it is no longer in memory
	case "switch":
		time.Sleep(time.Hour) // a summary of which nobody knows for which window it is would be in the way
		l.allow("test", window.Limits{Window: d.Window, Output: reserved})
		return l.b.Host.SetModel(ctx, l.session, session.Choice{Model: "test", Window: d.Window})
	case "undo":
		return l.undo()
	case "rewind":
		return l.rewind(d.Back)
	}
	return nil
}

// compact compacts by hand. Another compaction may be under way.
func (l *randomSession) compact(host *session.Host) error {
	_, err := host.Context.Compact(l.t.Context(), l.session, session.Squeeze{Instructions: "Keep the numbers."})
	if errors.Is(err, session.ErrCompacting) {
		return nil
	}
	return err
}

// turn has a turn, and looks at how it ends.
func (l *randomSession) turn(i int, d randomStep) error {
	prompt := fmt.Sprintf("Day %d: go on.", i) + strings.Repeat(" Mind the gap.", d.Prompt/14)
	l.mu.Lock()
	l.day, l.walked = i, 0
	l.mu.Unlock()
	l.asked(prompt)
	beside := make(chan error, 1)
	if host := l.b.Host; d.Beside {
		go func() { beside <- l.compact(host) }()
	} else {
		beside <- nil
	}
	if _, err := l.b.Host.Send(l.t.Context(), l.session, event.InputAcceptedData{Prompt: prompt}); err != nil {
		return err
	}
	for crashed := false; ; {
		select {
		case <-l.crash:
			if err := l.restart(); err != nil {
				return err
			}
			crashed = true
		case idle := <-l.idle:
			if err := <-beside; err != nil && !crashed {
				return fmt.Errorf("compaction beside a turn: %w", err)
			}
			return l.ended(prompt, idle.Aborted)
		case <-time.After(24 * time.Hour):
			return errors.New("the turn does not end")
		}
	}
}

// ended looks at how the turn ended: with the answer, or for a reason.
func (l *randomSession) ended(prompt string, stopped bool) error {
	events, err := readLog(l.b.Store, l.session)
	if err != nil {
		return err
	}
	if err := paired(events, false); err != nil {
		return err
	}
	if got := lastAnswer(l.t, events); got == l.answer() || stopped {
		return nil
	}
	for _, e := range events {
		if e.Type == event.SessionError && e.Seq > lastOf(events, event.UserMessage) {
			failure, err := event.As[event.SessionErrorData](e)
			if err != nil {
				return err
			}
			if failure.ErrorType == turn.ErrorOverflow && l.cannotFit(prompt, events) {
				return nil
			}
			return fmt.Errorf("the turn failed: %s: %s%s", failure.ErrorType, failure.Message, story(events))
		}
	}
	return fmt.Errorf("the answer is %.80q", lastAnswer(l.t, events))
}

// cannotFit reports whether a request with the prompt has no place in the window,
// with all that has to be there.
func (l *randomSession) cannotFit(prompt string, events []event.Event) bool {
	const (
		head    = 260  // the least of a head, the words around a request, and the tool
		learned = 1.05 // what is learned of the provider's counts is not exact
	)
	state := turn.New(l.session)
	if err := state.Load(slices.Clone(events)); err != nil {
		l.fault("%v", err)
	}
	least := window.Tokens(prompt) + window.Tokens(state.Prompt.System) + head
	return learned*max(1, l.Counts)*float64(least) > float64(l.limit("test"))
}

// story is the end of a log for people.
func story(events []event.Event) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-25):] {
		data, _ := e.Data() // a row that is not an event has no data
		fmt.Fprintf(&b, "\n%d %s %.300s", e.Seq, e.Type, data)
	}
	return b.String()
}

func lastOf(events []event.Event, kind event.Type) (at event.Seq) {
	for _, e := range events {
		if e.Type == kind {
			at = e.Seq
		}
	}
	return at
}

// undo returns to the epoch before: what the model saw then, and everything that
// was said since.
func (l *randomSession) undo() error {
	before, err := readLog(l.b.Store, l.session)
	if err != nil {
		return err
	}
	want, err := readPlainly(before)
	if err != nil {
		return err
	}
	_, err = l.b.Host.Context.Uncompact(l.t.Context(), l.session)
	switch {
	case errors.Is(err, session.ErrNoEpoch) && len(want.chapters) == 0, errors.Is(err, session.ErrBusy):
		return nil
	case err != nil:
		return err
	}
	want.chapters = want.chapters[:len(want.chapters)-1]
	after, err := readLog(l.b.Store, l.session)
	if err != nil {
		return err
	}
	got, err := readPlainly(after)
	if err != nil {
		return err
	}
	hadHead, old := want.view()
	hasHead, is := got.view()
	if hadHead != hasHead || len(is) != len(old) {
		return fmt.Errorf("after an undo %d messages are seen, before the compaction it was %d", len(is), len(old))
	}
	return nil
}

// rewind takes the newest messages of the user back.
func (l *randomSession) rewind(back int) error {
	shown, err := l.b.Host.Log.Messages(l.t.Context(), l.session)
	if err != nil {
		return err
	}
	for i := len(shown) - 1; i >= 0; i-- {
		if shown[i].Type != event.UserMessage {
			continue
		}
		if back--; back > 0 {
			continue
		}
		head, err := shown[i].Head()
		if err == nil {
			_, err = l.b.Host.Rewind(l.t.Context(), l.session, session.Rewind{EventID: head.ID})
		}
		return err
	}
	return nil
}

// Whatever happens, the model is sent what it can take: a legal history that fits,
// with the newest request in full, and the same whether the session was in memory
// or had to be read.
func TestWhateverHappensTheModelIsSentWhatItCanTake(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFate(rt)
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = newLife(t, f, seen).live()
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
	t.Log(seen)
}

// Providers have the beginning of a request in their caches: as long as nothing is compacted,
// it is that of the request before, after hours, in another engine, and whatever was said while
// calls were made.
func TestEachRequestBeginsWithTheOneBefore(t *testing.T) {
	calls := [][]randomCall{{{Gives: 500, Wide: true}, {Gives: 40}}, {{Gives: 2000, Event: "steer"}}, {{Gives: 10, Event: "crash"}}, {{Gives: 10}}}
	f := randomPlan{Window: 40_000, Counts: 1, Summaries: []string{"text"}, Infinite: &event.InfiniteSessions{Enabled: new(false)}, Days: []randomStep{
		{Kind: "turn", Prompt: 300, Answer: 300}, {Kind: "turn", Steps: calls}, {Kind: "rest"}, {Kind: "turn", Steps: calls[:2]}, {Kind: "restart"},
		{Kind: "turn", Steps: calls[2:], Answer: 1000}, {Kind: "turn", Steps: [][]randomCall{{{Gives: 90, Event: "stop"}}}}, {Kind: "turn", Steps: calls},
	}}
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, f, make(map[string]int))
		l.last = &model.Request{}
		if err := l.live(); err != nil {
			t.Error(err)
		}
		if l.requests < 15 || l.summaries > 0 {
			t.Errorf("%d requests and %d for summaries were made", l.requests, l.summaries)
		}
	})
}

// Lives that chance has found, in which something was wrong once.
var hardLives = map[string]randomPlan{
	"a head alone is compacted again, for a provider that counts more than we do": {
		Window: 6000, Counts: 1.9, Summaries: []string{"huge"},
		Days: []randomStep{{Kind: "turn", Answer: 20_000}, {Kind: "turn"}, {Kind: "restart"}, {Kind: "turn"}},
	},
	"a request that fits is not refused because of its repetition in the head": {
		Window: 9000, Counts: 1.4, Summaries: []string{"none"}, Infinite: &event.InfiniteSessions{Enabled: new(false)},
		Days: []randomStep{{Kind: "turn", Prompt: 4000, Answer: 4000}, {Kind: "turn", Answer: 4000}, {Kind: "turn", Prompt: 17_900}},
	},
	"what short results teach of a provider's counts is not too little for a long one": {
		Window: 12_000, Counts: 0.8, Summaries: []string{"refuse"},
		Days: []randomStep{{Kind: "turn", Steps: [][]randomCall{{{Gives: 25, Wide: true}}, {{Gives: 249, Wide: true}, {Gives: 825}}, {{Gives: 51_380}}}}},
	},
	"what was reduced stays so in the next epoch, and an undo gives it back": {
		Window: 6000, Counts: 1.9, Summaries: []string{"text"}, Infinite: &event.InfiniteSessions{Enabled: new(false)},
		Days: []randomStep{
			{Kind: "turn", Prompt: 2400, Steps: [][]randomCall{{{Gives: 40_000}}, {{Gives: 100, Event: "crash"}}}},
			{Kind: "switch", Window: 40_000}, {Kind: "turn"}, {Kind: "undo"}, {Kind: "turn"}, {Kind: "undo"}, {Kind: "turn"},
		},
	},
}

func TestLivesThatWentWrongOnce(t *testing.T) {
	for name, f := range hardLives {
		t.Run(name, func(t *testing.T) {
			seen := make(map[string]int)
			synctest.Test(t, func(t *testing.T) {
				if err := newLife(t, f, seen).live(); err != nil {
					t.Error(err)
				}
			})
			t.Log(seen)
		})
	}
}
