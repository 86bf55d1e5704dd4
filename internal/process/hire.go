package process

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
)

// A newKeeper waits for its launch, or is about to. Until it may go it ends when
// the connection does.
type newKeeper struct {
	conn  *net.UnixConn
	child *os.Process
}

// hire returns a keeper: the spare one if there is one. It takes a program longer
// to start than a shell to run a command, so one is kept in reserve from the first
// command on: one whose command has ended, or a new one.
func (m *Manager) hire() (*newKeeper, error) {
	m.mu.Lock()
	spare := m.spare
	m.spare = nil
	m.mu.Unlock()
	if spare == nil {
		return startKeeper()
	}
	if hungUp(spare.conn) { // somebody has killed it
		spare.dismiss()
		return startKeeper()
	}
	return spare, nil
}

// shortCommand is how long a command may take for the next keeper to be started
// after it.
const shortCommand = 50 * time.Millisecond

// hireSpare starts a keeper for the next command, unless there is one.
func (m *Manager) hireSpare() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spare != nil || m.hiring || m.closed {
		return
	}
	m.hiring = true
	m.work.Go(func() {
		k, err := startKeeper()
		m.mu.Lock()
		m.hiring = false
		m.mu.Unlock()
		if err == nil { // otherwise the next command starts its own, or says why that is impossible
			m.reserve(k)
		}
	})
}

// reserve keeps a keeper for the next command, unless there is one.
func (m *Manager) reserve(k *newKeeper) {
	m.mu.Lock()
	full := m.spare != nil
	if !full {
		m.spare = k
	}
	m.mu.Unlock()
	if full {
		k.dismiss()
	}
}

// dismiss sends a keeper away that may not go.
func (k *newKeeper) dismiss() {
	k.conn.Close()
	k.child.Wait()
}

// startKeeper starts this program again as a keeper.
func startKeeper() (*newKeeper, error) {
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
		Env:   []string{"GOMAXPROCS=2", "GOGC=10"}, // small: there may be hundreds
		Files: []*os.File{null, null, null, theirs},
		Sys:   ownSession(),
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	return &newKeeper{ours, child}, nil
}
