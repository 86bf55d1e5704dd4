package killtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/scripted"
)

const (
	workPrompt   = "Do the work"
	agentPrompt  = "Do it for me"
	queuedPrompt = "And then this"
	thinkPrompt  = "Think about it"
	restPrompt   = "Begin the work and leave it"
)

// A work is a turn that a person stops.
type work struct {
	name   string
	prompt string
	queued string // a second prompt, which waits when the turn is stopped
	runs   bool   // the turn runs the command
	rests  bool   // the command runs in the background, and the session rests when it is stopped
}

// holds reports whether the person stops the session as Ctrl-C and abide stop do.
func (w work) holds() bool { return w.queued != "" || w.rests }

var works = []work{
	{name: "command", prompt: workPrompt, runs: true},
	{name: "queue", prompt: workPrompt, queued: queuedPrompt, runs: true},
	{name: "agent", prompt: "Delegate the work", runs: true},
	{name: "model", prompt: thinkPrompt},
	{name: "rest", prompt: restPrompt, runs: true, rests: true},
}

// beat is a command that works until it is ended, or for some minutes. It writes to the
// pipe of the commands when it gets SIGINT, and goes on: SIGTERM ends it.
const beat = `trap 'echo int >calls' INT; for i in $(seq 5000); do echo x >>beats; sleep 0.05; done`

// A thinkingModel never answers thinkPrompt.
type thinkingModel struct {
	model.Model
	asked chan struct{} // gets a token for each such request
}

func (m *thinkingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == model.User && strings.Contains(last.Text, thinkPrompt) {
		m.asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Model.Ask(ctx, req, on)
}

// A stopRun is a run in which a person stops the turn.
type stopRun struct {
	*run
	work    work
	keepers *keeperWatch
	dir     *commandDir
	source  *modelSource
	model   *recordingModel
	asked   chan struct{}
}

func newStopRun(t *testing.T, v *keeperWatch, w work) *stopRun {
	t.Helper()
	y := newCommandDir(t)
	bash := rule{"tool": "bash", "arguments": rule{"command": y.command("job", beat), "description": "The job", "shellId": "job", "initial_wait": 600}}
	leave := rule{"tool": "bash", "arguments": rule{"command": y.command("job", beat), "description": "The job", "shellId": "job", "mode": "async"}}
	task := rule{"tool": "task", "arguments": rule{"description": "d", "prompt": agentPrompt, "agent_type": "task", "name": "n"}}
	b, err := encodeRules(
		rule{"when": rule{"user": workPrompt, "step": 1}, "reply": rule{"calls": []rule{bash}}},
		rule{"when": rule{"user": agentPrompt, "step": 1}, "reply": rule{"calls": []rule{bash}}},
		rule{"when": rule{"user": "Delegate the work", "step": 1}, "reply": rule{"calls": []rule{task}}},
		rule{"when": rule{"user": restPrompt, "step": 1}, "reply": rule{"calls": []rule{leave}}},
		rule{"reply": rule{"text": "Said."}})
	if err != nil {
		t.Fatal(err)
	}
	played, err := scripted.Parse("stop.json", b)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 64)
	h := &recordingModel{Model: &thinkingModel{played, asked}}
	source := chat.to(t, h, func(int) remotetest.Fault { return nil })
	return &stopRun{
		run: newRun(t, conversation{open: source.openIn("s", y)}), work: w, keepers: v, dir: y, source: source, model: h, asked: asked,
	}
}

// begin opens the session and sends the prompts.
func (r *stopRun) begin(c *client) error {
	if err := c.open(r.ctx); err != nil {
		return err
	}
	if err := c.send(r.ctx, api.SendParams{Prompt: r.work.prompt}); err != nil || r.work.queued == "" {
		return err
	}
	return c.send(r.ctx, api.SendParams{Prompt: r.work.queued})
}

// awaitWork waits until the turn has come as far as it gets: its command runs, or the
// model thinks, or the turn is over and its command runs on.
func (r *stopRun) awaitWork(c *client) error {
	if r.work.runs {
		if err := r.dir.awaitStarted(r.ctx, 1); err != nil || !r.work.rests {
			return err
		}
		return c.answerUntilIdle(r.ctx, exchange{})
	}
	select {
	case <-r.asked:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// abort stops the turn, as Ctrl-C does if something waits in the queue or nothing is
// under way.
func (r *stopRun) abort(c *client) error {
	return c.call(r.ctx, api.SessionAbort, api.AbortParams{SessionID: c.session, KeepQueue: r.work.holds()}, nil)
}

// A kill is the moment of the stopping at which the engine is killed.
type kill string

const (
	beforeStored  kill = "before"    // the abort is not stored
	whenStored    kill = "committed" // the abort is stored, and nothing was done about it
	whenSignalled kill = "signalled" // the command has its first signal, or the abort is acknowledged
	whenAnswered  kill = "answered"  // the abort is acknowledged
)

var kills = []kill{beforeStored, whenStored, whenSignalled, whenAnswered}

// working stands for the number of events that a client is shown until the turn has
// come as far as it gets.
const working = -1

// stopAndKill begins the turn, stops it when the client was shown a number of events, and
// kills the engine during the stopping. It reports whether the abort was acknowledged.
func (r *stopRun) stopAndKill(events int, k kill) (acknowledged bool) {
	r.t.Helper()
	o := r.instructions
	if k == beforeStored || k == whenStored {
		o.On = kindStop{Kind: event.Abort, Point: point(k)}
	}
	p := start(r.t, o, r.recorder.recordReport)
	first := len(r.recorder.shown)
	c, err := connect(r.ctx, stdio{p}, r.recorder, r.conversation)
	defer c.close()
	if err == nil {
		err = r.begin(c)
	}
	if err == nil {
		err = r.recorder.waitUntil(r.ctx, c.rpc.Done(), func() bool { return r.recorder.countShown(first) >= events })
	}
	lines := 2 // number of lines that the command writes until it has a signal
	if events == working && err == nil {
		err, lines = r.awaitWork(c), 1
	}
	if err != nil {
		r.t.Fatal(r.describe(p, err))
	}
	if k == whenSignalled {
		answered, watched := make(chan struct{}), make(chan struct{})
		go func() { defer close(watched); r.killWhenSignalled(p, lines, answered) }()
		err = r.abort(c)
		close(answered)
		<-watched
	} else {
		err = r.abort(c)
	}
	p.kill()
	if err != nil && !errors.Is(err, errDied) {
		r.t.Fatal(err)
	}
	if err := p.wasKilled(); err != nil {
		r.t.Fatal(err)
	}
	return err == nil
}

// killWhenSignalled kills the engine when the command has written a number of lines: the
// last one tells of SIGINT.
func (r *stopRun) killWhenSignalled(p *process, lines int, answered <-chan struct{}) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	go func() { <-answered; cancel() }() // ends when the abort is answered or has failed
	if r.dir.awaitStarted(ctx, lines) == nil {
		p.kill()
	}
}

// requests counts what the model was asked.
func (r *stopRun) requests() int { return len(r.model.requests()) }

// A form is one of the forms in which an engine is started.
type form struct {
	name  string
	start func(r *stopRun)
}

var forms = []form{
	{"run", func(r *stopRun) { r.probe() }},
	{"serve", func(r *stopRun) {
		leads := make(chan struct{})
		o := r.instructions
		o.Args = []string{"serve"}
		p := start(r.t, o, func(report report) {
			if report.Engine {
				close(leads)
			}
		})
		<-leads
		r.probe()
		p.kill()
		<-p.dead
	}},
	{"stdio", func(r *stopRun) {
		p := start(r.t, r.instructions, ignoreReport)
		r.ask(p, "other", r.other())
		if err := p.leave(); err != nil {
			r.t.Error(err)
		}
	}},
	{"takeover", func(r *stopRun) {
		engine := startEngine(r.t, func(told func(report)) *process { return start(r.t, r.instructions, told) })
		relay := start(r.t, r.instructions, ignoreReport)
		c, err := connect(r.ctx, stdio{relay}, newRecorder(), r.other())
		defer c.close()
		if err == nil {
			err = c.open(r.ctx)
		}
		engine.kill()
		<-engine.dead
		if err == nil {
			err = c.drive(r.ctx)
		}
		if err != nil {
			r.t.Error(r.describe(relay, err))
		}
		c.close()
		if err := relay.leave(); err != nil {
			r.t.Error(err)
		}
	}},
}

// other is a conversation with another session.
func (r *stopRun) other() conversation {
	return conversation{open: api.OpenParams{SessionID: event.SessionID(event.NewID()), Model: "offline"}, turns: []exchange{{prompt: nextPrompt}}}
}

// ask drives a client of a victim through a conversation.
func (r *stopRun) ask(p *process, name string, talk conversation) {
	r.t.Helper()
	c, err := connect(r.ctx, stdio{p}, newRecorder(), talk)
	defer c.close()
	if err == nil {
		err = c.drive(r.ctx)
	}
	if err != nil {
		r.t.Fatal(name, r.describe(p, err))
	}
}

// probe uses the program for something else, in another folder.
func (r *stopRun) probe() {
	r.t.Helper()
	o := r.instructions
	o.Args = []string{"run", "--model", "offline", nextPrompt}
	p := start(r.t, o, ignoreReport, func(cmd *exec.Cmd) { cmd.Dir = r.t.TempDir() })
	p.in.Close()
	<-p.dead
	if !p.cmd.ProcessState.Success() {
		r.t.Error(p.endError("abide run failed"))
	}
}

// checkStopped starts an engine in a form and checks that what was stopped stays
// stopped: no request is made, the command has ended or ends, and it is not run again.
func (r *stopRun) checkStopped(f form) {
	r.t.Helper()
	r.source.settle()
	asked := r.requests()
	if r.work.rests { // its end is news, which comes while no engine is there
		r.endJob()
	}
	f.start(r)
	r.awaitJob()
	beats := r.beats()
	r.probe()
	if n := r.requests() - asked; n != 0 {
		r.t.Errorf("%d requests were made after the turn was stopped", n)
	}
	if n := r.dir.runs("job"); n > 1 {
		r.t.Errorf("the command was run %d times", n)
	}
	if n := r.beats(); n != beats {
		r.t.Errorf("the command worked %d times after it was stopped", n-beats)
	}
	r.audit()
}

// endJob ends the command that runs in the background.
func (r *stopRun) endJob() {
	r.t.Helper()
	for _, pid := range r.dir.pids("job") {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			r.t.Fatal(err)
		}
	}
	r.awaitJob()
}

// awaitJob waits until the command has ended.
func (r *stopRun) awaitJob() {
	r.t.Helper()
	for _, pid := range r.dir.pids("job") {
		if err := exited(r.ctx, pid); err != nil {
			r.t.Errorf("the command %d runs on: %v", pid, err)
		}
	}
}

func (r *stopRun) beats() int {
	b, err := os.ReadFile(filepath.Join(r.dir.dir, "beats"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// speak continues the session with another prompt, and checks the log.
func (r *stopRun) speak() {
	r.t.Helper()
	r.driveClient = func(ctx context.Context, c *client) error {
		if err := c.open(ctx); err != nil {
			return err
		}
		if err := c.continueAfterwards(ctx); err != nil {
			return err
		}
		return c.awaitReports(ctx)
	}
	out, err := r.finish()
	if err != nil {
		r.t.Fatal(err)
	}
	check := &checker{outcome: out}
	for _, promise := range []func(){check.chain, check.envelopes, check.acknowledged, check.calls, check.atRest} {
		promise()
	}
	for _, broken := range append(check.broken, r.source.faults()...) {
		r.t.Error(broken)
	}
	answers := out.answers()
	if len(answers) == 0 || answers[len(answers)-1] != "Said." {
		r.t.Errorf("the answers are %q", answers)
	}
	if r.work.queued != "" && !slices.Contains(deliveredPrompts(r.t, out.log), r.work.queued) {
		r.t.Error("what waited in the queue is lost")
	}
	if n := r.dir.runs("job"); n > 1 {
		r.t.Errorf("the command was run %d times", n)
	}
	r.keepers.checkNothingLeft(r.t, r.instructions.Dir)
	if r.t.Failed() {
		r.t.Log(out.describeLog())
	}
}

// awaitReports waits until the end of every task is in the log, so that nothing is
// appended any more.
func (c *client) awaitReports(ctx context.Context) error {
	for {
		var known int
		c.recorder.update(func() { known = c.recorder.countShown(0) })
		log, err := c.log(ctx)
		if err != nil || countKind(log, event.TaskReported) >= countKind(log, event.TaskStarted) {
			return err
		}
		if err := c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.countShown(0) > known }); err != nil {
			return err
		}
	}
}

func deliveredPrompts(t *testing.T, log []event.Event) (prompts []string) {
	t.Helper()
	for _, e := range log {
		if e.Type == event.UserMessage {
			d, err := event.As[event.UserMessageData](e)
			if err != nil {
				t.Fatal(err)
			}
			prompts = append(prompts, d.Content)
		}
	}
	return prompts
}

// eventsUntilWork counts the events that a client is shown until the turn begins, and
// until the turn has come as far as it gets.
func eventsUntilWork(t *testing.T, v *keeperWatch, w work) (opened, worked int) {
	t.Helper()
	r := newStopRun(t, v, w)
	p := r.start(stop{})
	c, err := connect(r.ctx, stdio{p}, r.recorder, r.conversation)
	defer c.close()
	if err == nil {
		err = r.begin(c)
	}
	if err == nil {
		err = r.awaitWork(c)
	}
	if err == nil { // the events so far come before the answer
		err = c.call(r.ctx, api.Status, api.SessionParams{SessionID: c.session}, nil)
	}
	r.recorder.update(func() {
		opened = slices.IndexFunc(r.recorder.shown[0], func(e event.Event) bool { return e.Type == event.UserMessage })
		worked = r.recorder.countShown(0)
	})
	if err == nil {
		err = r.abort(c)
	}
	if err != nil {
		t.Fatal(r.describe(p, err))
	}
	p.kill()
	<-p.dead
	r.checkStopped(forms[0])
	r.speak()
	return opened, worked
}

// A person stops the turn at any event, and the engine is killed at any moment of the
// stopping. Whatever is started next: what was stopped stays stopped until somebody
// speaks. At each event one moment of the stopping is tried, another one for each turn; all
// of them where the turn has come as far as it gets, and everywhere with ABIDE_SOAK.
func TestWhatWasStoppedStaysStopped(t *testing.T) {
	v := newKeeperWatch(t)
	for shift, w := range works {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			opened, worked := eventsUntilWork(t, v, w)
			if worked-opened < 3 {
				t.Fatalf("the turn shows only the events %d to %d", opened, worked)
			}
			moments := []int{working}
			for n := opened + 1; n <= worked; n++ {
				moments = append(moments, n)
			}
			for turn, n := range moments {
				for i, k := range kills {
					if n != working && i != (turn+shift)%len(kills) && os.Getenv("ABIDE_SOAK") == "" {
						continue
					}
					f := forms[(turn+turn/len(kills)+i+shift)%len(forms)]
					t.Run(fmt.Sprintf("%d/%s/%s", n, k, f.name), func(t *testing.T) {
						t.Parallel()
						r := newStopRun(t, v, w)
						if !r.stopAndKill(n, k) && k == beforeStored {
							r.stopAndKill(0, whenAnswered) // nothing is known of the first attempt, so the person tries again
						}
						r.checkStopped(f)
						r.speak()
					})
				}
			}
		})
	}
}

// The turn is stopped by a client of a relay, and the engine is killed during the
// stopping. The relay takes over, and the client gets its answer.
func TestARelayFinishesTheStopping(t *testing.T) {
	v := newKeeperWatch(t)
	for _, w := range works {
		for _, k := range []kill{beforeStored, whenStored} {
			t.Run(w.name+"/"+string(k), func(t *testing.T) {
				t.Parallel()
				r := newStopRun(t, v, w)
				o := r.instructions
				o.On = kindStop{Kind: event.Abort, Point: point(k)}
				engine := startEngine(t, func(told func(report)) *process { return start(t, o, told) })
				relay := r.start(stop{})
				c, err := connect(r.ctx, stdio{relay}, r.recorder, r.conversation)
				defer c.close()
				if err == nil {
					err = r.begin(c)
				}
				if err == nil {
					err = r.awaitWork(c)
				}
				if err == nil {
					err = r.abort(c)
				}
				if err != nil {
					t.Fatal(r.describe(relay, err))
				}
				if err := engine.wasKilled(); err != nil {
					t.Error(err)
				}
				asked := r.requests()
				if w.rests { // its end is news
					r.endJob()
				}
				beats := r.beats()
				r.probe()
				if r.beats() != beats || r.requests() != asked {
					t.Errorf("after the answer the command worked %d times and %d requests were made", r.beats()-beats, r.requests()-asked)
				}
				c.close()
				relay.kill()
				<-relay.dead
				r.checkStopped(forms[len(strconv.Quote(w.name))%len(forms)])
				r.speak()
			})
		}
	}
}
