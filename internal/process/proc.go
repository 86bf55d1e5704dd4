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
	"github.com/abide-run/abide/internal/process/sandbox"
)

// A proc is one process that the manager knows. The journal on disk is the truth;
// a proc holds what was read from it.
type proc struct {
	m     *Manager
	id    ID
	dir   string
	start startInfo

	ending sync.Mutex // held while the processes of a lost command are ended

	mu           sync.Mutex
	changed      chan struct{} // closed, and replaced, when a field below changes
	status       status
	read         int64         // number of bytes of the journal that status includes
	failed       error         // reason why the command was never started; nil unless that is so
	watch        *net.UnixConn // connection on which the keeper reports changes; nil if there is none
	armed        bool          // true if the keeper was asked to report the next output
	reading      bool          // true while the keeper reports that the command waits for somebody to type
	survivorPIDs []int
}

func (m *Manager) newProc(id ID, b startInfo) *proc {
	return &proc{
		m: m, id: id, dir: filepath.Join(m.dir, string(id)), start: b,
		changed: make(chan struct{}), status: status{state: Starting},
	}
}

func (p *proc) path(file string) string { return filepath.Join(p.dir, file) }

// broadcastLocked wakes all callers that wait for a change.
func (p *proc) broadcastLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// reload reads the new records of the journal up to an offset: the keeper has
// synced what comes before it, and may not have synced what comes after it.
// Keepers of old daemons report no offset, which is zero.
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

// reread syncs the journal and then reads all its new records: their writer may
// have been killed before it synced them.
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

// readFrom reads the new lines of the journal that are complete, and wakes waiters.
func (p *proc) readFrom(f *os.File, until int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := io.ReadAll(io.NewSectionReader(f, p.read, max(until-p.read, 0)))
	if err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	record.Each(text, p.status.apply)
	p.read += int64(len(text))
	p.broadcastLocked()
	return nil
}

// note appends a record to the journal and syncs it, so that it survives a crash of
// the machine.
func (p *proc) note(r record.Record) error {
	if err := p.append(r); err != nil {
		return err
	}
	return p.reread()
}

// noteUnsynced appends a record to the journal without syncing it: it may be lost if the
// machine crashes.
func (p *proc) noteUnsynced(r record.Record) error {
	if err := p.append(r); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.apply(r)
	p.broadcastLocked()
	return nil
}

func (p *proc) append(r record.Record) error {
	f, err := os.OpenFile(p.path(keeper.StateFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	// The journal may end with half a line, if a keeper was killed while it wrote.
	_, err = f.Write(append([]byte("\n"), r.WithInt("time", time.Now().UnixNano()).Line()...))
	return err
}

// now returns the status so far, and a channel that is closed at the next change.
func (p *proc) now() (status, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status, p.changed
}

// await blocks until the status meets a condition.
func (p *proc) await(ctx context.Context, until func(*status) bool) error {
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

// info returns what is known about the process.
func (p *proc) info() Info {
	p.mu.Lock()
	st, survivors, reading := p.status, p.survivorPIDs, p.reading
	p.mu.Unlock()
	s := p.start.spec
	i := Info{
		ID: p.id, Key: s.Key, Owner: s.Owner, Command: s.Command, Args: s.Args, Dir: s.Dir, Title: s.Title,
		Class: s.Class, TTY: s.TTY != nil, Stdin: s.Stdin, Pipe: s.Pipe, Profile: s.Profile, Free: s.Profile == sandbox.None && p.m.opts.Sandbox.Confines(),
		State: st.state, Reason: st.reason, PID: st.pid, Created: p.start.time, Started: st.started, Ended: st.ended,
		Reading: reading && !st.state.Ended(), Exit: st.exit, Lingering: st.lingering, Gone: st.gone, Unkept: st.lost && p.start.boot == p.m.boot, Survivors: survivors, Seen: st.seen, Dropped: st.dropped,
		Output: p.output(st),
		Files:  Files{Dir: p.dir, Output: p.path(output.DataFile(0))},
	}
	return i
}

// output counts what the process wrote. After the end the journal has the counts.
func (p *proc) output(st status) Output {
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

// adopt loads a process that was started before. An error concerns this process
// only, so it is logged: the others must still be found.
func (m *Manager) adopt(id ID) {
	dir := filepath.Join(m.dir, string(id))
	b, err := readStartInfo(dir)
	if err != nil {
		m.adoptWithoutSpec(id, dir, err)
		return
	}
	p := m.newProc(id, b)
	begun, err := p.resolveClaim()
	if err == nil && begun {
		err = p.loadJournal()
	}
	switch {
	case err != nil:
		m.opts.Log.Error("the files of a process are damaged", "process", id, "err", err)
		p.status = status{state: Lost, reason: "its files are damaged: " + err.Error(), ended: time.Now(), lost: true, gone: true}
	case !begun:
		m.discard(id)
		return
	}
	m.procs[id] = p
	if p.status.dropped {
		outlog.Remove(p.dir) // an earlier daemon may have been killed before it removed the files
	}
	if !p.status.gone {
		m.work.Go(func() { p.follow(nil) })
	}
}

// loadJournal reads the journal of a process that was found. If the process ended less
// than a minute ago the journal is synced first; older records the system has
// written to disk by itself.
func (p *proc) loadJournal() error {
	err := p.reload(0)
	if s := &p.status; err == nil && s.state.Ended() && time.Since(s.ended) < time.Minute {
		err = p.reread()
	}
	return err
}

// adoptWithoutSpec handles a folder without a complete spec: it removes the folder if
// no command can be running there.
func (m *Manager) adoptWithoutSpec(id ID, dir string, err error) {
	if nothingRuns(dir, errors.Is(err, os.ErrNotExist)) {
		m.discard(id)
		return
	}
	m.opts.Log.Error("a process has no owner any more, its files are left as they are", "process", id, "err", err)
}

// nothingRuns reports whether a folder without a complete spec can be removed.
// Without a claim the spec was never synced, and nothing was started. A missing
// spec was removed by a daemon of an older version, which removed it before
// anything else: either nothing was started, or the process was gone.
func nothingRuns(dir string, specIsMissing bool) bool {
	text, err := os.ReadFile(filepath.Join(dir, keeper.ClaimFile))
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	var s status
	record.Each(text, func(r record.Record) { // the claim of a keeper is its journal
		s.apply(r)
		s.gone = s.gone || r.Kind == keeper.Abandoned
	})
	return specIsMissing && s.gone
}

func readStartInfo(dir string) (startInfo, error) {
	text, err := os.ReadFile(filepath.Join(dir, keeper.SpecFile))
	if err != nil {
		return startInfo{}, err
	}
	r, err := record.Parse(bytes.TrimSpace(text))
	if err != nil {
		return startInfo{}, fmt.Errorf("%w spec: %w", ErrInvalid, err)
	}
	return parseStartInfo(r)
}

// discard removes the folder of a process whose command was never started. If that
// fails, the next Open removes it.
func (m *Manager) discard(id ID) {
	dir, err := m.setAside(id)
	if err != nil { // a full disk may have no space for another name
		dir = filepath.Join(m.dir, string(id))
	}
	if err := m.removeFolder(dir); err != nil {
		m.opts.Log.Warn("remove what is left of a process", "process", id, "err", err)
	}
}

// setAside renames the folder of a process to a name that the next Open removes.
// This is the first step of every removal: before it the process is known in full,
// and after it the key is free, even if the daemon is killed.
func (m *Manager) setAside(id ID) (away string, err error) {
	away = filepath.Join(m.dir, removedPrefix+string(id)+rand.Text())
	err = os.Rename(filepath.Join(m.dir, string(id)), away)
	m.failHere("renamed")
	return away, err
}

// removeFolder removes a folder that belongs to no process any more. A keeper may
// be about to claim it, so the spec is removed first: a keeper that claims a folder
// then looks for the spec, and runs nothing if there is none.
func (m *Manager) removeFolder(dir string) error {
	if err := os.Remove(filepath.Join(dir, keeper.SpecFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.failHere("unspecified")
	return os.RemoveAll(dir)
}

// removedPrefix is the prefix of the names of folders that are being removed.
const removedPrefix = "gone."

// isID reports whether a name has the form that idOf returns. Files with other
// names are not ours.
func isID(name string) bool {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	return len(name) == len(idOf("", "")) && name[0] == 'p' && strings.Trim(name[1:], digits) == ""
}
