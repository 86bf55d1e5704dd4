package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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
	processes map[int]*process // by pid
	idle      map[int]bool     // those without a client
	due       int              // events until the next kill
	next      func() int       // how many events there are between two
	kills     int
	most      int // kills
	alone     int // kills of an engine that had no client of its own
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

// lead starts the first engine.
func (f *fleet) lead() *process {
	leads := make(chan struct{})
	p := f.launch(true, func(r report) {
		if r.Engine {
			close(leads)
		}
	})
	select {
	case <-leads:
	case <-p.dead:
		f.t.Fatal(p.ended("it did not start"))
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
	if f.due--; f.due > 0 || f.kills == f.most {
		return
	}
	p := f.processes[f.engine()]
	if p == nil {
		return
	}
	p.kill()
	pid := p.cmd.Process.Pid
	if f.idle[pid] {
		f.alone++
	}
	delete(f.processes, pid)
	f.kills++
	f.due = f.next()
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

func TestWhenTheEngineIsKilledTheOthersGoOn(t *testing.T) {
	t.Parallel()
	soak(t, func(t *testing.T, r *rand.Rand) {
		base := newRun(t, talk{})
		f := &fleet{
			t: t, ctx: base.ctx, orders: base.orders, processes: make(map[int]*process), idle: make(map[int]bool),
			most: 8, next: func() int { return 5 + r.IntN(60) },
		}
		f.orders.InTurn = false
		f.due = f.next()
		first := f.lead()
		ctx, done := context.WithCancel(f.ctx)
		errs := make([]error, 3)
		var clients, spares sync.WaitGroup
		spares.Go(func() { errs[2] = f.spares(ctx, first) })
		var members []*member
		for i := range 2 {
			w := offlineWorld(t, scenario{})
			m := &member{talk: talk{w.open(event.SessionID("s" + strconv.Itoa(i))), randomTurns(r, 20)}, witness: newWitness(), world: w}
			m.witness.each = f.happened
			members = append(members, m)
			p := f.launch(false, nobody)
			clients.Go(func() { errs[i] = f.talk(m, p) })
		}
		clients.Wait()
		done()
		spares.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d engines were killed, %d of them without a client of their own", f.kills, f.alone)
		if f.kills < 5 {
			t.Errorf("only %d engines were killed", f.kills)
		}
		for _, m := range members {
			judgeRun(t, m.world, m.out, m.talk.want())
		}
	})
}
