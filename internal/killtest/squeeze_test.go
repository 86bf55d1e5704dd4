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

// A squeeze is a talk during which the context is compacted.
type squeeze struct {
	name     string
	infinite event.InfiniteSessions
	turns    []duty
	carry    func(context.Context, *client) error // drives the talk; in the plain way if nil
	refuses  string                               // the call after which the provider once finds the request too large
	slow     bool                                 // the summary comes when the turn has gone on

	trigger, point string // of the compaction that this is about
}

// A duty is what is asked, the calls that the model makes for it, one after the
// other, and what it says in the end.
type duty struct {
	prompt string
	calls  []model.Call
	answer string
}

// The window of the squeezed, in tokens, and what is kept free for answers.
var tight = window.Limits{Window: 8000, Output: 1000}

// Shares of what a request may have.
const (
	never = 0.0
	early = 0.28
)

// long is an answer that fills a good part of the window.
var long = "It was a long day." + strings.Repeat(" Then something else happened.", 240)

func duties(first ...duty) []duty {
	return append([]duty{{prompt: "Tell me about your day.", answer: long}}, first...)
}

// task is a call whose result can be told from any other.
func task(tool, name string, size int) model.Call {
	args, _ := json.Marshal(map[string]string{"value": "call-" + name + strings.Repeat(" and so on", size/10)}) // plain data
	return model.Call{ID: "call-" + name, Name: tool, Arguments: args}
}

var squeezes = []squeeze{
	{
		name: "before", trigger: event.TriggerThreshold, point: event.PointBeforeRun,
		infinite: event.InfiniteSessions{Background: new(never), Exhaustion: new(early)},
		turns:    duties(duty{"And what now?", []model.Call{task("once", "a1", 0)}, "Now we rest."}),
	},
	{
		name: "between", trigger: event.TriggerThreshold, point: event.PointBetween,
		infinite: event.InfiniteSessions{Background: new(never), Exhaustion: new(early)},
		turns: []duty{{"Do these three things.", []model.Call{
			task("keyed", "b1", 4000), task("once", "b2", 4000), task("pure", "b3", 0),
		}, "All three are done."}},
	},
	{
		name: "manual", trigger: event.TriggerManual, point: event.PointBackground, carry: byHand,
		infinite: event.InfiniteSessions{Enabled: new(false)},
		turns:    duties(duty{"And what now?", []model.Call{task("once", "c1", 0)}, "Now we rest."}),
	},
	{
		name: "ahead", trigger: event.TriggerThreshold, point: event.PointBackground, slow: true,
		infinite: event.InfiniteSessions{Background: new(early), Exhaustion: new(1.0)},
		turns:    duties(duty{"And what now?", []model.Call{task("once", "d1", 0), task("keyed", "d2", 0)}, "Now we rest."}),
	},
	{
		name: "refused", trigger: event.TriggerRetry, point: event.PointBetween, refuses: "call-e1",
		infinite: event.InfiniteSessions{Enabled: new(false)},
		turns:    duties(duty{"And what now?", []model.Call{task("once", "e1", 0), task("keyed", "e2", 0)}, "Now we rest."}),
	},
}

// byHand asks for a compaction before the last turn, until there was one.
func byHand(ctx context.Context, c *client) error {
	last := len(c.talk.turns) - 1
	whole := c.talk
	c.talk.turns = whole.turns[:last]
	log, err := c.log(ctx)
	if err != nil || !isTaken(log, whole.turns[last].prompt) {
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
	return c.untilIdle(ctx, x)
}

// untilSettled waits until no compaction is under way: one beside the turn may take
// longer.
func (c *client) untilSettled(ctx context.Context) error {
	for {
		known := 0
		c.witness.note(func() { known = c.witness.count(c.number, event.CompactionComplete) })
		log, err := c.log(ctx)
		if err != nil || !isCompacting(log) {
			return err
		}
		err = c.witness.until(ctx, c.rpc.Done(), func() bool { return c.witness.count(c.number, event.CompactionComplete) > known })
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

// A clerk does what the duties say. It lives in the parent, but what it answers
// depends on the request alone: what it has done it knows from its results, or
// from what a summary says of them.
type clerk struct {
	squeeze
	witness *witness

	mu      sync.Mutex
	found   []string
	refused bool
	once    sync.Once
	went    chan struct{} // closed when the turn goes on beside a compaction
}

// done finds the names of calls.
var done = regexp.MustCompile(`call-[a-z][0-9]`)

func (k *clerk) fault(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found = append(k.found, fmt.Sprintf(format, args...))
}

func (k *clerk) faults() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.found
}

func (k *clerk) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	var m window.Meter
	r := m.Read(req)
	if r.Tokens > tight.Request() {
		k.fault("a request has %d tokens, %d are left: %q", r.Tokens, tight.Request(), lines(req.Messages))
	}
	reply := &model.Reply{Finish: "stop", Usage: model.Usage{Input: int64(r.Tokens), Output: 10}}
	known := toldOf(req)
	if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary") {
		if err := k.wait(ctx); err != nil {
			return nil, err
		}
		reply.Text = fmt.Sprintf("<overview>We have talked about the day.</overview>\n<work_done>%v</work_done>", known)
		return reply, nil
	}
	d := k.duty(req)
	for _, c := range d.calls {
		if !slices.Contains(known, c.ID) {
			reply.Calls, reply.Finish = []model.Call{c}, "tool_calls"
			break
		}
	}
	if len(reply.Calls) == 0 {
		reply.Text = d.answer
	}
	if err := k.hold(ctx, known); err != nil {
		return nil, err
	}
	return reply, nil
}

// toldOf returns the calls that a request tells of, one way or the other.
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

// duty is what was asked last. It has to be there in full.
func (k *clerk) duty(req *model.Request) duty {
	for _, d := range slices.Backward(k.turns) {
		for _, m := range req.Messages {
			if m.Role == model.User && strings.Contains(m.Text, d.prompt) {
				return d
			}
		}
	}
	k.fault("nothing that was asked is in the request: %q", lines(req.Messages))
	return duty{}
}

// wait lets a summary wait until the turn has gone on, so that both are under way
// at the same time. A victim that comes later is spared: it may have nothing to wait
// for.
func (k *clerk) wait(ctx context.Context) error {
	if !k.slow {
		return nil
	}
	select {
	case <-k.went:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold refuses what is to be refused, and keeps an answer back until a compaction
// beside the turn has ended.
func (k *clerk) hold(ctx context.Context, known []string) error {
	if k.refuse(known) {
		return &model.Error{Kind: model.KindOverflow, Message: "prompt is too long"}
	}
	if !k.slow || len(known) == 0 {
		return nil
	}
	k.once.Do(func() { close(k.went) })
	return k.witness.until(ctx, nil, func() bool {
		return len(k.witness.shown) > 1 || k.witness.count(0, event.CompactionComplete) > 0
	})
}

// refuse reports whether this request is the one to be refused.
func (k *clerk) refuse(known []string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuses == "" || k.refused || !slices.Contains(known, k.refuses) {
		return false
	}
	k.refused = true
	return true
}

// world has a clerk at the other end of a wire.
func (s squeeze) world(t *testing.T, w *wire) (*world, *clerk) {
	k := &clerk{squeeze: s, went: make(chan struct{})}
	is := w.to(t, k, func(int) remotetest.Fault { return nil })
	is.provider.MaxOutputTokens = tight.Output
	strict := is.faults
	is.faults = func() []string { return append(strict(), k.faults()...) }
	return is, k
}

// run prepares a run of the squeeze.
func (s squeeze) run(t *testing.T, w *wire) (*run, *world) {
	is, k := s.world(t, w)
	open := is.open("s")
	open.AvailableTools = []string{"pure", "keyed", "once"}
	open.Tools = nil
	open.InfiniteSessions = &s.infinite
	open.ModelCapabilities.Limits.MaxContextWindowTokens = tight.Window
	var turns []exchange
	for _, d := range s.turns {
		turns = append(turns, exchange{prompt: d.prompt, answer: d.answer})
	}
	r := newRun(t, talk{open, turns})
	drive := r.carry
	if s.carry != nil {
		drive = s.carry
	}
	r.carry = func(ctx context.Context, c *client) error {
		if err := drive(ctx, c); err != nil {
			return err
		}
		return c.untilSettled(ctx)
	}
	k.witness = r.witness
	return r, is
}

// judge reports every promise that was broken.
func (s squeeze) judge(t *testing.T, w *world, out outcome) {
	t.Helper()
	var want words
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

// compactions: every one that was begun has ended once, before the next, with the
// epoch that is current then; and only a dead runtime is a reason to fail.
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

// calm is a run in which nobody is killed. It has to have what the squeeze is
// about.
func (s squeeze) calm(t *testing.T, w *wire) outcome {
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
		t.Log(out.story())
	}
	return out
}

// since are the writes from the one on that accepts the last input, or begins what
// comes before it.
func (s squeeze) since(out outcome) []report {
	begins := event.InputAccepted
	if s.carry != nil {
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

// The wires share the points of each write between them: what differs is what comes
// back of thoughts, not what is stored.
func TestKilledDuringACompactionNothingIsLostOrRepeated(t *testing.T) {
	for _, s := range squeezes {
		for shift, w := range []*wire{chat, anthropic, responses} {
			name := []string{"chat", "anthropic", "responses"}[shift]
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				calm := s.calm(t, w)
				for _, at := range stops(s.since(calm), false, shift) {
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

// The blow falls somewhere near the event: while a summary is asked for, beside a
// turn that goes on, or between the two.
func TestKilledAtAnyEventOfACompactionNothingIsLostOrRepeated(t *testing.T) {
	for _, s := range squeezes {
		if s.carry != nil {
			continue // its client waits for the answer, and is shown nothing else meanwhile
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			shown := s.calm(t, anthropic).witness.shown[0]
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

// The second victim is killed at every write of its recovery, and of what follows.
func TestKilledAgainAfterACompactionNothingIsLostOrRepeated(t *testing.T) {
	s := squeezes[slices.IndexFunc(squeezes, func(s squeeze) bool { return s.name == "between" })]
	calm := s.calm(t, chat)
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

// Nobody has to come back for that.
func TestAnInterruptedCompactionOfAnIdleSessionEndsByItself(t *testing.T) {
	t.Parallel()
	s := squeezes[slices.IndexFunc(squeezes, func(s squeeze) bool { return s.name == "manual" })]
	calm := s.calm(t, chat)
	has := func(kind event.Type) func(report) bool {
		return func(r report) bool { return slices.Contains(r.Events, kind) }
	}
	begun := 1 + slices.IndexFunc(calm.writes, has(event.CompactionStart))
	r, is := s.run(t, chat)
	if _, err := r.cutShort(stop{begun, committed}); err != nil {
		t.Fatal(err)
	}
	p := r.start(stop{})
	err := r.witness.until(r.ctx, p.dead, func() bool { return slices.ContainsFunc(r.witness.reports, has(event.CompactionComplete)) })
	if err != nil {
		t.Fatal(r.stuck(p, err))
	}
	p.kill()
	if err := p.wasKilled(); err != nil {
		t.Fatal(err)
	}
	s.judge(t, is, r.play())
}
