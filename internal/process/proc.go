package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/outlog"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
)

// A proc is one process that the manager knows. Its journal is the truth; this
// is what was read of it.
type proc struct {
	m     *Manager
	id    ID
	dir   string
	birth birth

	mu           sync.Mutex
	changed      chan struct{} // closed when something is new
	story        story
	read         int64 // bytes of the journal
	failed       error // why nothing was begun
	watch        *net.UnixConn
	armed        bool
	reading      bool // the keeper says that it waits for somebody to type
	survivorPIDs []int
}

func (m *Manager) newProc(id ID, b birth) *proc {
	return &proc{
		m: m, id: id, dir: filepath.Join(m.dir, string(id)), birth: b,
		changed: make(chan struct{}), story: story{state: Starting},
	}
}

func (p *proc) path(file string) string { return filepath.Join(p.dir, file) }

// broadcastLocked wakes everybody who waits.
func (p *proc) broadcastLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// reload reads what is new in the journal, up to an offset: the keeper has made
// sure of what comes before it, and may just be syncing what comes after it.
// Keepers of old daemons tell no offset.
func (p *proc) reload(until int64) error {
	if until == 0 {
		until = math.MaxInt64
	}
	f, err := os.Open(p.path(keeper.StateFile))
	if err != nil {
		return err
	}
	defer f.Close()
	return p.readFrom(f, until)
}

// reread reads all of the journal that is new, after making sure that it is on
// disk: whoever wrote it may not have come to that.
func (p *proc) reread() error {
	f, err := os.Open(p.path(keeper.StateFile))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return p.readFrom(f, math.MaxInt64)
}

// readFrom reads whole lines of the journal, and tells everybody.
func (p *proc) readFrom(f *os.File, until int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := io.ReadAll(io.NewSectionReader(f, p.read, max(until-p.read, 0)))
	if err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	record.Each(text, p.story.tell)
	p.read += int64(len(text))
	p.broadcastLocked()
	return nil
}

// note writes to the journal, so that it survives the machine, and reads it again.
func (p *proc) note(r record.Record) error {
	if err := p.append(r); err != nil {
		return err
	}
	return p.reread()
}

// jot writes to the journal what would be no loss if the machine failed.
func (p *proc) jot(r record.Record) error {
	if err := p.append(r); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.story.tell(r)
	p.broadcastLocked()
	return nil
}

func (p *proc) append(r record.Record) error {
	f, err := os.OpenFile(p.path(keeper.StateFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// Half a line may be there, from a keeper that was killed while it wrote.
	_, err = f.Write(append([]byte("\n"), r.WithInt("time", time.Now().UnixNano()).Line()...))
	return err
}

// now returns the story so far and what will be closed when it goes on.
func (p *proc) now() (story, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.story, p.changed
}

// await blocks until the story has come to some point.
func (p *proc) await(ctx context.Context, until func(*story) bool) error {
	for {
		s, changed := p.now()
		if until(&s) {
			return nil
		}
		if err := p.failure(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for process %s: %w", p.id, context.Cause(ctx))
		case <-p.m.ctx.Done():
			return ErrClosed
		}
	}
}

func (p *proc) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// info returns what is known.
func (p *proc) info() Info {
	p.mu.Lock()
	st, survivors, reading := p.story, p.survivorPIDs, p.reading
	p.mu.Unlock()
	s := p.birth.spec
	i := Info{
		ID: p.id, Key: s.Key, Owner: s.Owner, Command: s.Command, Args: s.Args, Dir: s.Dir, Title: s.Title,
		Class: s.Class, TTY: s.TTY != nil, Stdin: s.Stdin,
		State: st.state, Reason: st.reason, PID: st.pid, Created: p.birth.time, Started: st.started, Ended: st.ended,
		Reading: reading && !st.state.Ended(), Exit: st.exit, Lingering: st.lingering, Gone: st.gone, Survivors: survivors, Seen: st.seen, Dropped: st.dropped,
		Output: p.output(st),
		Files:  Files{Dir: p.dir, Output: p.path(output.DataFile(0))},
	}
	return i
}

// output counts what was written. After the end that is in the journal.
func (p *proc) output(st story) Output {
	if st.totals != nil {
		t := *st.totals
		return Output{t.Bytes, t.Stdout, t.Bytes - t.Stdout, t.Bytes - st.kept}
	}
	var o Output
	outlog.Retry(p.dir, nil, func(l *outlog.Log) error {
		t, err := l.Count()
		o = Output{t.Bytes, t.Stdout, t.Bytes - t.Stdout, t.Bytes - l.Kept()}
		return err
	})
	return o
}

// adopt finds a process that was started before. What is wrong with one is no
// reason not to find the others.
func (m *Manager) adopt(id ID) {
	dir := filepath.Join(m.dir, string(id))
	b, err := readBirth(dir)
	if err != nil {
		m.adoptStranger(id, dir, err)
		return
	}
	p := m.newProc(id, b)
	begun, err := p.settle()
	if err == nil && begun {
		err = p.recall()
	}
	switch {
	case err != nil:
		m.opts.Log.Error("the files of a process are damaged", "process", id, "err", err)
		p.story = story{state: Lost, reason: "its files are damaged: " + err.Error(), ended: time.Now(), lost: true, gone: true}
	case !begun:
		m.discard(id)
		return
	}
	m.procs[id] = p
	if p.story.dropped {
		outlog.Remove(p.dir) // or the next time: the daemon that dropped it may have been killed before it did
	}
	if !p.story.gone {
		m.work.Go(func() { p.follow(nil) })
	}
}

// recall reads the journal of a process that was found. If it ended only now, it
// is made sure that this is on disk; the system has done so with what is older.
func (p *proc) recall() error {
	err := p.reload(0)
	if s := &p.story; err == nil && s.state.Ended() && time.Since(s.ended) < time.Minute {
		err = p.reread()
	}
	return err
}

// adoptStranger looks at a folder without a whole spec, and removes it if nothing
// runs there.
func (m *Manager) adoptStranger(id ID, dir string, err error) {
	if nothingRuns(dir, errors.Is(err, os.ErrNotExist)) {
		m.discard(id)
		return
	}
	m.opts.Log.Error("a process has no owner any more, its files are left as they are", "process", id, "err", err)
}

// nothingRuns reports whether a folder without a whole spec can be removed. If
// nobody claimed it the spec was never synced, and nothing was begun. A spec that is
// missing was removed by a daemon of an older version, which removed it before
// anything else: either nothing was begun, or the process was gone.
func nothingRuns(dir string, specIsMissing bool) bool {
	text, err := os.ReadFile(filepath.Join(dir, keeper.ClaimFile))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	var s story
	record.Each(text, func(r record.Record) { // the claim of a keeper is its journal
		s.tell(r)
		s.gone = s.gone || r.Kind == keeper.Abandoned
	})
	return specIsMissing && s.gone
}

func readBirth(dir string) (birth, error) {
	text, err := os.ReadFile(filepath.Join(dir, keeper.SpecFile))
	if err != nil {
		return birth{}, err
	}
	r, err := record.Parse(bytes.TrimSpace(text))
	if err != nil {
		return birth{}, fmt.Errorf("%w spec: %w", ErrInvalid, err)
	}
	return parseBirth(r)
}

// discard removes the folder of a start that did not happen. If that fails the
// next Open does it.
func (m *Manager) discard(id ID) {
	dir, err := m.setAside(id)
	if err != nil { // a full disk may have no space for another name
		dir = filepath.Join(m.dir, string(id))
	}
	if err := m.removeFolder(dir); err != nil {
		m.opts.Log.Warn("remove what is left of a process", "process", id, "err", err)
	}
}

// setAside gives the folder of a process a name that the next Open removes. This
// is the first step of every removal: before it the process is known in full, and
// after it its key is free, whatever becomes of the daemon.
func (m *Manager) setAside(id ID) (away string, err error) {
	away = filepath.Join(m.dir, discarded+string(id)+rand.Text())
	err = os.Rename(filepath.Join(m.dir, string(id)), away)
	m.failHere("renamed")
	return away, err
}

// removeFolder removes a folder that no process has, or has no longer. A keeper may
// be about to claim it. The spec goes first: a keeper that makes a claim after the
// one before was removed looks for the spec, and without one runs nothing.
func (m *Manager) removeFolder(dir string) error {
	if err := os.Remove(filepath.Join(dir, keeper.SpecFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.failHere("unspecified")
	return os.RemoveAll(dir)
}

// discarded begins the names of folders that are being removed.
const discarded = "gone."

// isID reports whether a name was made by idOf. Other names in the folder are
// not ours.
func isID(name string) bool {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	return len(name) == len(idOf("", "")) && name[0] == 'p' && strings.Trim(name[1:], digits) == ""
}
