package daemon

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// oneProcess is a workspace with one process, which runs until it is interrupted.
type oneProcess struct {
	workspace.Processes
	info  process.Info
	ended chan struct{}
}

func (p *oneProcess) Find(context.Context, process.Owner, string) (process.Info, error) {
	return p.info, nil
}

func (p *oneProcess) Interrupt(context.Context, process.Owner, process.ID) (process.Info, error) {
	close(p.ended)
	return p.info, nil
}

// A command whose turn was stopped while its workspace was away is ended when the workspace
// is back, also if nobody uses or watches its session any more.
func TestAStopIsCarriedOutWithoutTheSession(t *testing.T) {
	address := filepath.Join(t.TempDir(), "sock")
	registry := workspaces.New(workspaces.Options{})
	at := newSessionWorkspaces(registry, func(event.SessionID) (ownFolder, error) { return ownFolder{}, errors.New("there is no folder") })
	at.chosen["s"] = &event.Workspace{Address: "unix:" + address}
	tools := &toolbox{workspaces: at, commands: bash.New(bash.Options{Processes: routedProcesses{at}})}
	engine, stop := context.WithCancel(t.Context())
	defer func() {
		stop()
		tools.later.Wait()
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := tools.endTask(engine, "s", "key"); !errors.Is(err, workspace.ErrAway) {
		t.Fatalf("the stop of a command in a workspace that is away: %v", err)
	}
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &oneProcess{info: process.Info{ID: process.IDOf("s", "key"), Owner: "s", Key: "key", State: process.Running}, ended: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: workspace.Workspace{Processes: p}}).Serve(engine, l) }()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Error("the command was not ended when its workspace was back")
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
