package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// follow stays with a process until nothing of it is left, or the manager is
// closed. Without a keeper that this program started it looks for one.
func (p *proc) follow(k *newKeeper) {
	var conn *net.UnixConn
	var child *os.Process
	if k != nil {
		conn, child = k.conn, k.child
	}
	for pause := firstPause; p.m.ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if conn == nil {
			conn = p.dialWatch()
		}
		if conn != nil {
			if end := p.listenTo(conn); end > 0 {
				p.m.reserve(k) // before anybody hears of the end, and wants a keeper
				p.tell(end)
				p.m.prepare()
				return
			}
			conn, pause = nil, firstPause
			continue
		}
		if !p.bury(child, pause) {
			continue // it does not listen yet: its daemon may have been killed just now
		}
		if err := p.conclude(); err != nil {
			p.m.opts.Log.Error("record what became of a process", "process", p.id, "err", err)
		}
		return
	}
	p.leave(child)
}

// How long is waited for a keeper that lives and does not listen.
const (
	firstPause = time.Millisecond
	lastPause  = time.Second
)

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
func (p *proc) dialWatch() *net.UnixConn {
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

// listenTo hears what the keeper tells, until it hangs up or can have another
// process. Then the connection is as good as new, and it returns where the journal
// ends; else zero.
func (p *proc) listenTo(conn *net.UnixConn) (end int64) {
	stop := context.AfterFunc(p.m.ctx, func() { conn.Close() })
	p.setWatch(conn)
	end = p.hear(conn)
	p.setWatch(nil)
	p.setReading(false) // or nobody knows
	if stop() && end > 0 {
		return end
	}
	conn.Close()
	return 0
}

// hear returns where the journal ends when the keeper is free, and zero when it
// hangs up.
func (p *proc) hear(conn *net.UnixConn) int64 {
	lines := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return 0
		}
		switch r, _ := record.Parse(line); r.Kind {
		case keeper.Changed:
			p.tell(r.Int("at"))
		case keeper.Size:
			p.setWatch(conn)
		case keeper.Reading:
			p.setReading(r.Flag("yes"))
		case keeper.Free:
			return r.Int("at")
		}
	}
}

// tell reads the journal up to an offset, for whoever waits.
func (p *proc) tell(until int64) {
	if err := p.reload(until); err != nil {
		p.m.opts.Log.Error("read the journal", "process", p.id, "err", err)
	}
}

func (p *proc) setReading(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = yes
	p.broadcastLocked()
}

// setWatch wakes those who wait for output; they look, and ask again.
func (p *proc) setWatch(conn *net.UnixConn) {
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

// bury waits for a while until the keeper is dead, and reports whether it is.
func (p *proc) bury(child *os.Process, pause time.Duration) bool {
	if child != nil { // it has hung up, so it is about to end
		child.Wait()
		return true
	}
	c, err := p.readClaim()
	if err != nil || c.Kind != keeper.Claimed {
		return true
	}
	ctx, cancel := context.WithTimeout(p.m.ctx, pause)
	defer cancel()
	return awaitDeath(ctx, claimant(c)) == nil
}

// readClaim returns who decided about the process. That of a keeper is among the
// first lines of its journal.
func (p *proc) readClaim() (c record.Record, err error) {
	text, err := os.ReadFile(p.path(keeper.ClaimFile))
	if err != nil {
		return c, err
	}
	record.Each(text, func(r record.Record) {
		if c.Kind == "" && (r.Kind == keeper.Claimed || r.Kind == keeper.Abandoned) {
			c = r
		}
	})
	if c.Kind == "" {
		err = fmt.Errorf("%w claim %s", ErrInvalid, p.path(keeper.ClaimFile))
	}
	return c, err
}

// settle decides whether a process that was found on disk was ever begun. If
// nobody claimed it, we do: then no keeper can begin it any more.
func (p *proc) settle() (begun bool, err error) {
	c, err := p.readClaim()
	if errors.Is(err, os.ErrNotExist) {
		mine := record.New(keeper.Abandoned).With("boot", p.m.boot)
		_, err = claim(p.dir, mine)
		p.m.failHere("abandoned")
		if err == nil {
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
	if err := p.reread(); err != nil {
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
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "it said nothing"
	}
	return "it said " + strconv.Quote(string(text[:min(len(text), 500)]))
}
