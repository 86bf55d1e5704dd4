package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// Start runs a command, or finds the one that was started with the same key;
// then attached is true. It returns when it is known that the command runs.
// The error of one that does not is a *StartError, now and for every later
// attempt with its key. If ctx ends first the state is Starting or nothing was
// begun, and the same call later says how it went.
func (m *Manager) Start(ctx context.Context, spec Spec) (info Info, attached bool, err error) {
	if spec, err = m.opts.complete(spec); err != nil {
		return Info{}, false, err
	}
	p, attached, err := m.reserve(spec)
	if err != nil {
		return Info{}, false, err
	}
	if !attached {
		if err := p.begin(ctx, spec); err != nil {
			return Info{}, false, fmt.Errorf("start: %w", err)
		}
		time.AfterFunc(shortCommand, m.hireSpare)
	}
	err = p.await(ctx, func(s *story) bool { return s.state != Starting })
	if err != nil && p.failure() != nil {
		return Info{}, false, err // it never was
	}
	info = p.info()
	if info.State == FailedToStart {
		err = &StartError{p.id, info.Reason}
	}
	return info, attached, err
}

// reserve finds the process of a key or makes a place for it. Who makes it has
// to begin it.
func (m *Manager) reserve(spec Spec) (p *proc, attached bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	id := idOf(spec.Owner, spec.Key)
	if p := m.procs[id]; p != nil {
		if !sameCommand(p.birth.spec, spec) {
			return nil, false, fmt.Errorf("key %q: %w", spec.Key, ErrConflict)
		}
		return p, true, nil
	}
	if err := m.checkCapsLocked(spec); err != nil {
		return nil, false, err
	}
	p = m.newProc(id, birth{spec: spec, time: time.Now(), boot: m.boot, marker: string(id) + "-" + rand.Text()})
	p.birth.spec.Env = nil
	m.procs[id] = p
	m.work.Add(1)
	return p, false, nil
}

// begin starts the keeper. Until it may go nothing can have happened, and an error
// leaves nothing behind.
func (p *proc) begin(ctx context.Context, spec Spec) (err error) {
	defer p.m.work.Done()
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		p.dismiss(err) // if there is a folder it is not ours to remove
		return err
	}
	defer func() {
		if err != nil {
			p.forsake(err)
		}
	}()
	if err := p.write(); err != nil {
		return err
	}
	p.m.failHere("unsynced")
	k, err := p.m.hire()
	if err != nil {
		return err
	}
	err = p.launch(k, p.m.opts.launch(p.birth, spec).Line())
	if err == nil {
		err = p.sync() // while the keeper starts and gets ready
	}
	p.m.failHere("synced")
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		_, err = k.conn.Write(record.New(keeper.Go).Line())
	}
	if err != nil {
		k.dismiss()
		return err
	}
	p.m.work.Go(func() { p.follow(k.conn, k.child) })
	return nil
}

// forsake forgets a start of which nothing happened.
func (p *proc) forsake(err error) {
	p.m.discard(p.id)
	p.dismiss(err)
}

// dismiss tells whoever waits that there is no process.
func (p *proc) dismiss(err error) {
	p.m.mu.Lock()
	delete(p.m.procs, p.id)
	p.m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = fmt.Errorf("start: %w", err)
	p.broadcastLocked()
}

// write fills the folder of the process.
func (p *proc) write() error {
	if err := writeNew(p.path(keeper.SpecFile), p.birth.record().Line()); err != nil {
		return err
	}
	state, err := os.OpenFile(p.path(keeper.StateFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	return reserveDisk(state, journalSize)
}

// journalSize is the disk that a journal has from the start, so that the end of
// a command is recorded on a full disk too.
const journalSize = 16 << 10

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// sync brings the start to disk: the spec, its name, and the folder's name. All
// at once, since the system then writes them together.
func (p *proc) sync() error {
	paths := []string{p.path(keeper.SpecFile), p.dir, p.m.dir}
	errs := make([]error, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		all.Go(func() { errs[i] = syncPath(path) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// launch tells a keeper what to run, and gives it the folder.
func (p *proc) launch(k *newKeeper, line []byte) error {
	dir, err := os.Open(p.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	state, err := os.OpenFile(p.path(keeper.StateFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer state.Close()
	return sendFiles(k.conn, line, dir, state)
}
