package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/tool/bash"
)

// tasks shows clients the commands of sessions.
type tasks struct{ *toolbox }

// shown returns the commands for clients; nil if the system does not support durable
// commands.
func (t *toolbox) shown() rpc.Tasks {
	if t.commands == nil {
		return nil
	}
	return tasks{t}
}

// List returns the commands of a session, or of all, the oldest first.
func (t tasks) List(ctx context.Context, id event.SessionID) ([]api.Task, error) {
	owners := []event.SessionID{id}
	if id == "" {
		owners = nil
		for _, p := range t.processes.All() {
			owners = append(owners, event.SessionID(p.Owner))
		}
		slices.Sort(owners)
		owners = slices.Compact(owners)
	}
	var list []api.Task
	for _, owner := range owners {
		all, err := t.commands.Tasks(ctx, owner)
		if err != nil {
			return nil, fmt.Errorf("commands of session %s: %w", owner, err)
		}
		for _, task := range all {
			list = append(list, described(owner, task))
		}
	}
	slices.SortStableFunc(list, func(a, b api.Task) int { return strings.Compare(a.Started, b.Started) })
	return list, nil
}

// described returns a command as clients see it.
func described(id event.SessionID, t bash.Task) api.Task {
	p := t.Process
	d := api.Task{
		SessionID: id, TaskID: t.ID, Command: p.Command, Description: p.Title, Dir: p.Dir, Status: t.Status(), Reason: p.Reason,
		PID: p.PID, Started: stamp(p.Started), Ended: stamp(p.Ended), Bytes: p.Output.Bytes, Omitted: p.Output.Omitted, Lingering: p.Lingering,
	}
	if p.Exit != nil {
		d.ExitCode, d.Signal = &p.Exit.Code, p.Exit.Signal
	}
	return d
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return event.FormatTime(t)
}

// find returns a command that a client names.
func (t tasks) find(ctx context.Context, id event.SessionID, name string) (bash.Task, error) {
	task, err := t.commands.Task(ctx, id, name)
	if errors.Is(err, process.ErrNotFound) {
		err = fmt.Errorf("session %s has no task %q; list the tasks with: abide ps --all", id, name)
	}
	return task, err
}

// Output returns a part of a command's output.
func (t tasks) Output(ctx context.Context, p api.TaskOutputParams) (api.TaskOutputResult, error) {
	task, err := t.find(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return api.TaskOutputResult{}, err
	}
	if p.Tail > 0 {
		p.Offset = max(0, task.Process.Output.Bytes-p.Tail)
	}
	request := process.ReadRequest{Offset: p.Offset, Wait: p.Wait}
	switch p.Stream {
	case process.Stdout.String():
		request.Stream = process.Stdout
	case process.Stderr.String():
		request.Stream = process.Stderr
	}
	chunk, err := t.processes.Read(ctx, task.Process.Owner, task.Process.ID, request)
	if err != nil {
		return api.TaskOutputResult{}, err
	}
	if chunk.End { // the status has changed since find
		if task, err = t.find(ctx, p.SessionID, p.TaskID); err != nil {
			return api.TaskOutputResult{}, err
		}
	}
	return api.TaskOutputResult{
		Data: chunk.Data, Next: chunk.Next, Omitted: chunk.Omitted, End: chunk.End, Task: described(p.SessionID, task),
	}, nil
}

// Stop stops a command and all its processes.
func (t tasks) Stop(ctx context.Context, id event.SessionID, name string) (api.Task, error) {
	task, err := t.find(ctx, id, name)
	if err != nil {
		return api.Task{}, err
	}
	task.Process, err = t.processes.Stop(ctx, task.Process.Owner, task.Process.ID)
	return described(id, task), err
}

// Of returns the commands of a session that calls with the given keys have started.
func (t tasks) Of(ctx context.Context, id event.SessionID, keys []string) ([]api.Task, error) {
	all, err := t.commands.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []api.Task
	for _, task := range all {
		if slices.Contains(keys, task.Process.Key) {
			list = append(list, described(id, task))
		}
	}
	return list, nil
}

// stopTask returns what ends the command of a call; nil if the system does not support
// durable commands.
func (t *toolbox) stopTask() func(context.Context, event.SessionID, string) error {
	if t.commands == nil {
		return nil
	}
	return t.commands.Stop
}
