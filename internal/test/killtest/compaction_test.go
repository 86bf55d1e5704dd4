package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/window"
)

// A compactionCase is a conversation during which the context is compacted.
type compactionCase struct {
	name        string
	infinite    event.InfiniteSessions
	turns       []task
	driveClient func(context.Context, *client) error // drives the client; nil for the usual way
	refuses     string                               // id of the call after which the provider refuses one request as too large
	slow        bool                                 // true if the summary is answered only after the turn has continued

	trigger, point string // trigger and point of the compaction under test
}

// A task is a prompt, the calls that the model makes for it, one after the other, and
// its answer.
type task struct {
	prompt string
	calls  []model.Call
	answer string
}

// smallWindow is the window of the model, in tokens, and the part that is reserved
// for answers.
var smallWindow = window.Limits{Window: 8000, Output: 1000}

// Thresholds, as shares of the tokens that a request may have.
const (
	never = 0.0
	early = 0.28
)

// longAnswer is an answer that fills a large part of the window.
var longAnswer = "It was a long day." + strings.Repeat(" Then something else happened.", 240)

func tasksAfterLongAnswer(first ...task) []task {
	return append([]task{{prompt: "Tell me about your day.", answer: longAnswer}}, first...)
}

// taskCall makes a call whose result cannot be confused with another.
func taskCall(tool, name string, size int) model.Call {
	args, _ := json.Marshal(map[string]string{"value": "call-" + name + strings.Repeat(" and so on", size/10)}) // plain data
	return model.Call{ID: "call-" + name, Name: tool, Arguments: args}
}

var compactionCases = []compactionCase{
	{
		name: "before", trigger: event.TriggerThreshold, point: event.PointBeforeRun,
		infinite: event.InfiniteSessions{Background: new(never), Exhaustion: new(early)},
		turns:    tasksAfterLongAnswer(task{"And what now?", []model.Call{taskCall("once", "a1", 0)}, "Now we rest."}),
	},
	{
		name: "between", trigger: event.TriggerThreshold, point: event.PointBetween,
		infinite: event.InfiniteSessions{Background: new(never), Exhaustion: new(early)},
		turns: []task{{"Do these three things.", []model.Call{
			taskCall("keyed", "b1", 4000), taskCall("once", "b2", 4000), taskCall("pure", "b3", 0),
		}, "All three are done."}},
	},
	{
		name: "manual", trigger: event.TriggerManual, point: event.PointBackground, driveClient: compactManually,
		infinite: event.InfiniteSessions{Enabled: new(false)},
		turns:    tasksAfterLongAnswer(task{"And what now?", []model.Call{taskCall("once", "c1", 0)}, "Now we rest."}),
	},
	{
		name: "ahead", trigger: event.TriggerThreshold, point: event.PointBackground, slow: true,
		infinite: event.InfiniteSessions{Background: new(early), Exhaustion: new(1.0)},
		turns:    tasksAfterLongAnswer(task{"And what now?", []model.Call{taskCall("once", "d1", 0), taskCall("keyed", "d2", 0)}, "Now we rest."}),
	},
	{
		name: "refused", trigger: event.TriggerRetry, point: event.PointBetween, refuses: "call-e1",
		infinite: event.InfiniteSessions{Enabled: new(false)},
		turns:    tasksAfterLongAnswer(task{"And what now?", []model.Call{taskCall("once", "e1", 0), taskCall("keyed", "e2", 0)}, "Now we rest."}),
	},
}

// compactManually drives a client that requests a compaction before the last turn,
// unless there was one.
func compactManually(ctx context.Context, c *client) error {
	last := len(c.conversation.turns) - 1
	whole := c.conversation
	c.conversation.turns = whole.turns[:last]
	log, err := c.log(ctx)
	if err != nil || !hasInput(log, whole.turns[last].prompt) {
		if err = c.drive(ctx); err != nil {
			return err
		}
		if log, err = c.log(ctx); err != nil {
			return err
		}
		if !isCompacted(log) {
			if err := c.call(ctx, api.HistoryCompact, api.CompactParams{SessionID: c.session}, nil); err != nil {
				return err
			}
		}
	} else if err = c.open(ctx); err != nil {
		return err
	}
	x := whole.turns[last]
	if err := c.send(ctx, api.SendParams{Prompt: x.prompt}); err != nil {
		return err
	}
	return c.answerUntilIdle(ctx, x)
}

// awaitCompaction waits until no compaction is under way: one in the background may
// take longer than the turn.
func (c *client) awaitCompaction(ctx context.Context) error {
	for {
		known := 0
		c.recorder.update(func() { known = c.recorder.count(c.number, event.CompactionComplete) })
		log, err := c.log(ctx)
		if err != nil || !isCompacting(log) {
			return err
		}
		err = c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.count(c.number, event.CompactionComplete) > known })
		if err != nil {
			return err
		}
	}
}

// isCompacting reports whether a compaction was begun that has not ended.
func isCompacting(log []event.Event) (open bool) {
	for _, e := range log {
		switch e.Type {
		case event.CompactionStart:
			open = true
		case event.CompactionComplete:
			open = false
		}
	}
	return open
}

// isCompacted reports whether an epoch was opened.
func isCompacted(log []event.Event) bool {
	return slices.ContainsFunc(log, func(e event.Event) bool { return e.Type == event.ContextEpoch })
}

// A taskModel makes the calls of the tasks and gives their answers. It runs in the
// parent, but its answers depend on the request alone: it knows the calls that were
// made from their results in the history, or from a summary.
type taskModel struct {
	compactionCase
	recorder *recorder

	mu            sync.Mutex
	found         []string
	refused       bool
	once          sync.Once
	turnContinued chan struct{} // closed when the turn continues during a compaction
}

// done matches the ids of calls.
var done = regexp.MustCompile(`call-[a-z][0-9]`)

func (k *taskModel) fault(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found = append(k.found, fmt.Sprintf(format, args...))
}

func (k *taskModel) faults() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.found
}

func (k *taskModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	var m window.Meter
	r := m.Read(req)
	if r.Tokens > smallWindow.Request() {
		k.fault("a request has %d tokens, %d are left: %q", r.Tokens, smallWindow.Request(), lines(req.Messages))
	}
	reply := &model.Reply{Finish: "stop", Usage: model.Usage{Input: int64(r.Tokens), Output: 10}}
	known := toldOf(req)
	if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary") {
		if err := k.awaitTurnProgress(ctx); err != nil {
			return nil, err
		}
		reply.Text = fmt.Sprintf("<overview>We have talked about the day.</overview>\n<work_done>%v</work_done>", known)
		return reply, nil
	}
	d := k.currentTask(req)
	for _, c := range d.calls {
		if !slices.Contains(known, c.ID) {
			reply.Calls, reply.Finish = []model.Call{c}, "tool_calls"
			break
		}
	}
	if len(reply.Calls) == 0 {
		reply.Text = d.answer
	}
	if err := k.delayOrRefuse(ctx, known); err != nil {
		return nil, err
	}
	return reply, nil
}

// toldOf returns the ids of the calls that a request mentions anywhere.
func toldOf(req *model.Request) []string {
	var text strings.Builder
	for _, m := range req.Messages {
		text.WriteString(m.Text + "\n")
		for _, c := range m.Calls {
			text.WriteString(string(c.Arguments) + "\n")
		}
	}
	all := done.FindAllString(text.String(), -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// currentTask returns the last task whose prompt is in the request. The prompt has to
// be there word for word.
func (k *taskModel) currentTask(req *model.Request) task {
	for _, d := range slices.Backward(k.turns) {
		for _, m := range req.Messages {
			if m.Role == model.User && strings.Contains(m.Text, d.prompt) {
				return d
			}
		}
	}
	k.fault("nothing that was asked is in the request: %q", lines(req.Messages))
	return task{}
}

// awaitTurnProgress delays a summary until the turn has continued, so that both are
// under way at the same time. The channel stays closed, so that a later victim, which
// may have no turn to continue, does not wait.
func (k *taskModel) awaitTurnProgress(ctx context.Context) error {
	if !k.slow {
		return nil
	}
	select {
	case <-k.turnContinued:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// delayOrRefuse refuses the request that is to be refused, and delays an answer until
// a compaction in the background has ended.
func (k *taskModel) delayOrRefuse(ctx context.Context, known []string) error {
	if k.refuse(known) {
		return &model.Error{Kind: model.KindOverflow, Message: "prompt is too long"}
	}
	if !k.slow || len(known) == 0 {
		return nil
	}
	k.once.Do(func() { close(k.turnContinued) })
	return k.recorder.waitUntil(ctx, nil, func() bool {
		return len(k.recorder.shown) > 1 || k.recorder.count(0, event.CompactionComplete) > 0
	})
}

// refuse reports whether this request is the one to be refused.
func (k *taskModel) refuse(known []string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuses == "" || k.refused || !slices.Contains(known, k.refuses) {
		return false
	}
	k.refused = true
	return true
}

// source makes a taskModel at the other end of a wire.
func (s compactionCase) source(t *testing.T, w *wire) (*modelSource, *taskModel) {
	k := &taskModel{compactionCase: s, turnContinued: make(chan struct{})}
	return k.at(t, w, k), k
}

// at puts the model, or one around it, at the other end of a wire.
func (k *taskModel) at(t *testing.T, w *wire, m model.Model) *modelSource {
	is := w.to(t, m, func(int) remotetest.Fault { return nil })
	is.provider.MaxOutputTokens = smallWindow.Output
	strict := is.faults
	is.faults = func() []string { return append(strict(), k.faults()...) }
	return is
}

// run prepares a run of the case.
func (s compactionCase) run(t *testing.T, w *wire) (*run, *modelSource) {
	is, k := s.source(t, w)
	return s.runWith(t, is, k), is
}

// runWith prepares a run of the case with a model.
func (s compactionCase) runWith(t *testing.T, is *modelSource, k *taskModel) *run {
	open := is.open("s")
	open.AvailableTools = []string{"pure", "keyed", "once"}
	open.Tools = nil
	open.InfiniteSessions = &s.infinite
	open.ModelCapabilities.Limits.MaxContextWindowTokens = smallWindow.Window
	var turns []exchange
	for _, d := range s.turns {
		turns = append(turns, exchange{prompt: d.prompt, answer: d.answer})
	}
	r := newRun(t, conversation{open, turns})
	drive := r.driveClient
	if s.driveClient != nil {
		drive = s.driveClient
	}
	r.driveClient = func(ctx context.Context, c *client) error {
		if err := drive(ctx, c); err != nil {
			return err
		}
		return c.awaitCompaction(ctx)
	}
	k.recorder = r.recorder
	return r
}

// judge reports every promise that was broken.
func (s compactionCase) judge(t *testing.T, w *modelSource, out outcome) {
	t.Helper()
	var want expected
	for _, d := range s.turns {
		want.answers = append(want.answers, d.answer)
	}
	c := &checker{outcome: out}
	c.compactions()
	for _, broken := range c.broken {
		t.Error(broken)
	}
	judgeRun(t, w, out, want)
	for _, d := range s.turns {
		for _, call := range d.calls {
			if !slices.ContainsFunc(out.log, func(e event.Event) bool {
				done, err := event.As[event.ToolCompleteData](e)
				return e.Type == event.ToolComplete && err == nil && done.ToolCallID == call.ID
			}) {
				t.Errorf("%s was not done", call.ID)
			}
		}
	}
}

// compactions checks that every compaction that was begun has ended once, before the
// next one, with the epoch that is current then, and that only a kill made one fail.
func (c *checker) compactions() {
	open, epoch := "", ""
	for _, e := range c.log {
		switch e.Type {
		case event.CompactionStart:
			d := as[event.CompactionStartData](c, e)
			if open != "" {
				c.fault("event %d begins a compaction while %s is open", e.Seq, open)
			}
			open = d.CompactionID
		case event.ContextEpoch:
			if open == "" {
				c.fault("event %d opens an epoch without a compaction", e.Seq)
			}
			epoch = as[event.ContextEpochData](c, e).EpochID
		case event.CompactionComplete:
			d := as[event.CompactionCompleteData](c, e)
			if open == "" || d.CompactionID != open || d.EpochID != epoch {
				c.fault("event %d ends compaction %s with epoch %q, want %q with %q", e.Seq, d.CompactionID, d.EpochID, open, epoch)
			}
			if d.Outcome == event.OutcomeFailed && d.Cause != event.CauseInterrupted {
				c.fault("event %d: a compaction failed: %s", e.Seq, d.Error)
			}
			open = ""
		}
	}
	if open != "" {
		c.fault("the compaction %s never ended", open)
	}
}

// runWithoutKill plays the case without a kill, and checks that it has the compaction
// under test.
func (s compactionCase) runWithoutKill(t *testing.T, w *wire) outcome {
	t.Helper()
	r, is := s.run(t, w)
	out := r.play()
	s.judge(t, is, out)
	begun := slices.ContainsFunc(out.log, func(e event.Event) bool {
		d, err := event.As[event.CompactionStartData](e)
		return e.Type == event.CompactionStart && err == nil && d.Trigger == s.trigger && d.Point == s.point
	})
	if !begun || !isCompacted(out.log) {
		t.Errorf("there was no compaction of the kind %s, %s", s.trigger, s.point)
		t.Log(out.describeLog())
	}
	return out
}

// writesOfCompaction returns the writes from the one that accepts the last input, or
// from the one that begins a manual compaction before it.
func (s compactionCase) writesOfCompaction(out outcome) []report {
	begins := event.InputAccepted
	if s.driveClient != nil {
		begins = event.CompactionStart
	}
	from := 0
	for i, w := range out.writes {
		if slices.Contains(w.Events, begins) {
			from = i
		}
	}
	return out.writes[from:]
}

// Each wire tests a third of the points: the wires differ in the reasoning that comes
// back, not in what is stored.
func TestKilledDuringACompactionNothingIsLostOrRepeated(t *testing.T) {
	for _, s := range compactionCases {
		for shift, w := range []*wire{chat, anthropic, responses} {
			name := []string{"chat", "anthropic", "responses"}[shift]
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				calm := s.runWithoutKill(t, w)
				for _, at := range stops(s.writesOfCompaction(calm), false, shift) {
					t.Run(at.String(), func(t *testing.T) {
						t.Parallel()
						t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
						r, is := s.run(t, w)
						s.judge(t, is, r.play(at))
					})
				}
			})
		}
	}
}

// The victim is killed some time after the event: while a summary is requested, while
// the turn continues, or between the two.
func TestKilledAtAnyEventOfACompactionNothingIsLostOrRepeated(t *testing.T) {
	for _, s := range compactionCases {
		if s.driveClient != nil {
			continue // its client waits for the compaction, and is shown no event meanwhile
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			shown := s.runWithoutKill(t, anthropic).recorder.shown[0]
			begun := slices.IndexFunc(shown, func(e event.Event) bool { return e.Type == event.CompactionStart })
			ended := slices.IndexFunc(shown, func(e event.Event) bool {
				d, err := event.As[event.CompactionCompleteData](e)
				return e.Type == event.CompactionComplete && err == nil && d.Success
			})
			for i := begun; i <= ended; i++ {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) {
					t.Parallel()
					t.Logf("the event is %s", shown[i].Type)
					r, is := s.run(t, anthropic)
					s.judge(t, is, r.play(stop{i + 1, seen}))
				})
			}
		})
	}
}

// The second victim is killed at every write of its recovery and of the rest of the
// turn.
func TestKilledAgainAfterACompactionNothingIsLostOrRepeated(t *testing.T) {
	s := compactionCases[slices.IndexFunc(compactionCases, func(s compactionCase) bool { return s.name == "between" })]
	calm := s.runWithoutKill(t, chat)
	begun := 1 + slices.IndexFunc(calm.writes, func(r report) bool {
		return slices.Contains(r.Events, event.CompactionStart) && !slices.Contains(r.Events, event.CompactionComplete)
	})
	for _, first := range []stop{{begun, committed}, {begun + 1, before}, {begun + 1, committed}} {
		r, is := s.run(t, chat)
		recovered := r.play(first)
		s.judge(t, is, recovered)
		for _, second := range stops(recovered.writes, false, first.Write) {
			t.Run(first.String()+"/"+second.String(), func(t *testing.T) {
				t.Parallel()
				r, is := s.run(t, chat)
				s.judge(t, is, r.play(first, second))
			})
		}
	}
}

// No client has to come back for that.
func TestAnInterruptedCompactionOfAnIdleSessionEndsByItself(t *testing.T) {
	t.Parallel()
	s := compactionCases[slices.IndexFunc(compactionCases, func(s compactionCase) bool { return s.name == "manual" })]
	calm := s.runWithoutKill(t, chat)
	has := func(kind event.Type) func(report) bool {
		return func(r report) bool { return slices.Contains(r.Events, kind) }
	}
	begun := 1 + slices.IndexFunc(calm.writes, has(event.CompactionStart))
	r, is := s.run(t, chat)
	if _, err := r.runUntilStop(stop{begun, committed}); err != nil {
		t.Fatal(err)
	}
	p := r.serve()
	err := r.recorder.waitUntil(r.ctx, p.dead, func() bool { return slices.ContainsFunc(r.recorder.reports, has(event.CompactionComplete)) })
	if err != nil {
		t.Fatal(r.describe(p, err))
	}
	p.kill()
	if err := p.wasKilled(); err != nil {
		t.Fatal(err)
	}
	s.judge(t, is, r.play())
}
