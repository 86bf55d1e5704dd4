package daemon

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
)

// shell returns the runner of commands of clients; nil if the system does not support
// durable commands.
func (t *toolbox) shell() rpc.Shell {
	if t.commands == nil {
		return nil
	}
	return tasks{t}
}

// Exec starts a command of a client.
func (t tasks) Exec(ctx context.Context, r rpc.Run) (api.Task, error) {
	env, err := t.commands.Environment(ctx, tool.Call{Session: r.Session, Env: r.Env})
	if err != nil {
		return api.Task{}, err
	}
	profile := sandbox.None
	if r.Sealed {
		profile = sandbox.Sealed
	}
	spec := process.Spec{
		Key: r.Key, Owner: t.commands.Owner(r.Session), Command: r.Command, Dir: r.Dir, Title: "of a client", Class: process.OneShot,
		Env: env, Limits: process.Limits{Time: r.Limit}, Profile: profile,
	}
	if err := t.settle(ctx, &spec); err != nil {
		return api.Task{}, err
	}
	info, _, err := t.commands.Processes.Start(ctx, spec)
	if err != nil {
		return api.Task{}, fmt.Errorf("the command did not start: %w", err)
	}
	return described(r.Session, bash.Task{ID: string(info.ID), Process: info}), nil
}

// Await waits for the end of a command.
func (t tasks) Await(ctx context.Context, id event.SessionID, name string) (int, error) {
	info, err := t.commands.Processes.Wait(ctx, t.commands.Owner(id), process.ID(name))
	for workspace.Unusable(err) && ctx.Err() == nil { // the client is told when the workspace is back
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
		info, err = t.commands.Processes.Wait(ctx, t.commands.Owner(id), process.ID(name))
	}
	if err != nil {
		return 0, err
	}
	if info.Exit == nil {
		return -1, nil // the exit code of the command was lost
	}
	return info.Exit.Code, nil
}

// Kill sends a signal to a command.
func (t tasks) Kill(ctx context.Context, id event.SessionID, name string, signal int) (bool, error) {
	info, err := routedProcesses{t.workspaces}.Get(ctx, t.commands.Owner(id), process.ID(name))
	if errors.Is(err, process.ErrNotFound) || (err == nil && info.State.Ended()) {
		return false, nil
	}
	if err == nil {
		err = routedProcesses{t.workspaces}.Signal(ctx, t.commands.Owner(id), process.ID(name), syscall.Signal(signal))
	}
	return err == nil, err
}
