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

// follow watches a process until it is gone or the manager is closed. k is the keeper of
// the process; nil if an earlier daemon started the keeper.
func (p *proc) follow(k *keeperProcess) {
	if k == nil {
		p.followByDialling(nil)
		return
	}
	journalEnd := p.watchKeeper(k.conn)
	if journalEnd == 0 {
		p.followByDialling(k.child)
		return
	}
	p.m.keepSpare(k) // the spare keeper is kept before callers learn of the end and start the next command
	p.update(journalEnd)
	p.m.createSpareDirs()
}

// followByDialling connects to the keeper, again and again, and handles its reports. When
// the keeper is dead it records the end of the process. child is the keeper if it is a
// child of this daemon, else nil.
func (p *proc) followByDialling(child *os.Process) {
	for pause := firstPause; p.m.ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if conn := p.dialWatch(); conn != nil {
			p.watchKeeper(conn)
			pause = firstPause
			continue
		}
		if !p.awaitKeeperEnd(child, pause) {
			continue // the keeper does not listen yet: the daemon that started it was killed just now
		}
		if err := p.recordEnd(); err != nil {
			p.m.opts.Log.Error("record what became of a process", "process", p.id, "err", err)
		}
		return
	}
	p.releaseKeeper(child)
}

// Pauses between attempts to connect to a keeper that runs and does not listen;
// each is twice as long as the one before.
const (
	firstPause = time.Millisecond
	lastPause  = time.Second
)

// releaseKeeper lets a keeper run on without this daemon. If the process is gone, the
// keeper is about to end and releaseKeeper waits for that. child may be nil.
func (p *proc) releaseKeeper(child *os.Process) {
	if child == nil {
		return
	}
	if s, _ := p.now(); s.gone {
		child.Wait()
		return
	}
	child.Release()
}

// dialWatch returns a connection on which the keeper reports changes, or nil if the
// keeper does not listen.
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

// watchKeeper handles the reports of a keeper until the process is gone and the keeper is
// free for another command, or until the connection ends. If the keeper is free,
// watchKeeper returns the length of the journal and leaves the connection open;
// otherwise it returns zero. Only the keeper's first connection, on which it got its
// command, reports that it is free.
func (p *proc) watchKeeper(conn *net.UnixConn) (journalEnd int64) {
	stop := context.AfterFunc(p.m.ctx, func() { conn.Close() })
	p.setWatch(conn)
	journalEnd = p.readReports(conn)
	p.setWatch(nil)
	p.setReading(false) // without a connection this is unknown
	if stop() && journalEnd > 0 {
		return journalEnd
	}
	conn.Close()
	return 0
}

// readReports handles reports until the keeper is free; then it returns the length of the
// journal. It returns zero if the connection ends first.
func (p *proc) readReports(conn *net.UnixConn) int64 {
	lines := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return 0
		}
		switch r, _ := record.Parse(line); r.Kind {
		case keeper.Changed:
			p.update(r.Int("at"))
		case keeper.Size: // there is output: callers read it, and arm the keeper again
			p.setWatch(conn)
		case keeper.Reading:
			p.setReading(r.Flag("yes"))
		case keeper.Free:
			return r.Int("at")
		}
	}
}

// update reads the journal up to an offset, which wakes waiters.
func (p *proc) update(until int64) {
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

// setWatch sets the connection to the keeper and wakes the callers that wait for output:
// they read what there is, and arm the keeper for what comes later.
func (p *proc) setWatch(conn *net.UnixConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch, p.armed = conn, false
	p.broadcastLocked()
}

// arm asks the keeper to report, once, that there is output after an offset.
func (p *proc) arm(after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watch == nil || p.armed {
		return
	}
	p.armed = true
	p.watch.Write(record.New(keeper.Arm).WithInt("at", after).Line())
}

// awaitKeeperEnd waits for the keeper to end, and reports whether it has. It waits at
// most pause for a keeper that is not a child of this daemon.
func (p *proc) awaitKeeperEnd(child *os.Process, pause time.Duration) bool {
	if child != nil { // the keeper closed the connection, so it is about to end
		child.Wait()
		return true
	}
	c, err := p.readClaim()
	if err != nil || c.Kind != keeper.Claimed {
		return true // no keeper has claimed the process
	}
	ctx, cancel := context.WithTimeout(p.m.ctx, pause)
	defer cancel()
	return awaitEnd(ctx, claimant(c)) == nil
}

// readClaim returns the claim of a process. A keeper claims the process before it runs the
// command; a daemon claims it so that no keeper can run the command any more. The claim
// of a keeper is among the first lines of its journal.
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

// resolveClaim decides whether the command of a process that was found on disk was ever
// started. If nobody claimed the process, resolveClaim does: then no keeper can start it.
func (p *proc) resolveClaim() (begun bool, err error) {
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
	// Claims are not synced. If the machine restarted after the spec was written, a
	// keeper may have claimed the process and started the command, and the claim was
	// lost.
	return c.Kind == keeper.Claimed || c.Get("boot") != p.start.boot, nil
}

// recordEnd records the end of a process whose keeper is dead.
func (p *proc) recordEnd() error {
	if s, _ := p.now(); s.gone { // its folder may have been removed
		return nil
	}
	if err := p.reread(); err != nil {
		return err
	}
	s, _ := p.now()
	if s.gone {
		return nil
	}
	begun, err := p.resolveClaim()
	if err != nil {
		return err
	}
	if !begun {
		p.discard(errors.New("the keeper ended before the command was begun; " + p.journalText()))
		return nil
	}
	if !s.lost {
		if err := p.note(record.New(keeper.Lost).With("reason", p.lostReason())); err != nil {
			return err
		}
	}
	return p.endSurvivors()
}

func (p *proc) lostReason() string {
	if p.start.boot != p.m.boot {
		return "the machine or container was restarted; how the command ended is not known"
	}
	return "the process that kept the command was killed; how the command ended is not known"
}

// journalText returns the text of the journal, for a keeper that wrote an error there.
func (p *proc) journalText() string {
	text, _ := os.ReadFile(p.path(keeper.StateFile))
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "it said nothing"
	}
	return "it said " + strconv.Quote(string(text[:min(len(text), 500)]))
}
