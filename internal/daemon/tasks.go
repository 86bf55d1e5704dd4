package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/tool/bash/screen"
	"github.com/abide-run/abide/internal/workspace"
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
		var err error
		if owners, err = t.owners(ctx); err != nil {
			return nil, err
		}
	}
	var list []api.Task
	away := make(map[event.Workspace]error) // each workspace that is away is asked once
	for _, owner := range owners {
		all, err := t.ofSession(ctx, owner, away)
		if id == "" && errors.Is(err, eventlog.ErrNotFound) {
			continue // deleted meanwhile, or the log is older than the record; abide audit names that
		}
		if err != nil {
			return nil, fmt.Errorf("commands of session %s: %w", owner, err)
		}
		list = append(list, all...)
	}
	slices.SortStableFunc(list, func(a, b api.Task) int { return strings.Compare(a.Started, b.Started) })
	return list, nil
}

// owners returns the sessions that have commands. Of those in other workspaces it returns
// the ones whose commands run, and the ones that were used since this engine started.
func (t tasks) owners(ctx context.Context) ([]event.SessionID, error) {
	owners := t.workspaces.used()
	for _, p := range t.processes.All() {
		owners = append(owners, event.SessionID(p.Owner))
	}
	for s, err := range t.store.Active(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Info.Workspace != nil && len(s.Info.Watch) > 0 {
			owners = append(owners, s.ID)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}

// ofSession returns the commands of a session. Those whose workspace cannot be reached are
// unreachable, and away remembers why.
func (t tasks) ofSession(ctx context.Context, id event.SessionID, away map[event.Workspace]error) ([]api.Task, error) {
	at, err := t.workspaces.choice(ctx, id)
	if err != nil {
		return nil, err
	}
	if at != nil {
		if why := away[*at]; why != nil {
			return t.unreachable(ctx, id, why)
		}
		hurried, cancel := within(ctx, listTime)
		defer cancel()
		ctx = hurried
	}
	err = t.workspaces.answers(ctx, id)
	var all []bash.Task
	if err == nil {
		all, err = t.commands.Tasks(ctx, id)
	}
	if err = asSilence(err); at != nil && workspace.Unusable(err) {
		away[*at] = err
		return t.unreachable(context.WithoutCancel(ctx), id, err)
	}
	list := make([]api.Task, len(all))
	for i, task := range all {
		list[i] = described(id, task)
	}
	return list, err
}

// listTime is how long a list waits for the commands in another workspace.
const listTime = 5 * time.Second

// unreachable returns the commands of a session that are not known to have ended, as far
// as the log knows them.
func (t tasks) unreachable(ctx context.Context, id event.SessionID, why error) ([]api.Task, error) {
	open, err := t.openCommands(ctx, id, why)
	list := make([]api.Task, len(open))
	for i, c := range open {
		list[i] = c.Task
	}
	return list, err
}

// An openCommand is a command that is not known to have ended, described by the call that
// has started it.
type openCommand struct {
	api.Task
	call, key string
	watched   bool // true if it is a task; otherwise its call waits for it
}

// openCommands reads the open commands of a session from its log.
func (t tasks) openCommands(ctx context.Context, id event.SessionID, why error) ([]openCommand, error) {
	s, err := t.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	watched := make(map[string]bool)
	for _, task := range s.Info.Watch {
		watched[task.Key] = true
	}
	var open []openCommand
	calls := make(map[string]event.ToolStartData)
	for e, err := range t.store.Read(ctx, s.ID, 0) {
		if err != nil {
			return open, err
		}
		switch e.Type {
		case event.ToolStart:
			if d, err := event.As[event.ToolStartData](e); err == nil {
				calls[d.ToolCallID] = d
			}
		case event.ToolBegun:
			if d, err := event.As[event.ToolBegunData](e); err == nil && (d.Detaches || watched[d.Key]) && d.Attempt <= 1 {
				task := fromCall(s, d.Key, calls[d.ToolCallID].Arguments)
				head, _ := e.Head() // without it only the time is missing
				task.Started, task.Reason = stamp(head.Time), why.Error()
				open = append(open, openCommand{task, d.ToolCallID, d.Key, watched[d.Key]})
			}
		case event.ToolComplete:
			if d, err := event.As[event.ToolCompleteData](e); err == nil {
				open = slices.DeleteFunc(open, func(c openCommand) bool { return !c.watched && c.call == d.ToolCallID })
			}
		}
	}
	return open, nil
}

// fromCall describes the command of a call whose workspace is away.
func fromCall(s eventlog.Session, key string, arguments json.RawMessage) api.Task {
	var a struct{ Command, Description, ShellID string }
	_ = json.Unmarshal(arguments, &a) // what cannot be read is not shown
	return api.Task{
		SessionID: s.ID, TaskID: cmp.Or(a.ShellID, string(process.IDOf(process.Owner(s.ID), key))),
		Command: a.Command, Description: a.Description, Dir: s.Info.Dir, Status: api.TaskUnreachable,
	}
}

// described returns a command as clients see it.
func described(id event.SessionID, t bash.Task) api.Task {
	p := t.Process
	d := api.Task{
		SessionID: id, TaskID: t.ID, Command: p.Command, Description: p.Title, Dir: p.Dir, Status: t.Status(), Reason: p.Reason,
		PID: p.PID, Started: stamp(p.Started), Ended: stamp(p.Ended), Bytes: p.Output.Bytes, Omitted: p.Output.Omitted,
		Lingering: (p.Lingering || p.Unkept) && !p.Gone, Unkept: p.Unkept,
	}
	if p.Exit != nil {
		d.ExitCode, d.Signal = &p.Exit.Code, p.Exit.Signal
	}
	d.Input = (p.Stdin || p.TTY) && !p.State.Ended()
	if p.TTY {
		size := t.Size()
		d.Terminal = &api.TerminalSize{Rows: size.Rows, Cols: size.Cols}
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
	chunk, err := t.commands.Processes.Read(ctx, task.Process.Owner, task.Process.ID, request)
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

// Input types into a command.
func (t tasks) Input(ctx context.Context, p api.TaskInputParams) (api.Task, error) {
	task, err := t.find(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return api.Task{}, err
	}
	in := process.Input{Data: p.Data, Close: p.Close}
	if p.Key != "" {
		in.Key = "client/" + p.Key
	}
	err = t.commands.Processes.WriteStdin(ctx, task.Process.Owner, task.Process.ID, in)
	switch {
	case errors.Is(err, process.ErrNoStdin):
		err = fmt.Errorf("the command %s takes no input: it was started without a terminal, or its input was closed", p.TaskID)
	case errors.Is(err, process.ErrEnded):
		err = fmt.Errorf("the command %s has ended", p.TaskID)
	}
	return described(p.SessionID, task), err
}

// Resize changes the size of a command's terminal.
func (t tasks) Resize(ctx context.Context, p api.TaskResizeParams) (api.Task, error) {
	task, err := t.find(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return api.Task{}, err
	}
	task, err = t.commands.Resize(ctx, p.SessionID, task, screen.Size{Rows: p.Rows, Cols: p.Cols})
	switch {
	case errors.Is(err, process.ErrNoTerminal):
		err = fmt.Errorf("the command %s has no terminal", p.TaskID)
	case errors.Is(err, process.ErrEnded):
		err = nil // its last screen stays as it is
	}
	return described(p.SessionID, task), err
}

// stopTime is how long a workspace elsewhere has to stop a command, which gets some time to
// end by itself.
const stopTime = 30 * time.Second

// Stop stops a command and all its processes.
func (t tasks) Stop(ctx context.Context, p api.TaskParams) (api.Task, error) {
	remote := t.workspaces.isRemote(ctx, p.SessionID)
	asked := ctx
	if remote {
		limited, cancel := within(ctx, stopTime)
		defer cancel()
		asked = limited
	}
	var task bash.Task
	err := t.workspaces.answers(ctx, p.SessionID)
	if err == nil {
		task, err = t.find(asked, p.SessionID, p.TaskID)
	}
	if err == nil {
		task.Process, err = t.commands.Processes.Stop(asked, task.Process.Owner, task.Process.ID)
	}
	if err = asSilence(err); remote && workspace.Unusable(err) {
		return t.giveUp(ctx, p, err)
	}
	if err != nil {
		return api.Task{}, err
	}
	return described(p.SessionID, task), nil
}

// giveUp reports a command as lost whose workspace cannot be reached, if a person wants
// that.
func (t tasks) giveUp(ctx context.Context, p api.TaskParams, why error) (api.Task, error) {
	list, err := t.openCommands(ctx, p.SessionID, why)
	if err != nil {
		return api.Task{}, err
	}
	for _, open := range list {
		switch {
		case open.TaskID != p.TaskID:
			continue
		case !open.watched:
			return open.Task, fmt.Errorf("the command %s cannot be stopped now: %w. A turn waits for it; to stop the turn, and the command when its workspace is back: abide stop %s", p.TaskID, why, p.SessionID)
		case !p.GiveUp:
			return open.Task, fmt.Errorf("the command %s cannot be stopped now: %w. It is watched until its workspace is back; to give it up and report it as lost: abide stop --give-up %s", p.TaskID, why, p.TaskID)
		}
		t.givenUp.Store(taskName{p.SessionID, open.key}, true)
		open.Status = event.TaskLost
		return open.Task, t.host.Tasks.GiveUp(ctx, p.SessionID, givenUp(open.key, p.TaskID))
	}
	return api.Task{}, fmt.Errorf("session %s has no task %q that is unreachable; list the tasks with: abide ps --all (%w)", p.SessionID, p.TaskID, why)
}

// Of returns the commands of a session that calls with the given keys have started.
func (t tasks) Of(ctx context.Context, id event.SessionID, keys []string) ([]api.Task, error) {
	if t.workspaces.isRemote(ctx, id) {
		hurried, cancel := within(ctx, listTime)
		defer cancel()
		ctx = hurried
	}
	if err := t.workspaces.answersSoon(ctx, id); err != nil {
		return nil, err
	}
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
	return t.endTask
}
