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

// A hearer writes down what a model is told.
type hearer struct {
	model.Model
	mu    sync.Mutex
	heard []*model.Request
}

func (h *hearer) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	h.mu.Lock()
	h.heard = append(h.heard, req)
	h.mu.Unlock()
	return h.Model.Ask(ctx, req, on)
}

func (h *hearer) requests() []*model.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// notified is the rule for whatever a model is notified of.
var notified = rule{"when": rule{"noticeContains": "<task-notification>"}, "reply": rule{"text": "Noted."}}

// commandWorld has a model in the parent that plays some rules.
func commandWorld(t *testing.T, rules ...rule) (*world, *hearer) {
	t.Helper()
	b, err := json.Marshal(rule{"rules": append([]rule{notified}, rules...)})
	if err != nil {
		t.Fatal(err)
	}
	played, err := scripted.Parse("commands.json", b)
	if err != nil {
		t.Fatal(err)
	}
	h := &hearer{Model: played}
	return chat.to(t, h, func(int) remotetest.Fault { return nil }), h
}

// openIn is a session whose commands run in a yard without asking.
func (w *world) openIn(id event.SessionID, y *yard) api.OpenParams {
	p := w.open(id)
	p.WorkingDirectory, p.Abide = y.dir, &api.OpenAbide{Approve: approval.All}
	return p
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

// checkRequests: a model is told of every task once, in that request and in all
// that follow; and a request that is made again has the same history.
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

// stable is a request without its volatile tail.
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

// untilTold waits until the log has so many notifications, and nothing is left
// to do.
func (c *client) untilTold(ctx context.Context, n int) error {
	for {
		var known int
		c.witness.note(func() { known = c.witness.count(c.number, event.SessionIdle) })
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
		err = c.witness.until(ctx, c.rpc.Done(), func() bool { return c.witness.count(c.number, event.SessionIdle) > known })
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

// output reads all that a command has printed, to its end.
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

// checkLog checks what is promised of every log.
func (o outcome) checkLog() []string {
	c := &checker{outcome: o}
	c.chain()
	c.envelopes()
	c.acknowledged()
	for _, events := range o.witness.shown {
		c.shown(events)
	}
	c.inputs()
	c.steps()
	c.calls()
	c.atRest()
	return c.broken
}

// An errand is a turn that starts a command which goes on without it.
type errand struct {
	name    string
	how     rule   // further arguments of the call
	leave   bool   // the call is interrupted when the command runs
	speak   string // what the model writes to the command in another turn
	status  string
	answers []string
}

var errands = []errand{
	{name: "background", how: rule{"mode": "async"}, status: bash.StatusStarted, answers: []string{"It runs.", "Noted."}},
	{name: "flipped", how: rule{"initial_wait": 0.1}, status: bash.StatusAutoBackgrounded, answers: []string{"It runs.", "Noted."}},
	{name: "left", how: rule{"initial_wait": 600}, leave: true, answers: []string{"It is left alone.", "Noted."}},
	{name: "spoken to", how: rule{"mode": "async", "stdin": true}, speak: "one\n", status: bash.StatusStarted, answers: []string{"It runs.", "It was told.", "Noted."}},
}

// job is what the command does: it tells what it reads, and says so if it could
// read more.
func (e errand) job() string {
	if e.speak == "" {
		return "echo first; GATE; echo last; exit 3"
	}
	return `echo first; read a; echo "got $a"; GATE; bash -c "read -t 0" && echo "and more"; echo last; exit 3`
}

// output is what it prints.
func (e errand) output() string {
	if e.speak == "" {
		return "first\nlast\n"
	}
	return "first\ngot " + e.speak + "last\n"
}

const (
	errandPrompt = "Start the job"
	leavePrompt  = "Leave it alone"
	writePrompt  = "Tell it"
)

// An errandRun is a run of an errand, over any number of victims.
type errandRun struct {
	*run
	errand errand
	vigil  *vigil
	yard   *yard
	world  *world
	hearer *hearer
	heard  bool
	opened bool
}

func newErrandRun(t *testing.T, v *vigil, e errand) *errandRun {
	y := newYard(t)
	call := rule{"command": y.command("job", e.job()), "description": "The job", "shellId": "job"}
	for key, value := range e.how {
		call[key] = value
	}
	w, h := commandWorld(t,
		rule{"when": rule{"user": errandPrompt, "step": 1}, "reply": rule{"calls": []rule{{"tool": "bash", "arguments": call}}}},
		rule{"when": rule{"user": writePrompt, "step": 1}, "reply": rule{"calls": []rule{{"tool": "write_bash", "arguments": rule{"shellId": "job", "input": e.speak}}}}},
		text(errandPrompt, "It runs."), text(leavePrompt, "It is left alone."), text(writePrompt, "It was told."))
	r := &errandRun{run: newRun(t, talk{open: w.openIn("s", y)}), errand: e, vigil: v, yard: y, world: w, hearer: h}
	r.run.carry = r.carry
	return r
}

// carry brings the errand to its end.
func (r *errandRun) carry(ctx context.Context, c *client) error {
	if err := r.begin(ctx, c); err != nil {
		return err
	}
	return r.end(ctx, c)
}

// begin asks for the command.
func (r *errandRun) begin(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	return c.send(ctx, api.SendParams{Prompt: errandPrompt})
}

// end lets the command end when the turn that started it is over.
func (r *errandRun) end(ctx context.Context, c *client) error {
	if r.errand.leave {
		if err := r.hear(ctx, c.rpc.Done()); err != nil {
			return err
		}
		if err := c.send(ctx, api.SendParams{Prompt: leavePrompt, Mode: event.ModeInterrupt}); err != nil {
			return err
		}
	}
	if err := c.untilIdle(ctx, exchange{}); err != nil {
		return err
	}
	if r.errand.speak != "" {
		if err := c.send(ctx, api.SendParams{Prompt: writePrompt}); err != nil {
			return err
		}
		if err := c.untilIdle(ctx, exchange{}); err != nil {
			return err
		}
	}
	if !r.opened {
		r.opened = true
		r.yard.let("job")
	}
	return c.untilTold(ctx, 1)
}

// hear waits until the command runs, or the victim is dead.
func (r *errandRun) hear(ctx context.Context, dead <-chan struct{}) error {
	if r.heard {
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
	err := r.yard.hear(ctx, 1)
	if r.heard = err == nil; r.heard {
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
func (r *errandRun) judge(out outcome) {
	t := r.t
	t.Helper()
	for _, broken := range append(out.checkLog(), r.world.faults()...) {
		t.Error(broken)
	}
	if n := r.yard.runs("job"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if got := out.answers(); !slices.Equal(got, r.errand.answers) {
		t.Errorf("the answers are %q, want %q", got, r.errand.answers)
	}
	if results := out.results(t); (len(results) == 0) != r.errand.leave || !r.errand.leave && results[0].Status != r.errand.status {
		t.Errorf("the call came to %+v, want %s", results, r.errand.status)
	}
	for kind, want := range map[event.Type]int{event.TaskStarted: 1, event.TaskReported: 1, event.SystemNotification: 1} {
		if n := countKind(out.log, kind); n != want {
			t.Errorf("there are %d events %s, want %d", n, kind, want)
		}
	}
	if text := out.notification(t); !strings.Contains(text, "<exit-code>3</exit-code>") || !strings.Contains(text, "<output-tail>\n"+r.errand.output()+"</output-tail>") {
		t.Errorf("the model was notified with %q", text)
	}
	checkRequests(t, r.hearer.requests(), "job")
	r.vigil.nothingLeft(t, r.orders.Dir)
	if t.Failed() {
		t.Log(out.story())
	}
}

// results are what calls say about commands.
func (o outcome) results(t *testing.T) (all []bash.Result) {
	t.Helper()
	for _, e := range o.log {
		if e.Type != event.ToolComplete {
			continue
		}
		d, err := event.As[event.ToolCompleteData](e)
		if err != nil {
			t.Fatal(err)
		}
		if d.Result != nil {
			all = append(all, bash.Results(d.Result.Contents)...)
		}
	}
	return all
}

// notification is what the model was told last.
func (o outcome) notification(t *testing.T) (text string) {
	t.Helper()
	for _, e := range o.log {
		if e.Type != event.SystemNotification {
			continue
		}
		d, err := event.As[event.SystemNotificationData](e)
		if err != nil {
			t.Fatal(err)
		}
		text = d.Content
	}
	return text
}

// calmErrand runs an errand without a kill.
func calmErrand(t *testing.T, v *vigil, e errand) outcome {
	t.Helper()
	r := newErrandRun(t, v, e)
	out := r.play()
	r.judge(out)
	return out
}

// fromBegun are the writes from the one on that begins the last call.
func fromBegun(writes []report) []report {
	for i, w := range slices.Backward(writes) {
		if slices.Contains(w.Events, event.ToolBegun) {
			return writes[i:]
		}
	}
	return nil
}

// A command runs once or not at all, and the model is told of its end once,
// wherever the engine is killed: when the call was begun, when its process runs
// and nobody knows, when it is known, when its end is, and while the model is
// told.
func TestKilledAtAnyWriteOfACommandItRunsOnceAndIsToldOnce(t *testing.T) {
	v := newVigil(t)
	for i, e := range errands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			calm := calmErrand(t, v, e)
			for _, at := range stops(fromBegun(calm.writes), i == 0 || e.speak != "", i) {
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
					r := newErrandRun(t, v, e)
					r.judge(r.play(at))
				})
			}
		})
	}
}

// The second victim is killed at the writes of its recovery.
func TestKilledAgainDuringTheRecoveryOfACommandItRunsOnceAndIsToldOnce(t *testing.T) {
	t.Parallel()
	v, e := newVigil(t), errands[0]
	calm := fromBegun(calmErrand(t, v, e).writes)
	reported := calm[slices.IndexFunc(calm, func(r report) bool { return slices.Contains(r.Events, event.TaskReported) })].Write
	begun := calm[0].Write
	for shift, first := range []stop{{begun, committed}, {begun + 1, before}, {reported, before}, {reported, committed}} {
		r := newErrandRun(t, v, e)
		recovered := r.play(first)
		r.judge(recovered)
		for _, second := range stops(recovered.writes, false, shift) {
			t.Run(fmt.Sprintf("%s/%s", first, second), func(t *testing.T) {
				t.Parallel()
				r := newErrandRun(t, v, e)
				r.judge(r.play(first, second))
			})
		}
	}
}

// The process runs, and perhaps nobody has written that down yet.
func TestKilledAsSoonAsACommandRunsItRunsOnceAndIsToldOnce(t *testing.T) {
	t.Parallel()
	v := newVigil(t)
	for _, e := range errands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := newErrandRun(t, v, e)
			p := r.start(stop{})
			c, err := connect(r.ctx, stdio{p}, r.witness, r.talk)
			defer c.close()
			if err == nil {
				err = r.begin(r.ctx, c)
			}
			if err == nil {
				err = r.hear(r.ctx, p.dead)
			}
			if err != nil {
				t.Fatal(r.stuck(p, err))
			}
			p.kill()
			if err := p.wasKilled(); err != nil {
				t.Fatal(err)
			}
			r.judge(r.play())
		})
	}
}

// A relay takes over when the engine is killed, and its client notices nothing.
func TestARelayTakesOverTheCommandsOfTheEngine(t *testing.T) {
	t.Parallel()
	v := newVigil(t)
	for _, e := range errands {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			r := newErrandRun(t, v, e)
			engine := startEngine(t, func(told func(report)) *process { return start(t, r.orders, told) })
			relay := r.start(stop{})
			c, err := connect(r.ctx, stdio{relay}, r.witness, r.talk)
			defer c.close()
			if err != nil {
				t.Fatal(r.stuck(relay, err))
			}
			if err := r.begin(r.ctx, c); err != nil {
				t.Fatal(r.stuck(relay, err))
			}
			if err := r.hear(r.ctx, relay.dead); err != nil {
				t.Fatal(r.stuck(relay, err))
			}
			engine.kill()
			if err := engine.wasKilled(); err != nil {
				t.Fatal(err)
			}
			if err := r.end(r.ctx, c); err != nil {
				t.Fatal(r.stuck(relay, err))
			}
			out, err := r.collect(c)
			if err != nil {
				t.Fatal(r.stuck(relay, err))
			}
			c.close()
			if err := relay.leave(); err != nil {
				t.Error(err)
			}
			r.judge(out)
		})
	}
}
