package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox"
)

// Start runs a command, or finds the one that was started with the same key;
// then attached is true. It returns when the command is known to run. If the
// command could not be executed, the error is a *StartError, now and for every
// later attempt with this key. If ctx ends first, the state is Starting or nothing
// was started, and the same call made later reports the result.
func (m *Manager) Start(ctx context.Context, spec Spec) (info Info, attached bool, err error) {
	if spec, err = m.opts.complete(spec); err != nil {
		return Info{}, false, err
	}
	var how sandbox.Confinement
	if !m.has(spec) {
		if how, err = m.confine(&spec); err != nil {
			return Info{}, false, err
		}
		defer how.Close()
	}
	p, attached, err := m.register(spec)
	if err != nil {
		return Info{}, false, err
	}
	if !attached {
		if err := p.begin(ctx, spec, how); err != nil {
			return Info{}, false, fmt.Errorf("start: %w", err)
		}
		time.AfterFunc(shortCommand, func() {
			if s, _ := p.now(); !s.gone { // otherwise its own keeper became the spare one
				m.startSpareKeeper()
				m.createSpareDirs()
			}
		})
	}
	err = p.await(ctx, func(s *status) bool { return s.state != Starting })
	if err != nil && p.failure() != nil {
		return Info{}, false, err // the process was removed: nothing was started
	}
	info = p.info()
	if info.State == FailedToStart {
		err = &StartError{p.id, info.Reason}
	}
	return info, attached, err
}

// has reports whether the process of a spec was started before.
func (m *Manager) has(spec Spec) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.procs[idOf(spec.Owner, spec.Key)] != nil
}

// confine returns how a command is confined, and sets its profile.
func (m *Manager) confine(spec *Spec) (sandbox.Confinement, error) {
	how := sandbox.Confinement{Env: spec.Env}
	if spec.Free || m.opts.Sandbox == nil && spec.Profile != sandbox.Sealed && !spec.Require && !spec.Offline {
		spec.Profile = sandbox.None
		return how, nil
	}
	root := spec.Root
	if root == "" {
		root = spec.Dir
		if real, err := filepath.EvalSymlinks(root); err == nil { // otherwise the keeper says what is wrong with it
			root = real
		}
	}
	how, err := m.opts.Sandbox.Confine(sandbox.Request{
		Root: root, Env: spec.Env, Writable: spec.Writable, Sealed: spec.Profile == sandbox.Sealed, Repository: spec.Repository,
		Require: spec.Require, Offline: spec.Offline,
	})
	spec.Profile = how.Profile
	return how, err
}

// StartReading starts a program that only has to read, confined as far as commands are. It is
// no process of the manager: the caller waits for it. The manager may be nil.
func (m *Manager) StartReading(cmd *exec.Cmd) error {
	if m == nil {
		return cmd.Start()
	}
	return m.opts.Sandbox.StartReading(cmd)
}

// StartOwn starts a program that the user's own configuration names, confined as commands are.
// It is no process of the manager: the caller waits for it. The manager may be nil.
func (m *Manager) StartOwn(cmd *exec.Cmd) error {
	if m == nil {
		return cmd.Start()
	}
	return m.opts.Sandbox.StartOwn(cmd)
}

// register finds the process of a key, or registers a new one. The caller that
// registered it has to call begin.
func (m *Manager) register(spec Spec) (p *proc, attached bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, ErrClosed
	}
	id := idOf(spec.Owner, spec.Key)
	if p := m.procs[id]; p != nil {
		if !sameCommand(p.start.spec, spec) {
			return nil, false, fmt.Errorf("key %q: %w", spec.Key, ErrConflict)
		}
		return p, true, nil
	}
	if err := m.checkCapsLocked(spec); err != nil {
		return nil, false, err
	}
	p = m.newProc(id, startInfo{spec: spec, time: time.Now(), boot: m.boot, marker: string(id) + "-" + rand.Text()})
	p.start.spec.Env = nil
	m.procs[id] = p
	m.work.Add(1)
	return p, false, nil
}

// begin sends the launch to a keeper. Until the keeper gets the Go record it runs
// nothing, so an error before that leaves nothing behind.
func (p *proc) begin(ctx context.Context, spec Spec, how sandbox.Confinement) (err error) {
	defer p.m.work.Done()
	k, err := p.m.takeKeeper()
	if err != nil {
		p.failStart(err)
		return err
	}
	d, err := p.claimDir() // the keeper starts meanwhile
	if err != nil {
		p.m.keepSpare(k)
		p.failStart(err)
		return err
	}
	defer d.close()
	defer func() {
		if err != nil {
			p.discard(err)
		}
	}()
	p.m.failHere("unsynced")
	files := []*os.File{d.dir, d.state}
	if how.Rules != nil {
		files = append(files, how.Rules)
	}
	err = sendFiles(k.conn, p.m.opts.launch(p.start, spec, how).Line(), files...)
	if err == nil {
		err = d.sync(p.m.folder) // the keeper gets ready meanwhile
	}
	p.m.failHere("synced")
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		_, err = k.conn.Write(record.New(keeper.Go).Line())
	}
	if err != nil {
		k.end()
		return err
	}
	p.m.work.Go(func() { p.follow(k) })
	return nil
}

// discard removes a process whose command was never started, from disk and memory.
func (p *proc) discard(err error) {
	p.m.discard(p.id)
	p.failStart(err)
}

// failStart removes a process from memory and lets the calls that wait for it fail.
func (p *proc) failStart(err error) {
	p.m.mu.Lock()
	delete(p.m.procs, p.id)
	p.m.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = fmt.Errorf("start: %w", err)
	p.broadcastLocked()
}
