package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A server that others have taken for dead, and that has not noticed, neither writes a file in a
// workspace elsewhere nor stops a command there, once the next server has begun to work there.
func TestAStaleServerChangesNoWorkspace(t *testing.T) {
	db := postgrestest.Start(t)
	key, address, dir := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "sock"), t.TempDir()
	m, err := process.Open(filepath.Join(t.TempDir(), "processes"), process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: local.New(dir, m)}).Serve(ctx, l) }()
	defer func() { stop(); <-served }()
	server := func(name string) (*sessionWorkspaces, *postgres.Store) {
		pace := postgres.Pace{Beat: time.Hour, Suspend: time.Hour, Dead: time.Hour}
		s, err := postgres.Join(t.Context(), db.SchemaURL("stale"), eventlog.Options{KeyFile: key}, postgres.Server{Machine: name, Address: name}, pace)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		registry := workspaces.New(workspaces.Options{})
		t.Cleanup(func() { registry.Close() })
		at := newSessionWorkspaces(registry, nil)
		at.chosen["s"] = &event.Workspace{Address: "unix:" + address}
		at.fence = (&engine{shared: s}).fence()
		return at, s
	}
	old, owner := server("old")
	next, _ := server("next")
	started, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: "begun"})
	if err != nil {
		t.Fatal(err)
	}
	batch := eventlog.Batch{Events: []event.Event{started}, Info: &eventlog.Info{Workspace: old.chosen["s"]}}
	if _, err := owner.Append(t.Context(), "s", batch); err != nil {
		t.Fatal(err)
	}
	p, _, err := routedProcesses{old}.Start(t.Context(), process.Spec{Key: "k", Owner: "s", Command: "cat", Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop(context.Background(), "s", p.ID)
	write := func(at *sessionWorkspaces, text string) error {
		ws, err := at.of(t.Context(), "s")
		if err != nil {
			return err
		}
		return ws.Files.WriteFile(t.Context(), workspace.At(filepath.Join(dir, "file")), []byte(text), workspace.WriteOptions{})
	}
	if err := write(next, "next"); !errors.Is(err, eventlog.ErrNotOwner) {
		t.Errorf("a server writes for a session that it does not own: %v", err)
	}
	db.Exec(t, "stale", "DELETE FROM owners") // as when the old server was found dead and buried
	if err := write(next, "next"); err != nil {
		t.Fatal(err)
	}
	if err := write(old, "old"); !errors.Is(err, workspace.ErrFenced) {
		t.Errorf("a stale server writes: %v", err)
	}
	if _, err := (routedProcesses{old}).Stop(t.Context(), "s", p.ID); !isOfAnotherServer(err) {
		t.Errorf("a stale server stops a command: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "next" {
		t.Errorf("the file says %q, %v", text, err)
	}
	if info, err := (routedProcesses{next}).Get(t.Context(), "s", p.ID); err != nil || info.State != process.Running {
		t.Errorf("the command is %+v, %v", info, err)
	}
	if _, err := (routedProcesses{next}).Stop(t.Context(), "s", p.ID); err != nil {
		t.Errorf("the owner stops it: %v", err)
	}
}
