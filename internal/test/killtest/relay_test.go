package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// A processGroup is a number of victims on one data folder: one of them is the engine,
// the others are relays.
type processGroup struct {
	t            *testing.T
	ctx          context.Context
	instructions instructions

	mu                 sync.Mutex
	processes          map[int]*process // living processes by pid
	idle               map[int]bool     // by pid: it has no client
	nextPause          func() int       // number of events between two kills
	due                int              // events until the next one
	killsLeft          int              // kills to come
	kills              int              // number of engines that were killed
	killsWithoutClient int              // number of those that had no client of their own
}

// newProcessGroup makes a group whose engine will be killed a number of times.
func newProcessGroup(t *testing.T, r *rand.Rand, kills int) *processGroup {
	base := newRun(t, conversation{})
	f := &processGroup{
		t: t, ctx: base.ctx, instructions: base.instructions, processes: make(map[int]*process), idle: make(map[int]bool),
		killsLeft: kills, nextPause: func() int { return 5 + r.IntN(60) },
	}
	f.instructions.OneByOne, f.instructions.Checked = false, true
	f.due = f.nextPause()
	return f
}

// launch starts a victim.
func (f *processGroup) launch(idle bool, told func(report)) *process {
	p := start(f.t, f.instructions, told)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[p.cmd.Process.Pid] = p
	f.idle[p.cmd.Process.Pid] = idle
	return p
}

// startEngine starts the first victim on a data folder, and waits until it is the
// engine.
func startEngine(t *testing.T, start func(told func(report)) *process) *process {
	t.Helper()
	leads := make(chan struct{})
	p := start(func(r report) {
		if r.Engine {
			close(leads)
		}
	})
	select {
	case <-leads:
	case <-p.dead:
		t.Fatal(p.endError("it did not start"))
	}
	return p
}

func ignoreReport(report) {}

// countEvent counts an event that a client was shown, and kills the engine when a kill
// is due. The lock file names the engine; if that one is dead already, the next event
// tries again.
func (f *processGroup) countEvent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due--; f.due > 0 || f.killsLeft == 0 {
		return
	}
	p := f.processes[f.engine()]
	if p == nil {
		return
	}
	p.kill()
	delete(f.processes, p.cmd.Process.Pid)
	f.due = f.nextPause()
	f.killsLeft--
	f.kills++
	if f.idle[p.cmd.Process.Pid] {
		f.killsWithoutClient++
	}
}

// engine returns the process id of the holder of the lock.
func (f *processGroup) engine() (pid int) {
	text, err := os.ReadFile(filepath.Join(f.instructions.Dir, "lock"))
	if err == nil {
		_, err = fmt.Sscanf(string(text), "pid %d", &pid)
	}
	if err != nil {
		return 0 // the lock is just changing hands
	}
	return pid
}

// keepSpare keeps one more victim on the folder than there are clients, until ctx is
// done, so that a victim without a client may take over.
func (f *processGroup) keepSpare(ctx context.Context, p *process) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.dead:
		}
		if err := p.wasKilled(); err != nil {
			return err
		}
		p = f.launch(true, ignoreReport)
	}
}

// talk drives one client to the end of its conversation, through a victim of its own.
// If that victim was killed, it was the engine, and the client starts another;
// otherwise the client must not get an error.
func (f *processGroup) talk(m *groupClient, p *process) error {
	for {
		c, err := connect(f.ctx, stdio{p}, m.recorder, m.conversation)
		if err == nil {
			err = c.drive(f.ctx)
		}
		if err == nil {
			r := &run{ctx: f.ctx, instructions: f.instructions, recorder: m.recorder}
			m.out, err = r.collect(c)
		}
		c.close()
		switch {
		case err == nil:
			return f.leave(p)
		case !errors.Is(err, errDied):
			return fmt.Errorf("%w: %s", err, p.stderrText())
		}
		if err := p.wasKilled(); err != nil {
			return err
		}
		p = f.launch(false, ignoreReport)
	}
}

// leave ends a victim that is no longer needed, unless it was killed.
func (f *processGroup) leave(p *process) error {
	f.mu.Lock()
	alive := f.processes[p.cmd.Process.Pid] != nil
	delete(f.processes, p.cmd.Process.Pid)
	f.mu.Unlock()
	if !alive {
		return p.wasKilled()
	}
	return p.leave()
}

// runBehindRelay drives a relay while its engine is killed. The client must not get an
// error.
func (r *run) runBehindRelay(s stop) (out outcome, err error) {
	r.t.Helper()
	o := r.instructions
	o.Stop = s
	engine := startEngine(r.t, func(told func(report)) *process { return start(r.t, o, told) })
	p := r.start(stop{})
	c, err := r.drive(p)
	defer c.close()
	if err == nil {
		out, err = r.collect(c)
	}
	if err != nil {
		return out, r.describe(p, err)
	}
	c.close()
	engine.in.Close() // the engine ends by itself, if it was not killed
	return out, errors.Join(engine.wasKilled(), p.leave())
}

// killEngineBehindRelay plays a scenario through a relay whose engine is killed, after
// other victims were killed without one.
func killEngineBehindRelay(t *testing.T, s scenario, source string, calm outcome, at stop, earlier ...stop) outcome {
	t.Parallel()
	w := modelSources[source](t, s)
	r := newRun(t, s.conversation(w))
	for _, e := range earlier {
		if _, err := r.runUntilStop(e); err != nil {
			t.Fatal(err)
		}
	}
	out, err := r.runBehindRelay(at)
	if err != nil {
		t.Fatal(err)
	}
	judgeRun(t, w, out, calm.expected())
	return out
}

func TestWhenItsEngineIsKilledAtAnyWriteARelaysClientNoticesNothing(t *testing.T) {
	local := func(_ scenario, source string) bool { return source == "scripted" }
	forEachSource(t, local, func(t *testing.T, s scenario, source string, calm outcome) {
		for _, write := range calm.writes {
			for _, p := range []point{before, committed} {
				t.Run(fmt.Sprintf("%s/%d", p, write.Write), func(t *testing.T) {
					t.Logf("the write stores %v", write.Events)
					killEngineBehindRelay(t, s, source, calm, stop{write.Write, p})
				})
			}
		}
	})
}

// count counts the events of a kind.
func (o outcome) count(kind event.Type) (n int) {
	for _, e := range o.log {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// The client resumes a session with an open question, and its engine is killed.
func TestWhenItsEngineIsKilledARelaysClientResumesOnce(t *testing.T) {
	waiting := func(s scenario, source string) bool { return s.name == "external" && source == "scripted" }
	forEachSource(t, waiting, func(t *testing.T, s scenario, source string, calm outcome) {
		asked := 1 + slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.ExternalAsked) })
		first := stop{asked, after}
		resumed := newRun(t, s.conversation(modelSources[source](t, s))).play(first)
		for _, write := range resumed.writes {
			for _, p := range []point{before, committed} {
				t.Run(fmt.Sprintf("%s/%d", p, write.Write), func(t *testing.T) {
					t.Logf("the write stores %v", write.Events)
					out := killEngineBehindRelay(t, s, source, calm, stop{write.Write, p}, first)
					if n := out.count(event.SessionResume); n != 1 {
						t.Errorf("the client came back once, and the log has it %d times", n)
					}
				})
			}
		}
	})
}

// run drives all clients to the end of their conversations.
func (f *processGroup) run(group []*groupClient) error {
	first := startEngine(f.t, func(told func(report)) *process { return f.launch(true, told) })
	ctx, done := context.WithCancel(f.ctx)
	defer done()
	errs := make([]error, len(group)+1)
	var clients, spares sync.WaitGroup
	spares.Go(func() { errs[len(group)] = f.keepSpare(ctx, first) })
	for i, m := range group {
		m.recorder.onEvent = f.countEvent
		p := f.launch(false, ignoreReport)
		clients.Go(func() { errs[i] = f.talk(m, p) })
	}
	clients.Wait()
	done()
	spares.Wait()
	return errors.Join(errs...)
}

func TestWhenTheEngineIsKilledTheRelaysGoOn(t *testing.T) {
	t.Parallel()
	soak(t, func(t *testing.T, r *rand.Rand) {
		f := newProcessGroup(t, r, 8)
		group := newGroupClients(t, r, 2, 20)
		if err := f.run(group); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d engines were killed, %d of them without a client of their own", f.kills, f.killsWithoutClient)
		if f.kills < 5 {
			t.Errorf("only %d engines were killed", f.kills)
		}
		for _, m := range group {
			judgeRun(t, m.source, m.out, expected{answers: m.conversation.want()})
		}
	})
}
