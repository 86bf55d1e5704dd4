package process

import (
	"context"
	"os"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"golang.org/x/sys/unix"
)

const killRounds = 5 // number of times that clean sends KILL before it gives up

// endSurvivors ends the processes of a command that has lost its keeper, as the keeper
// would have. Those that cannot be ended become Info.Survivors. One caller does that at a time:
// whoever notices that the keeper is gone, and whoever wants the command to end.
func (p *proc) endSurvivors() error {
	p.ending.Lock()
	defer p.ending.Unlock()
	if s, _ := p.now(); s.gone {
		return nil
	}
	note := func(r record.Record) bool { return p.note(r) == nil }
	sigs := []unix.Signal{unix.SIGTERM, unix.SIGCONT}
	pause := p.m.opts.Grace
	for range 1 + killRounds {
		left := p.survivors()
		p.setSurvivors(left)
		if len(left) == 0 {
			p.removeGroup()
			return p.note(record.New(keeper.Ended))
		}
		for _, sig := range sigs {
			signalEach(left, sig, note)
		}
		ctx, cancel := context.WithTimeout(p.m.ctx, pause)
		awaitAll(ctx, left)
		cancel()
		if err := p.m.ctx.Err(); err != nil { // nobody is left to wait for them; the next Open looks again
			signalEach(p.survivors(), unix.SIGKILL, note)
			return nil
		}
		sigs, pause = []unix.Signal{unix.SIGKILL}, time.Second
	}
	p.setSurvivors(p.survivors())
	return nil
}

func (p *proc) setSurvivors(left []stat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.survivorPIDs = nil
	for _, s := range left {
		p.survivorPIDs = append(p.survivorPIDs, s.PID)
	}
	p.broadcastLocked()
}

// survivors returns the processes of this command that still run. After a reboot
// there are none.
//
// A process belongs to the command if it has the variable that marks it, is in the control
// group or the process group of the command, or is a child of one that belongs to it. One that
// has cleared its environment is found by the others of these as long as they hold.
func (p *proc) survivors() []stat {
	if p.start.boot != p.m.boot {
		return nil
	}
	s, _ := p.now()
	if !p.keptHere() { // its numbers mean other processes here
		s.group, s.pid, s.pidStart = "", 0, 0
	}
	return belonging(keeper.Marker+"="+p.start.marker, s.group, s.pid, s.pidStart)
}

// keptHere reports whether the keeper ran in this boot and PID namespace.
func (p *proc) keptHere() bool {
	c, err := p.readClaim()
	return err == nil && c.Kind == keeper.Claimed && c.Get("boot")+" "+c.Get("namespace") == p.m.boot
}

// removeGroup removes the control group of a command that has no process any more.
func (p *proc) removeGroup() {
	if s, _ := p.now(); s.group != "" && p.start.boot == p.m.boot {
		os.Remove(s.group) // a group that stays costs little
	}
}
