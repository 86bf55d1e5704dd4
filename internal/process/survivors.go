package process

import (
	"context"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"golang.org/x/sys/unix"
)

const killRounds = 5 // number of times that clean sends KILL before it gives up

// endSurvivors ends the processes of a command that has lost its keeper, as the keeper
// would have. Those that cannot be ended become Info.Survivors.
func (p *proc) endSurvivors() error {
	note := func(r record.Record) bool { return p.note(r) == nil }
	sigs := []unix.Signal{unix.SIGTERM, unix.SIGCONT}
	pause := p.m.opts.Grace
	for range 1 + killRounds {
		left := p.survivors()
		p.setSurvivors(left)
		if len(left) == 0 {
			return p.note(record.New(keeper.Ended))
		}
		for _, sig := range sigs {
			signalEach(left, sig, note)
		}
		ctx, cancel := context.WithTimeout(p.m.ctx, pause)
		awaitAll(ctx, left)
		cancel()
		if err := p.m.ctx.Err(); err != nil {
			return nil // the next Open continues
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
func (p *proc) survivors() []stat {
	if p.start.boot != p.m.boot {
		return nil
	}
	return marked(keeper.Marker + "=" + p.start.marker)
}
