package killtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
)

// When a command may go on.
type moment int

const (
	atOnce  moment = iota // nothing holds it up
	down                  // while there is no engine
	upAgain               // when there is one again
	spoken                // when it was written to, by the model
	stopped               // never: it has to be stopped
)

// A command is one of many that run when the engine is killed.
type command struct {
	name   string
	text   string
	how    rule // arguments of the call
	ends   moment
	inCall bool // the model reads its end in the call's result, and is not notified
	status string
	code   int
	signal string
	output string
}

// numbers is what seq prints.
func numbers(from, to int) string {
	var b []byte
	for i := from; i <= to; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

// many is how far those count that print much: 10 MB each, and 100 MB if there is
// time.
func many() int {
	if os.Getenv("ABIDE_SOAK") != "" {
		return 12_400_000
	}
	return 1_400_000
}

// platoons are the commands of several sessions, twenty in all.
func platoons() map[event.SessionID][]command {
	async, flips, stays := rule{"mode": "async"}, rule{"initial_wait": 0.1}, rule{"initial_wait": 600}
	n, half := many(), many()/2
	count := fmt.Sprintf("seq 1 %d; GATE; seq %d %d", half, half+1, n)
	umlauts := strings.Repeat("ä\n", n/3)
	return map[event.SessionID][]command{
		"statuses": {
			{name: "well", text: "echo out; echo err >&2; GATE; printf end", how: async, ends: down, status: event.TaskCompleted, output: "out\nerr\nend"},
			{name: "badly", text: "GATE; exit 3", how: async, ends: down, status: event.TaskFailed, code: 3},
			{name: "signalled", text: "echo x; GATE; kill -9 $$", how: async, ends: down, status: event.TaskFailed, code: 137, signal: "SIGKILL", output: "x\n"},
			{name: "code137", text: "GATE; exit 137", how: flips, ends: down, status: event.TaskFailed, code: 137},
		},
		"talkative": {
			{name: "halves", text: count, how: async, ends: down, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "flipped", text: count + "; exit 5", how: flips, ends: upAgain, status: event.TaskFailed, code: 5, output: numbers(1, n)},
			{name: "through", text: fmt.Sprintf("seq 1 %d", n), how: async, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "umlauts", text: fmt.Sprintf("GATE; yes ä | head -c %d >&2", len(umlauts)-1), how: async, ends: down, status: event.TaskCompleted, output: umlauts[:len(umlauts)-1]},
		},
		"stubborn": {
			{name: "deaf", text: "trap '' TERM; echo deaf; GATE", how: async, ends: stopped, status: event.TaskKilled, code: 137, signal: "SIGKILL", output: "deaf\n"},
			{name: "daemon", text: "(setsid sh -c 'echo $$ >>runs.child; GATE' >/dev/null 2>&1 &); echo gone", how: async, ends: stopped, status: event.TaskCompleted, output: "gone\n"},
			{name: "reader", text: "echo ready; read line; echo \"got $line\"", how: rule{"mode": "async", "stdin": true}, ends: spoken, status: event.TaskCompleted, output: "ready\ngot it\n"},
			{name: "family", text: "for i in 1 2 3; do (GATE) & done; wait", how: async, ends: stopped, status: event.TaskKilled, code: 143, signal: "SIGTERM"},
		},
		"late": {
			{name: "first", text: "echo 1; GATE; echo 2", how: async, ends: upAgain, status: event.TaskCompleted, output: "1\n2\n"},
			{name: "second", text: "echo 1; GATE; echo 2 >/dev/stderr; exit 1", how: flips, ends: upAgain, status: event.TaskFailed, code: 1, output: "1\n2\n"},
			{name: "third", text: "GATE; kill -TERM $$", how: flips, ends: upAgain, status: event.TaskFailed, code: 143, signal: "SIGTERM"},
			{name: "fourth", text: "GATE; (GATE) & echo left", how: async, ends: upAgain, status: event.TaskCompleted, output: "left\n"},
		},
		"patient": { // the calls wait for them when the engine is killed
			{name: "inside", text: "echo 1; GATE; echo 2", how: stays, ends: down, inCall: true, status: event.TaskCompleted, output: "1\n2\n"},
			{name: "outside", text: "GATE; exit 9", how: stays, ends: upAgain, inCall: true, status: event.TaskFailed, code: 9},
			{name: "loud", text: count, how: stays, ends: down, inCall: true, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "shot", text: "echo y; GATE; kill -KILL $$", how: stays, ends: upAgain, inCall: true, status: event.TaskFailed, code: 137, signal: "SIGKILL", output: "y\n"},
		},
	}
}

// A soldier is a session with its commands.
type soldier struct {
	commands []command
	yard     *yard
	witness  *witness
	world    *world
	hearer   *hearer
	talk     talk
	client   *client
}

const (
	startPrompt = "Start everything"
	speakPrompt = "Speak to the reader"
	lastPrompt  = "What happened?"
)

func newSoldier(t *testing.T, id event.SessionID, commands []command) *soldier {
	s := &soldier{commands: commands, yard: newYard(t), witness: newWitness()}
	var list []rule
	for _, c := range commands {
		arguments := rule{"command": s.yard.command(c.name, c.text), "description": c.name, "shellId": c.name}
		for key, value := range c.how {
			arguments[key] = value
		}
		list = append(list, rule{"tool": "bash", "arguments": arguments})
	}
	speak := []rule{{"tool": "write_bash", "arguments": rule{"shellId": "reader", "input": "it\n"}}}
	s.world, s.hearer = commandWorld(t,
		rule{"when": rule{"user": startPrompt, "results": 0}, "reply": rule{"calls": list}},
		rule{"when": rule{"user": speakPrompt, "results": 0}, "reply": rule{"calls": speak}},
		rule{"reply": rule{"text": "Yes."}})
	s.talk = talk{open: s.world.openIn(id, s.yard)}
	return s
}

// each calls f for the commands that go on at a moment.
func (s *soldier) each(at moment, f func(c command)) {
	for _, c := range s.commands {
		if c.ends == at {
			f(c)
		}
	}
}

// notified are the commands of which the model is notified.
func (s *soldier) notified() (names []string) {
	for _, c := range s.commands {
		if !c.inCall {
			names = append(names, c.name)
		}
	}
	return names
}

// An army is sessions that run commands in one engine.
type army struct {
	t        *testing.T
	ctx      context.Context
	orders   orders
	soldiers map[event.SessionID]*soldier
}

func newArmy(t *testing.T) *army {
	base := newRun(t, talk{})
	a := &army{t: t, ctx: base.ctx, orders: base.orders, soldiers: make(map[event.SessionID]*soldier)}
	a.orders.InTurn = false
	for id, commands := range platoons() {
		a.soldiers[id] = newSoldier(t, id, commands)
	}
	return a
}

// start starts a victim that keeps all of what commands print.
func (a *army) start(o orders) *process {
	a.t.Helper()
	return start(a.t, o, nobody, func(c *exec.Cmd) { c.Env = append(c.Env, "ABIDE_COMMANDS_OUTPUT_BYTES="+strconv.Itoa(1<<30)) })
}

func (a *army) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// connect connects everybody to the engine that a victim is.
func (a *army) connect(p *process) {
	a.t.Helper()
	knock, err := connect(a.ctx, stdio{p}, newWitness(), talk{})
	a.t.Cleanup(knock.close)
	if err != nil {
		a.t.Fatal(p.ended("it did not start"))
	}
	f, err := folder.Open(a.orders.Dir)
	a.must(err)
	for _, s := range a.soldiers {
		conn, err := f.Dial(a.ctx)
		a.must(err)
		s.client, err = connect(a.ctx, conn, s.witness, s.talk)
		a.t.Cleanup(s.client.close)
		a.must(err)
		a.must(s.client.open(a.ctx))
	}
}

// begin lets every session start its commands, and waits until all of them run
// and those that go on without their call do.
func (a *army) begin() {
	a.t.Helper()
	for _, s := range a.soldiers {
		a.must(s.client.send(a.ctx, api.SendParams{Prompt: startPrompt}))
	}
	for _, s := range a.soldiers {
		a.must(s.yard.hear(a.ctx, len(s.commands)))
		if len(s.notified()) > 0 {
			a.must(s.client.untilIdle(a.ctx, exchange{}))
		}
	}
}

// endings returns the keepers of the commands that will end while there is no
// engine.
func (a *army) endings() (keepers []int) {
	a.t.Helper()
	for _, s := range a.soldiers {
		tasks, err := s.client.tasks(a.ctx)
		a.must(err)
		s.each(down, func(c command) { keepers = append(keepers, parent(a.t, tasks[c.name].PID)) })
	}
	return keepers
}

// let lets the commands go on that wait for a moment.
func (a *army) let(at moment) {
	for _, s := range a.soldiers {
		s.each(at, func(c command) { s.yard.let(c.name) })
	}
}

// finish ends everything that does not end by itself, and waits until every
// model knows all.
func (a *army) finish() {
	a.t.Helper()
	a.let(upAgain)
	for id, s := range a.soldiers {
		s.each(spoken, func(command) { a.must(s.client.send(a.ctx, api.SendParams{Prompt: speakPrompt})) })
		s.each(stopped, func(c command) { s.stop(a, id, c.name) })
	}
	for _, s := range a.soldiers {
		a.must(s.client.untilTold(a.ctx, len(s.notified())))
		a.must(s.client.send(a.ctx, api.SendParams{Prompt: lastPrompt}))
		a.must(s.client.untilIdle(a.ctx, exchange{}))
	}
}

// stop stops a command. When that returns, nothing of it is left.
func (s *soldier) stop(a *army, id event.SessionID, name string) {
	a.t.Helper()
	var task api.Task
	a.must(s.client.call(a.ctx, api.TaskStop, api.TaskParams{SessionID: id, TaskID: name}, &task))
	pids := []int{task.PID}
	if name == "daemon" {
		pids = append(pids, s.yard.pids("child")...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			a.t.Errorf("%s was stopped, and process %d is there: %v", name, pid, err)
		}
	}
}

// judge checks what became of a session's commands.
func (s *soldier) judge(a *army) {
	t := a.t
	t.Helper()
	r := &run{ctx: a.ctx, orders: a.orders, witness: s.witness}
	out, err := r.collect(s.client)
	a.must(err)
	for _, broken := range append(out.checkLog(), s.world.faults()...) {
		t.Errorf("%s: %s", s.client.session, broken)
	}
	tasks, err := s.client.tasks(a.ctx)
	a.must(err)
	if len(tasks) != len(s.commands) {
		t.Errorf("%s: there are %d commands, want %d", s.client.session, len(tasks), len(s.commands))
	}
	for _, c := range s.commands {
		s.check(a, c, tasks[c.name])
	}
	checkRequests(t, s.hearer.requests(), s.notified()...)
	if n := countKind(out.log, event.SystemNotification); n != len(s.notified()) {
		t.Errorf("%s: the log has %d notifications, want %d", s.client.session, n, len(s.notified()))
	}
	ended := make(map[string]bool)
	for _, result := range out.results(t) {
		if result.Ended() && !slices.ContainsFunc(s.commands, func(c command) bool { return c.name == result.TaskID && c.inCall }) && result.TaskID != "reader" {
			t.Errorf("%s: the call of %s came to %+v", s.client.session, result.TaskID, result)
		}
		ended[result.TaskID] = result.Ended()
	}
	for _, c := range s.commands {
		if c.inCall && !ended[c.name] {
			t.Errorf("%s: the call of %s did not wait for its end", s.client.session, c.name)
		}
	}
	if t.Failed() {
		t.Log(out.story())
	}
}

// check checks the status, every byte of the output, and that there was one.
func (s *soldier) check(a *army, c command, got api.Task) {
	t := a.t
	t.Helper()
	if got.Status != c.status || got.ExitCode == nil || *got.ExitCode != c.code || got.Signal != c.signal {
		t.Errorf("%s: %+v, want %s, %d, %s", c.name, got, c.status, c.code, c.signal)
	}
	output, err := s.client.output(a.ctx, c.name)
	if err != nil {
		t.Errorf("%s: %v", c.name, err)
	} else if string(output) != c.output {
		at := 0
		for at < min(len(output), len(c.output)) && output[at] == c.output[at] {
			at++
		}
		t.Errorf("%s: of %d bytes of output %d are there, and from byte %d on they are others: %.80q", c.name, len(c.output), len(output), at, output[at:])
	}
	if n := s.yard.runs(c.name); n != 1 {
		t.Errorf("%s ran %d times", c.name, n)
	}
}

// Twenty commands run in five sessions when the engine is killed. Some end before
// there is another; that one is killed too, as soon as it has written something.
// The third finds everything as it was and as it became.
func TestTwentyCommandsOutliveTheEngine(t *testing.T) {
	t.Parallel()
	v := newVigil(t)
	a := newArmy(t)
	p := a.start(a.orders)
	a.connect(p)
	a.begin()
	keepers := a.endings()
	p.kill()
	a.must(p.wasKilled())
	a.let(down)
	for _, pid := range keepers {
		a.must(exited(a.ctx, pid))
	}

	dies := a.orders
	dies.Stop = stop{2, committed}
	p = a.start(dies)
	<-p.dead
	a.must(p.wasKilled())

	p = a.start(a.orders)
	a.connect(p)
	a.finish()
	a.soldiers["late"].lingers(a)
	for _, s := range a.soldiers {
		s.judge(a)
	}
	if child := a.soldiers["stubborn"].yard.runs("child"); child != 1 {
		t.Errorf("the daemon's child ran %d times", child)
	}
	for _, s := range a.soldiers {
		s.client.close()
	}
	a.must(p.leave())
	v.nothingLeft(t, a.orders.Dir)
}

// lingers: what a command left behind is ended with it.
func (s *soldier) lingers(a *army) {
	tasks, err := s.client.tasks(a.ctx)
	a.must(err)
	if !tasks["fourth"].Lingering {
		a.t.Error("it is not said that a child of a command lives on")
	}
	s.stop(a, s.client.session, "fourth")
}
