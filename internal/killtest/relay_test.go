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

// A fleet is a number of victims on one folder: one of them is the engine, the
// others are relays.
type fleet struct {
	t      *testing.T
	ctx    context.Context
	orders orders

	mu        sync.Mutex
	processes map[int]*process // by pid, while they live
	idle      map[int]bool     // by pid: it has no client
	pause     func() int       // how many events there are between two kills
	due       int              // events until the next one
	left      int              // kills to come
	kills     int              // of engines
	alone     int              // of those that had no client of their own
}

// newFleet makes a fleet whose engine will be killed so often.
func newFleet(t *testing.T, r *rand.Rand, kills int) *fleet {
	base := newRun(t, talk{})
	f := &fleet{
		t: t, ctx: base.ctx, orders: base.orders, processes: make(map[int]*process), idle: make(map[int]bool),
		left: kills, pause: func() int { return 5 + r.IntN(60) },
	}
	f.orders.InTurn = false
	f.due = f.pause()
	return f
}

// launch starts a victim.
func (f *fleet) launch(idle bool, told func(report)) *process {
	p := start(f.t, f.orders, told)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[p.cmd.Process.Pid] = p
	f.idle[p.cmd.Process.Pid] = idle
	return p
}

// startEngine starts a victim on a folder that has none, and waits until it is
// the engine.
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
		t.Fatal(p.ended("it did not start"))
	}
	return p
}

func nobody(report) {}

// happened counts an event that a client was shown, and kills the engine when
// its time has come. Who that is stands in the lock file; if it is one that is
// dead, the next event tells.
func (f *fleet) happened() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due--; f.due > 0 || f.left == 0 {
		return
	}
	p := f.processes[f.engine()]
	if p == nil {
		return
	}
	p.kill()
	delete(f.processes, p.cmd.Process.Pid)
	f.due = f.pause()
	f.left--
	f.kills++
	if f.idle[p.cmd.Process.Pid] {
		f.alone++
	}
}

// engine reads who holds the lock.
func (f *fleet) engine() (pid int) {
	text, err := os.ReadFile(filepath.Join(f.orders.Dir, "lock"))
	if err == nil {
		_, err = fmt.Sscanf(string(text), "pid %d", &pid)
	}
	if err != nil {
		return 0 // it is just changing hands
	}
	return pid
}

// spares keeps one more victim on the folder than there are clients, until ctx
// is done: whoever takes over, it need not have a client.
func (f *fleet) spares(ctx context.Context, p *process) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.dead:
		}
		if err := p.wasKilled(); err != nil {
			return err
		}
		p = f.launch(true, nobody)
	}
}

// talk lets one client talk to the end through a victim of its own. If that was
// killed, it was the engine, and the client starts another; else it must not
// notice anything.
func (f *fleet) talk(m *member, p *process) error {
	for {
		c, err := connect(f.ctx, stdio{p}, m.witness, m.talk)
		if err == nil {
			err = c.drive(f.ctx)
		}
		if err == nil {
			r := &run{ctx: f.ctx, orders: f.orders, witness: m.witness}
			m.out, err = r.collect(c)
		}
		c.close()
		switch {
		case err == nil:
			return f.leave(p)
		case !errors.Is(err, errDied):
			return fmt.Errorf("%w: %s", err, p.said())
		}
		if err := p.wasKilled(); err != nil {
			return err
		}
		p = f.launch(false, nobody)
	}
}

// leave ends a victim that nobody needs any more, unless it was killed.
func (f *fleet) leave(p *process) error {
	f.mu.Lock()
	alive := f.processes[p.cmd.Process.Pid] != nil
	delete(f.processes, p.cmd.Process.Pid)
	f.mu.Unlock()
	if !alive {
		return p.wasKilled()
	}
	return p.leave()
}

// relayed drives a relay while its engine is killed. The client must not notice.
func (r *run) relayed(s stop) (out outcome, err error) {
	r.t.Helper()
	o := r.orders
	o.Stop = s
	engine := startEngine(r.t, func(told func(report)) *process { return start(r.t, o, told) })
	p := r.start(stop{})
	c, err := r.drive(p)
	defer c.close()
	if err == nil {
		out, err = r.collect(c)
	}
	if err != nil {
		return out, r.stuck(p, err)
	}
	c.close()
	engine.in.Close() // if it was not killed by now it never will be
	return out, errors.Join(engine.wasKilled(), p.leave())
}

// killedBehind plays a scenario through a relay whose engine is killed, after
// other victims were killed without one.
func killedBehind(t *testing.T, s scenario, world string, calm outcome, at stop, earlier ...stop) outcome {
	t.Parallel()
	w := worlds[world](t, s)
	r := newRun(t, s.talk(w))
	for _, e := range earlier {
		if _, err := r.cutShort(e); err != nil {
			t.Fatal(err)
		}
	}
	out, err := r.relayed(at)
	if err != nil {
		t.Fatal(err)
	}
	judgeRun(t, w, out, calm.words())
	return out
}

func TestWhenItsEngineIsKilledAtAnyWriteARelaysClientNoticesNothing(t *testing.T) {
	local := func(_ scenario, world string) bool { return world == "scripted" }
	everywhere(t, local, func(t *testing.T, s scenario, world string, calm outcome) {
		for _, write := range calm.writes {
			for _, p := range []point{before, committed} {
				t.Run(fmt.Sprintf("%s/%d", p, write.Write), func(t *testing.T) {
					t.Logf("the write stores %v", write.Events)
					killedBehind(t, s, world, calm, stop{write.Write, p})
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

// The client comes back to a session with an open question, and its engine is
// killed.
func TestWhenItsEngineIsKilledARelaysClientResumesOnce(t *testing.T) {
	waiting := func(s scenario, world string) bool { return s.name == "external" && world == "scripted" }
	everywhere(t, waiting, func(t *testing.T, s scenario, world string, calm outcome) {
		asked := 1 + slices.IndexFunc(calm.writes, func(r report) bool { return slices.Contains(r.Events, event.ExternalAsked) })
		first := stop{asked, after}
		resumed := newRun(t, s.talk(worlds[world](t, s))).play(first)
		for _, write := range resumed.writes {
			for _, p := range []point{before, committed} {
				t.Run(fmt.Sprintf("%s/%d", p, write.Write), func(t *testing.T) {
					t.Logf("the write stores %v", write.Events)
					out := killedBehind(t, s, world, calm, stop{write.Write, p}, first)
					if n := out.count(event.SessionResume); n != 1 {
						t.Errorf("the client came back once, and the log has it %d times", n)
					}
				})
			}
		}
	})
}

// run lets all clients talk to the end.
func (f *fleet) run(members []*member) error {
	first := startEngine(f.t, func(told func(report)) *process { return f.launch(true, told) })
	ctx, done := context.WithCancel(f.ctx)
	defer done()
	errs := make([]error, len(members)+1)
	var clients, spares sync.WaitGroup
	spares.Go(func() { errs[len(members)] = f.spares(ctx, first) })
	for i, m := range members {
		m.witness.each = f.happened
		p := f.launch(false, nobody)
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
		f := newFleet(t, r, 8)
		members := newMembers(t, r, 2, 20)
		if err := f.run(members); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d engines were killed, %d of them without a client of their own", f.kills, f.alone)
		if f.kills < 5 {
			t.Errorf("only %d engines were killed", f.kills)
		}
		for _, m := range members {
			judgeRun(t, m.world, m.out, words{answers: m.talk.want()})
		}
	})
}
