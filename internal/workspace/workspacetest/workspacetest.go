// Package workspacetest tests the promises of a workspace, for every implementation.
package workspacetest

import (
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// A Fixture is a workspace under test, and its folder.
type Fixture struct {
	workspace.Files
	Dir string

	// Hold keeps answers from reaching the client, and Cut breaks its connections. They
	// are nil if there is no connection.
	Hold, Cut func()
	// Restart stops the server and the process manager of the workspace, and starts
	// both again.
	Restart func(t *testing.T)

	mu        sync.Mutex
	processes workspace.Processes
}

// Use sets the workspace that is tested from now on.
func (p *Fixture) Use(ws workspace.Workspace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Files == nil {
		p.Files = ws.Files
	}
	p.processes = ws.Processes
}

func (p *Fixture) run() workspace.Processes {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.processes
}

// Open creates a workspace for a test, which is closed at the end of the test.
type Open func(t *testing.T) *Fixture

// MaxRunning is the maximum number of processes of an owner in a workspace of a test.
const MaxRunning = 12

// Manager opens the process manager of a test in a folder.
func Manager(t *testing.T, dir string) *process.Manager {
	t.Helper()
	m, err := process.Open(dir, process.Options{
		MaxRunning: MaxRunning, Grace: 100 * time.Millisecond,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"},
	})
	must(t, err)
	return m
}
