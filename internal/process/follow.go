package process

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strconv"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// follow stays with a process until nothing of it is left, or the manager is
// closed. Without a connection it looks for the keeper; child is the keeper if
// this program started it.
func (p *proc) follow(conn net.Conn, child *os.Process) {
	for p.m.ctx.Err() == nil {
		if conn == nil {
			conn = p.dialWatch()
		}
		if conn != nil {
			p.listenTo(conn)
			p.m.hireSpare() // not before: a short command has the machine for itself
			conn = nil
			continue
		}
		if !p.bury(child) {
			break
		}
		if err := p.conclude(); err != nil {
			p.m.opts.Log.Error("record what became of a process", "process", p.id, "err", err)
		}
		return
	}
	p.leave(child)
}

// leave lets a keeper go on without us, unless it is about to end.
func (p *proc) leave(child *os.Process) {
	if child == nil {
		return
	}
	if s, _ := p.now(); s.gone {
		child.Wait()
		return
	}
	child.Release()
}

// dialWatch returns a connection on which a keeper tells what is new, or nil if
// there is none.
func (p *proc) dialWatch() net.Conn {
	conn, err := p.dial()
	if err != nil {
		return nil
	}
	if _, err := conn.Write(record.New(keeper.Watch).Line()); err != nil {
		conn.Close()
		return nil
	}
	return conn
}

// listenTo hears what the keeper tells, until it hangs up.
func (p *proc) listenTo(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(p.m.ctx, func() { conn.Close() })()
	p.setWatch(conn)
	defer p.setWatch(nil)
	lines := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		switch r, _ := record.Parse(line); r.Kind {
		case keeper.Changed:
			if err := p.reload(); err != nil {
				p.m.opts.Log.Error("read the journal", "process", p.id, "err", err)
			}
		case keeper.Size:
			p.setWatch(conn)
		}
	}
}

// setWatch wakes those who wait for output; they look, and ask again.
func (p *proc) setWatch(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch, p.armed = conn, false
	p.broadcastLocked()
}

// arm asks the keeper to tell when there is output after an offset.
func (p *proc) arm(after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watch == nil || p.armed {
		return
	}
	p.armed = true
	p.watch.Write(record.New(keeper.Arm).WithInt("at", after).Line())
}

// bury waits until the keeper is dead. It returns false if the manager is closed
// first.
func (p *proc) bury(child *os.Process) bool {
	if child != nil { // it has hung up, so it is about to end
		child.Wait()
		return true
	}
	c, err := p.readClaim()
	if err != nil || c.Kind != keeper.Claimed {
		return true
	}
	return awaitDeath(p.m.ctx, claimant(c)) == nil
}

func (p *proc) readClaim() (record.Record, error) {
	text, err := os.ReadFile(p.path(keeper.ClaimFile))
	if err != nil {
		return record.Record{}, err
	}
	return record.Parse(text)
}

// settle decides whether a process that was found on disk was ever begun. If
// nobody claimed it, we do: then no keeper can begin it any more.
func (p *proc) settle() (begun bool, err error) {
	c, err := p.readClaim()
	if errors.Is(err, os.ErrNotExist) {
		mine := record.New(keeper.Abandoned).With("boot", p.m.boot)
		if _, err = claim(p.dir, mine); err == nil {
			c, err = p.readClaim()
		}
	}
	if err != nil {
		return false, err
	}
	// The claim is not synced. If the machine was started anew after the spec was
	// written, a keeper may have claimed it and begun, and nobody knows.
	return c.Kind == keeper.Claimed || c.Get("boot") != p.birth.boot, nil
}

// conclude records what became of a process whose keeper is dead.
func (p *proc) conclude() error {
	if s, _ := p.now(); s.gone { // its folder may be gone, too
		return nil
	}
	if err := p.reload(); err != nil {
		return err
	}
	s, _ := p.now()
	if s.gone {
		return nil
	}
	begun, err := p.settle()
	if err != nil {
		return err
	}
	if !begun {
		p.forsake(errors.New("the keeper ended before the command was begun; " + p.lastWords()))
		return nil
	}
	if !s.lost {
		if err := p.note(record.New(keeper.Lost).With("reason", p.whyLost())); err != nil {
			return err
		}
	}
	return p.clean()
}

func (p *proc) whyLost() string {
	if p.birth.boot != p.m.boot {
		return "the machine or container was restarted; how the command ended is not known"
	}
	return "the process that kept the command was killed; how the command ended is not known"
}

// lastWords returns what a keeper said that is no record.
func (p *proc) lastWords() string {
	text, _ := os.ReadFile(p.path(keeper.StateFile))
	if len(text) == 0 {
		return "it said nothing"
	}
	return "it said " + strconv.Quote(string(text[:min(len(text), 500)]))
}
