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
	"github.com/abide-run/abide/internal/event"
)

// A moment is when a command may pass its gate.
type moment int

const (
	atOnce  moment = iota // it has no gate
	down                  // it goes on at a time without an engine
	upAgain               // it goes on at a time with the next engine
	spoken                // after the model has written to its input
	stopped               // it never goes on: it has to be stopped
)

// A command is one of many that run when the engine is killed.
type command struct {
	name      string
	text      string
	arguments rule // arguments of the call
	ends      moment
	inCall    bool // true if the result of the call has its end, so that the model is not notified
	status    string
	code      int
	signal    string
	output    string
}

// numbers returns what seq prints.
func numbers(from, to int) string {
	var b []byte
	for i := from; i <= to; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

// lineCount is the number of lines of commands that print much: 10 MB each, and
// 100 MB in a soak test.
func lineCount() int {
	if os.Getenv("ABIDE_SOAK") != "" {
		return 12_400_000
	}
	return 1_400_000
}

// commandsBySession returns the commands of five sessions, twenty in all.
func commandsBySession() map[event.SessionID][]command {
	async, flips, stays := rule{"mode": "async"}, rule{"initial_wait": 0.1}, rule{"initial_wait": 600}
	n, half := lineCount(), lineCount()/2
	count := fmt.Sprintf("seq 1 %d; GATE; seq %d %d", half, half+1, n)
	umlauts := strings.Repeat("ä\n", n/3)
	return map[event.SessionID][]command{
		"statuses": {
			{name: "well", text: "echo out; echo err >&2; GATE; printf end", arguments: async, ends: down, status: event.TaskCompleted, output: "out\nerr\nend"},
			{name: "badly", text: "GATE; exit 3", arguments: async, ends: down, status: event.TaskFailed, code: 3},
			{name: "signalled", text: "echo x; GATE; kill -9 $$", arguments: async, ends: down, status: event.TaskFailed, code: 137, signal: "SIGKILL", output: "x\n"},
			{name: "code137", text: "GATE; exit 137", arguments: flips, ends: down, status: event.TaskFailed, code: 137},
		},
		"talkative": {
			{name: "halves", text: count, arguments: async, ends: down, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "flipped", text: count + "; exit 5", arguments: flips, ends: upAgain, status: event.TaskFailed, code: 5, output: numbers(1, n)},
			{name: "through", text: fmt.Sprintf("seq 1 %d", n), arguments: async, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "umlauts", text: fmt.Sprintf("GATE; yes ä | head -c %d >&2", len(umlauts)-1), arguments: async, ends: down, status: event.TaskCompleted, output: umlauts[:len(umlauts)-1]},
		},
		"stubborn": {
			{name: "deaf", text: "trap '' TERM; echo deaf; GATE", arguments: async, ends: stopped, status: event.TaskKilled, code: 137, signal: "SIGKILL", output: "deaf\n"},
			{name: "daemon", text: "(setsid sh -c 'echo $$ >>runs.child; GATE' >/dev/null 2>&1 &); echo gone", arguments: async, ends: stopped, status: event.TaskCompleted, output: "gone\n"},
			{name: "reader", text: "echo ready; read line; echo \"got $line\"", arguments: rule{"mode": "async", "stdin": true}, ends: spoken, status: event.TaskCompleted, output: "ready\ngot it\n"},
			{name: "family", text: "for i in 1 2 3; do (GATE) & done; wait", arguments: async, ends: stopped, status: event.TaskKilled, code: 143, signal: "SIGTERM"},
		},
		"late": {
			{name: "first", text: "echo 1; GATE; echo 2", arguments: async, ends: upAgain, status: event.TaskCompleted, output: "1\n2\n"},
			{name: "second", text: "echo 1; GATE; echo 2 >/dev/stderr; exit 1", arguments: flips, ends: upAgain, status: event.TaskFailed, code: 1, output: "1\n2\n"},
			{name: "third", text: "GATE; kill -TERM $$", arguments: flips, ends: upAgain, status: event.TaskFailed, code: 143, signal: "SIGTERM"},
			{name: "fourth", text: "GATE; (GATE) & echo left", arguments: async, ends: upAgain, status: event.TaskCompleted, output: "left\n"},
		},
		"patient": { // the calls wait for them when the engine is killed
			{name: "inside", text: "echo 1; GATE; echo 2", arguments: stays, ends: down, inCall: true, status: event.TaskCompleted, output: "1\n2\n"},
			{name: "outside", text: "GATE; exit 9", arguments: stays, ends: upAgain, inCall: true, status: event.TaskFailed, code: 9},
			{name: "loud", text: count, arguments: stays, ends: down, inCall: true, status: event.TaskCompleted, output: numbers(1, n)},
			{name: "shot", text: "echo y; GATE; kill -KILL $$", arguments: stays, ends: upAgain, inCall: true, status: event.TaskFailed, code: 137, signal: "SIGKILL", output: "y\n"},
		},
	}
}

// A commandSession is a session, its commands, and the client that drives it.
type commandSession struct {
	commands     []command
	dir          *commandDir
	recorder     *recorder
	source       *modelSource
	model        *recordingModel
	conversation conversation
	client       *client
}

const (
	startPrompt = "Start everything"
	speakPrompt = "Speak to the reader"
	lastPrompt  = "What happened?"
)

func newCommandSession(t *testing.T, id event.SessionID, commands []command) *commandSession {
	s := &commandSession{commands: commands, dir: newCommandDir(t), recorder: newRecorder()}
	var list []rule
	for _, c := range commands {
		arguments := rule{"command": s.dir.command(c.name, c.text), "description": c.name, "shellId": c.name}
		for key, value := range c.arguments {
			arguments[key] = value
		}
		list = append(list, rule{"tool": "bash", "arguments": arguments})
	}
	speak := []rule{{"tool": "write_bash", "arguments": rule{"shellId": "reader", "input": "it\n"}}}
	s.source, s.model = commandSource(t,
		rule{"when": rule{"user": startPrompt, "results": 0}, "reply": rule{"calls": list}},
		rule{"when": rule{"user": speakPrompt, "results": 0}, "reply": rule{"calls": speak}},
		rule{"reply": rule{"text": "Yes."}})
	s.conversation = conversation{open: s.source.openIn(id, s.dir)}
	return s
}

// each calls f for the commands that may pass their gate at a moment.
func (s *commandSession) each(at moment, f func(c command)) {
	for _, c := range s.commands {
		if c.ends == at {
			f(c)
		}
	}
}

// notified returns the names of the commands whose end the model is notified of.
func (s *commandSession) notified() (names []string) {
	for _, c := range s.commands {
		if !c.inCall {
			names = append(names, c.name)
		}
	}
	return names
}

// A sessionGroup is a number of sessions that run commands in one engine.
type sessionGroup struct {
	t            *testing.T
	ctx          context.Context
	instructions instructions
	sessions     map[event.SessionID]*commandSession
}

func newSessionGroup(t *testing.T) *sessionGroup {
	base := newRun(t, conversation{})
	a := &sessionGroup{t: t, ctx: base.ctx, instructions: base.instructions, sessions: make(map[event.SessionID]*commandSession)}
	a.instructions.OneByOne = false
	for id, commands := range commandsBySession() {
		a.sessions[id] = newCommandSession(t, id, commands)
	}
	return a
}

// start starts a victim that keeps the whole output of commands.
func (a *sessionGroup) start(o instructions) *process {
	a.t.Helper()
	return start(a.t, o, ignoreReport, func(c *exec.Cmd) { c.Env = append(c.Env, "ABIDE_COMMANDS_OUTPUT_BYTES="+strconv.Itoa(1<<30)) })
}

func (a *sessionGroup) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// connect connects the clients of all sessions to a victim.
func (a *sessionGroup) connect(p *process) {
	a.t.Helper()
	probe, err := connect(a.ctx, stdio{p}, newRecorder(), conversation{})
	a.t.Cleanup(probe.close)
	if err != nil {
		a.t.Fatal(p.endError("it did not start"))
	}
	for _, s := range a.sessions {
		s.client, err = dial(a.ctx, a.instructions.Dir, s.recorder, s.conversation)
		if s.client != nil {
			a.t.Cleanup(s.client.close)
		}
		a.must(err)
		a.must(s.client.open(a.ctx))
	}
}

// begin lets every session start its commands, and waits until all of them run and
// the turns that do not wait for them are over.
func (a *sessionGroup) begin() {
	a.t.Helper()
	for _, s := range a.sessions {
		a.must(s.client.send(a.ctx, api.SendParams{Prompt: startPrompt}))
	}
	for _, s := range a.sessions {
		a.must(s.dir.awaitStarted(a.ctx, len(s.commands)))
		if len(s.notified()) > 0 {
			a.must(s.client.answerUntilIdle(a.ctx, exchange{}))
		}
	}
}

// endingKeepers returns the keepers of the commands that will end while there is no
// engine.
func (a *sessionGroup) endingKeepers() (keepers []int) {
	a.t.Helper()
	for _, s := range a.sessions {
		tasks, err := s.client.tasks(a.ctx)
		a.must(err)
		s.each(down, func(c command) { keepers = append(keepers, parent(a.t, tasks[c.name].PID)) })
	}
	return keepers
}

// openGates opens the gates of the commands that wait for a moment.
func (a *sessionGroup) openGates(at moment) {
	for _, s := range a.sessions {
		s.each(at, func(c command) { s.dir.openGate(c.name) })
	}
}

// finish ends the commands that do not end by themselves, and waits until every
// model was notified of all its commands.
func (a *sessionGroup) finish() {
	a.t.Helper()
	a.openGates(upAgain)
	for id, s := range a.sessions {
		s.each(spoken, func(command) { a.must(s.client.send(a.ctx, api.SendParams{Prompt: speakPrompt})) })
		s.each(stopped, func(c command) { s.stop(a, id, c.name) })
	}
	for _, s := range a.sessions {
		a.must(s.client.awaitNotifications(a.ctx, len(s.notified())))
		a.must(s.client.send(a.ctx, api.SendParams{Prompt: lastPrompt}))
		a.must(s.client.answerUntilIdle(a.ctx, exchange{}))
	}
}

// stop stops a command, and checks that none of its processes is left.
func (s *commandSession) stop(a *sessionGroup, id event.SessionID, name string) {
	a.t.Helper()
	var task api.Task
	a.must(s.client.call(a.ctx, api.TaskStop, api.TaskParams{SessionID: id, TaskID: name}, &task))
	pids := []int{task.PID}
	if name == "daemon" {
		pids = append(pids, s.dir.pids("child")...)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			a.t.Errorf("%s was stopped, and process %d is there: %v", name, pid, err)
		}
	}
}

// judge checks the log of a session and all its commands.
func (s *commandSession) judge(a *sessionGroup) {
	t := a.t
	t.Helper()
	r := &run{ctx: a.ctx, instructions: a.instructions, recorder: s.recorder}
	out, err := r.collect(s.client)
	a.must(err)
	for _, broken := range append(out.checkLog(), s.source.faults()...) {
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
	checkRequests(t, s.model.requests(), s.notified()...)
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
		t.Log(out.describeLog())
	}
}

// check checks the status of a command, every byte of its output, and that it ran
// once.
func (s *commandSession) check(a *sessionGroup, c command, got api.Task) {
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
	if n := s.dir.runs(c.name); n != 1 {
		t.Errorf("%s ran %d times", c.name, n)
	}
}

// Twenty commands run in five sessions when the engine is killed. Some end before
// there is another engine; that one is killed too, after its second write. The third
// engine finds the status and the output of all commands.
func TestTwentyCommandsOutliveTheEngine(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	a := newSessionGroup(t)
	p := a.start(a.instructions)
	a.connect(p)
	a.begin()
	keepers := a.endingKeepers()
	p.kill()
	a.must(p.wasKilled())
	a.openGates(down)
	for _, pid := range keepers {
		a.must(exited(a.ctx, pid))
	}

	dies := a.instructions
	dies.Stop, dies.Args = stop{2, committed}, []string{"serve"} // without a client only a server goes on
	p = a.start(dies)
	<-p.dead
	a.must(p.wasKilled())

	p = a.start(a.instructions)
	a.connect(p)
	a.finish()
	a.sessions["late"].checkLingering(a)
	for _, s := range a.sessions {
		s.judge(a)
	}
	if child := a.sessions["stubborn"].dir.runs("child"); child != 1 {
		t.Errorf("the daemon's child ran %d times", child)
	}
	for _, s := range a.sessions {
		s.client.close()
	}
	a.must(p.leave())
	v.checkNothingLeft(t, a.instructions.Dir)
}

// checkLingering checks that a child that outlives its command is reported, and is
// ended when the command is stopped.
func (s *commandSession) checkLingering(a *sessionGroup) {
	tasks, err := s.client.tasks(a.ctx)
	a.must(err)
	if !tasks["fourth"].Lingering {
		a.t.Error("it is not said that a child of a command lives on")
	}
	s.stop(a, s.client.session, "fourth")
}
