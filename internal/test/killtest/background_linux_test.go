package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/scripted"
	"github.com/abide-run/abide/internal/tool/bash"
)

// A recordingModel records the requests to a model.
type recordingModel struct {
	model.Model
	mu    sync.Mutex
	asked []*model.Request
}

func (h *recordingModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	h.mu.Lock()
	h.asked = append(h.asked, req)
	h.mu.Unlock()
	return h.Model.Ask(ctx, req, on)
}

func (h *recordingModel) requests() []*model.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// notified is the reply to every notification of a task.
var notified = rule{"when": rule{"noticeContains": "<task-notification>"}, "reply": rule{"text": "Noted."}}

// encodeRules makes a script for the scripted model.
func encodeRules(rules ...rule) ([]byte, error) { return json.Marshal(rule{"rules": rules}) }

// commandSource makes a scripted model in the parent.
func commandSource(t *testing.T, rules ...rule) (*modelSource, *recordingModel) {
	t.Helper()
	b, err := encodeRules(append([]rule{notified}, rules...)...)
	if err != nil {
		t.Fatal(err)
	}
	played, err := scripted.Parse("commands.json", b)
	if err != nil {
		t.Fatal(err)
	}
	h := &recordingModel{Model: played}
	return chat.to(t, h, func(int) remotetest.Fault { return nil }), h
}

// openIn returns the parameters of a session whose commands run in a directory
// without asking for permission.
func (w *modelSource) openIn(id event.SessionID, y *commandDir) api.OpenParams {
	p := w.open(id)
	p.WorkingDirectory, p.Abide = y.dir, &api.OpenAbide{Approve: approval.All}
	return p
}

// notices counts the notifications of a task in a request.
func notices(req *model.Request, task string) (n int) {
	for _, m := range req.Messages {
		if m.Role == model.User {
			n += strings.Count(m.Text, "<task-id>"+task+"</task-id>")
		}
	}
	return n
}

// checkRequests checks that every task has one notification in the history, from one
// request on, and that a request that is made again has the same history.
func checkRequests(t *testing.T, requests []*model.Request, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		told := 0
		for i, req := range requests {
			if n := notices(req, task); n > 1 || n < told && len(req.Messages) >= len(requests[i-1].Messages) {
				t.Errorf("request %d tells %d times of task %s, the one before %d times", i+1, n, task, told)
			} else {
				told = n
			}
		}
		if told != 1 {
			t.Errorf("the last of %d requests tells %d times of task %s", len(requests), told, task)
		}
	}
	byLength := make(map[int]string)
	for i, req := range requests {
		history := fmt.Sprint(stable(req))
		if before, ok := byLength[len(stable(req))]; ok && before != history {
			t.Errorf("request %d was made again with another history:\n%s\nafter\n%s", i+1, history, before)
		}
		byLength[len(stable(req))] = history
	}
}

// stable returns the history of a request without its volatile tail.
func stable(req *model.Request) (all []string) {
	for i, m := range req.Messages {
		text := m.Text
		if i == len(req.Messages)-1 {
			text, _, _ = strings.Cut(text, "<system_reminder>")
			if text = strings.TrimSpace(text); text == "" && m.Role == model.User {
				continue
			}
		}
		all = append(all, fmt.Sprint(m.Role, m.CallID, m.Calls, text))
	}
	return all
}

// awaitNotifications waits until the log has n notifications and the session is idle.
func (c *client) awaitNotifications(ctx context.Context, n int) error {
	for {
		var known int
		c.recorder.update(func() { known = c.recorder.count(c.number, event.SessionIdle) })
		log, err := c.log(ctx)
		if err != nil {
			return err
		}
		var r api.StatusResult
		if err := c.call(ctx, api.Status, api.SessionParams{SessionID: c.session}, &r); err != nil {
			return err
		}
		if told := countKind(log, event.SystemNotification); told >= n && !r.Active {
			return nil
		}
		err = c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.count(c.number, event.SessionIdle) > known })
		if err != nil {
			return fmt.Errorf("%d notifications: %w", n, err)
		}
	}
}

func countKind(log []event.Event, kind event.Type) (n int) {
	for _, e := range log {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// tasks asks for all commands of the session.
func (c *client) tasks(ctx context.Context) (map[string]api.Task, error) {
	var r api.TasksResult
	err := c.call(ctx, api.Tasks, api.TasksParams{SessionID: c.session, All: true}, &r)
	all := make(map[string]api.Task)
	for _, t := range r.Tasks {
		all[t.TaskID] = t
	}
	if len(all) != len(r.Tasks) {
		err = errors.Join(err, fmt.Errorf("%d commands have %d names", len(r.Tasks), len(all)))
	}
	return all, err
}

// output reads the whole output of a command, until it ends.
func (c *client) output(ctx context.Context, task string) ([]byte, error) {
	var all []byte
	for p := (api.TaskOutputParams{SessionID: c.session, TaskID: task, Wait: true}); ; {
		var r api.TaskOutputResult
		if err := c.call(ctx, api.TaskOutput, p, &r); err != nil {
			return nil, err
		}
		if r.Omitted > 0 {
			return nil, fmt.Errorf("%d bytes of %s were not kept", r.Omitted, task)
		}
		if all = append(all, r.Data...); r.End {
			return all, nil
		}
		p.Offset = r.Next
	}
}

// A backgroundCommand is a turn that starts a command which outlives the turn.
type backgroundCommand struct {
	name      string
	arguments rule   // further arguments of the call
	interrupt bool   // the call is interrupted when the command runs
	input     string // text that the model writes to the command in another turn
	status    string
	answers   []string
}

var backgroundCommands = []backgroundCommand{
	{name: "background", arguments: rule{"mode": "async"}, status: bash.StatusStarted, answers: []string{"It runs.", "Noted."}},
	{name: "flipped", arguments: rule{"initial_wait": 0.1}, status: bash.StatusAutoBackgrounded, answers: []string{"It runs.", "Noted."}},
	{name: "left", arguments: rule{"initial_wait": 600}, interrupt: true, answers: []string{"It is left alone.", "Noted."}},
	{name: "spoken to", arguments: rule{"mode": "async", "stdin": true}, input: "one\n", status: bash.StatusStarted, answers: []string{"It runs.", "It was told.", "Noted."}},
}

// script returns what the command does: it prints the line that it reads, and prints
// more if there is more input.
func (e backgroundCommand) script() string {
	if e.input == "" {
		return "echo first; GATE; echo last; exit 3"
	}
	return `echo first; read a; echo "got $a"; GATE; bash -c "read -t 0" && echo "and more"; echo last; exit 3`
}

// output returns what the command prints.
func (e backgroundCommand) output() string {
	if e.input == "" {
		return "first\nlast\n"
	}
	return "first\ngot " + e.input + "last\n"
}

const (
	startJobPrompt = "Start the job"
	leavePrompt    = "Leave it alone"
	writePrompt    = "Tell it"
)

// A backgroundRun is a run of a backgroundCommand, over any number of victims.
type backgroundRun struct {
	*run
	command backgroundCommand
	keepers *keeperWatch
	dir     *commandDir
	source  *modelSource
	model   *recordingModel
	started bool
	opened  bool
}

func newBackgroundRun(t *testing.T, v *keeperWatch, e backgroundCommand) *backgroundRun {
	y := newCommandDir(t)
	call := rule{"command": y.command("job", e.script()), "description": "The job", "shellId": "job"}
	for key, value := range e.arguments {
		call[key] = value
	}
	w, h := commandSource(t,
		rule{"when": rule{"user": startJobPrompt, "step": 1}, "reply": rule{"calls": []rule{{"tool": "bash", "arguments": call}}}},
		rule{"when": rule{"user": writePrompt, "step": 1}, "reply": rule{"calls": []rule{{"tool": "write_bash", "arguments": rule{"shellId": "job", "input": e.input}}}}},
		text(startJobPrompt, "It runs."), text(leavePrompt, "It is left alone."), text(writePrompt, "It was told."))
	r := &backgroundRun{run: newRun(t, conversation{open: w.openIn("s", y)}), command: e, keepers: v, dir: y, source: w, model: h}
	r.run.driveClient = r.drive
	return r
}

// drive asks for the command and waits for its end.
func (r *backgroundRun) drive(ctx context.Context, c *client) error {
	if err := r.begin(ctx, c); err != nil {
		return err
	}
	return r.end(ctx, c)
}

// begin opens the session and sends the prompt that starts the command.
func (r *backgroundRun) begin(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	return c.send(ctx, api.SendParams{Prompt: startJobPrompt})
}

// end lets the command end when the turn that started it is over, and waits until
// the model is notified.
func (r *backgroundRun) end(ctx context.Context, c *client) error {
	if r.command.interrupt {
		if err := r.awaitStarted(ctx, c.rpc.Done()); err != nil {
			return err
		}
		if err := c.send(ctx, api.SendParams{Prompt: leavePrompt, Mode: event.ModeInterrupt}); err != nil {
			return err
		}
	}
	if err := c.answerUntilIdle(ctx, exchange{}); err != nil {
		return err
	}
	if r.command.input != "" {
		if err := c.send(ctx, api.SendParams{Prompt: writePrompt}); err != nil {
			return err
		}
		if err := c.answerUntilIdle(ctx, exchange{}); err != nil {
			return err
		}
	}
	if !r.opened {
		r.opened = true
		r.dir.openGate("job")
	}
	return c.awaitNotifications(ctx, 1)
}

// awaitStarted waits until the command runs, or the victim is dead.
func (r *backgroundRun) awaitStarted(ctx context.Context, dead <-chan struct{}) error {
	if r.started {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-dead:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := r.dir.awaitStarted(ctx, 1)
	if r.started = err == nil; r.started {
		return nil
	}
	select {
	case <-dead:
		return errDied
	default:
		return err
	}
}

// judge reports every promise that was broken.
func (r *backgroundRun) judge(out outcome) {
	t := r.t
	t.Helper()
	for _, broken := range append(out.checkLog(), r.source.faults()...) {
		t.Error(broken)
	}
	if n := r.dir.runs("job"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if got := out.answers(); !slices.Equal(got, r.command.answers) {
		t.Errorf("the answers are %q, want %q", got, r.command.answers)
	}
	if results := out.results(t); (len(results) == 0) != r.command.interrupt || !r.command.interrupt && results[0].Status != r.command.status {
		t.Errorf("the call came to %+v, want %s", results, r.command.status)
	}
	for kind, want := range map[event.Type]int{event.TaskStarted: 1, event.TaskReported: 1, event.SystemNotification: 1} {
		if n := countKind(out.log, kind); n != want {
			t.Errorf("there are %d events %s, want %d", n, kind, want)
		}
	}
	if text := out.notification(t); !strings.Contains(text, "<exit-code>3</exit-code>") || !strings.Contains(text, "<output-tail>\n"+r.command.output()+"</output-tail>") {
		t.Errorf("the model was notified with %q", text)
	}
	checkRequests(t, r.model.requests(), "job")
	r.keepers.checkNothingLeft(t, r.instructions.Dir)
	if t.Failed() {
		t.Log(out.describeLog())
	}
}

// bodies returns the bodies of the events of a kind.
func bodies[T any](t *testing.T, o outcome, kind event.Type) (all []T) {
	t.Helper()
	for _, e := range o.log {
		if e.Type != kind {
			continue
		}
		d, err := event.As[T](e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// results returns the results of calls that are about commands.
func (o outcome) results(t *testing.T) (all []bash.Result) {
	t.Helper()
	for _, d := range bodies[event.ToolCompleteData](t, o, event.ToolComplete) {
		if d.Result != nil {
			all = append(all, bash.Results(d.Result.Contents)...)
		}
	}
	return all
}

// notification returns the last notification of the model.
func (o outcome) notification(t *testing.T) (text string) {
	t.Helper()
	for _, d := range bodies[event.SystemNotificationData](t, o, event.SystemNotification) {
		text = d.Content
	}
	return text
}

// runWithoutKill runs a backgroundCommand without a kill.
func runWithoutKill(t *testing.T, v *keeperWatch, e backgroundCommand) outcome {
	t.Helper()
	r := newBackgroundRun(t, v, e)
	out := r.play()
	r.judge(out)
	return out
}

// fromBegun returns the writes from the one that begins the last call.
func fromBegun(writes []report) []report {
	for i, w := range slices.Backward(writes) {
		if slices.Contains(w.Events, event.ToolBegun) {
			return writes[i:]
		}
	}
	return nil
}

// A command runs once or not at all, and the model is notified of its end once,
// wherever the engine is killed: after the call was begun, after its process started
// and before that is stored, afterwards, after the end is stored, and while the model
// is notified.
func TestKilledAtAnyWriteOfACommandItRunsOnceAndIsToldOnce(t *testing.T) {
	v := newKeeperWatch(t)
	for i, e := range backgroundCommands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			calm := runWithoutKill(t, v, e)
			for _, at := range stops(fromBegun(calm.writes), i == 0 || e.input != "", i) {
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
					r := newBackgroundRun(t, v, e)
					r.judge(r.play(at))
				})
			}
		})
	}
}

// The second victim is killed at each write of its recovery.
func TestKilledAgainDuringTheRecoveryOfACommandItRunsOnceAndIsToldOnce(t *testing.T) {
	t.Parallel()
	v, e := newKeeperWatch(t), backgroundCommands[0]
	calm := fromBegun(runWithoutKill(t, v, e).writes)
	reported := calm[slices.IndexFunc(calm, func(r report) bool { return slices.Contains(r.Events, event.TaskReported) })].Write
	begun := calm[0].Write
	for shift, first := range []stop{{begun, committed}, {begun + 1, before}, {reported, before}, {reported, committed}} {
		r := newBackgroundRun(t, v, e)
		recovered := r.play(first)
		r.judge(recovered)
		for _, second := range stops(recovered.writes, false, shift) {
			t.Run(fmt.Sprintf("%s/%s", first, second), func(t *testing.T) {
				t.Parallel()
				r := newBackgroundRun(t, v, e)
				r.judge(r.play(first, second))
			})
		}
	}
}

// The engine is killed when the process runs, perhaps before that is stored.
func TestKilledAsSoonAsACommandRunsItRunsOnceAndIsToldOnce(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	for _, e := range backgroundCommands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := newBackgroundRun(t, v, e)
			p := r.start(stop{})
			c, err := connect(r.ctx, stdio{p}, r.recorder, r.conversation)
			defer c.close()
			if err == nil {
				err = r.begin(r.ctx, c)
			}
			if err == nil {
				err = r.awaitStarted(r.ctx, p.dead)
			}
			if err != nil {
				t.Fatal(r.describe(p, err))
			}
			p.kill()
			if err := p.wasKilled(); err != nil {
				t.Fatal(err)
			}
			r.judge(r.play())
		})
	}
}

// A relay takes over when the engine is killed, and its client gets no error.
func TestARelayTakesOverTheCommandsOfTheEngine(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	for _, e := range backgroundCommands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := newBackgroundRun(t, v, e)
			engine := startEngine(t, func(told func(report)) *process { return start(t, r.instructions, told) })
			relay := r.start(stop{})
			c, err := connect(r.ctx, stdio{relay}, r.recorder, r.conversation)
			defer c.close()
			if err != nil {
				t.Fatal(r.describe(relay, err))
			}
			if err := r.begin(r.ctx, c); err != nil {
				t.Fatal(r.describe(relay, err))
			}
			if err := r.awaitStarted(r.ctx, relay.dead); err != nil {
				t.Fatal(r.describe(relay, err))
			}
			engine.kill()
			if err := engine.wasKilled(); err != nil {
				t.Fatal(err)
			}
			if err := r.end(r.ctx, c); err != nil {
				t.Fatal(r.describe(relay, err))
			}
			out, err := r.collect(c)
			if err != nil {
				t.Fatal(r.describe(relay, err))
			}
			c.close()
			if err := relay.leave(); err != nil {
				t.Error(err)
			}
			r.judge(out)
		})
	}
}
