package process

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
)

// A keeperProcess is a keeper that waits for its launch, or is about to. Until it gets
// the Go record it ends when the connection is closed.
type keeperProcess struct {
	conn  *net.UnixConn
	child *os.Process
}

// takeKeeper returns the spare keeper, or a new one if there is none. Starting a program
// takes longer than running a short command in a shell, so from the first command
// on one keeper is spare: one whose command has ended, or a new one.
func (m *Manager) takeKeeper() (*keeperProcess, error) {
	m.mu.Lock()
	spare := m.spareKeeper
	m.spareKeeper = nil
	m.mu.Unlock()
	if spare == nil {
		return startKeeper()
	}
	if hungUp(spare.conn) { // the spare keeper was killed
		spare.end()
		return startKeeper()
	}
	return spare, nil
}

// shortCommand is the time that a command gets to end, and its keeper to become the
// spare one, before another keeper is started as the spare one.
const shortCommand = 50 * time.Millisecond

// startSpareKeeper starts a spare keeper in the background, unless there is one.
func (m *Manager) startSpareKeeper() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spareKeeper != nil || m.startingKeeper || m.closed {
		return
	}
	m.startingKeeper = true
	m.work.Go(func() {
		k, err := startKeeper()
		m.mu.Lock()
		m.startingKeeper = false
		m.mu.Unlock()
		if err == nil { // otherwise the next start tries again, and reports the error
			m.keepSpare(k)
		}
	})
}

// keepSpare makes a keeper the spare one, or ends it if there is one already.
func (m *Manager) keepSpare(k *keeperProcess) {
	m.mu.Lock()
	full := m.spareKeeper != nil
	if !full {
		m.spareKeeper = k
	}
	m.mu.Unlock()
	if full {
		k.end()
	}
}

// end ends a keeper that was not told to run its command.
func (k *keeperProcess) end() {
	k.conn.Close()
	k.child.Wait()
}

// startKeeper starts this program again as a keeper.
func startKeeper() (*keeperProcess, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer null.Close()
	child, err := os.StartProcess("/proc/self/exe", []string{keeper.Name}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=2", "GOGC=10"}, // keeps memory small: there may be hundreds of keepers
		Files: []*os.File{null, null, null, theirs},
		Sys:   ownSession(),
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	return &keeperProcess{ours, child}, nil
}
