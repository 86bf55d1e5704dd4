package bash

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
)

// Watch waits until there is something to report about the task that a call started:
// the task has ended, or its status differs from the last one that was reported. If
// the call started no process, the report says so.
func (c *Commands) Watch(ctx context.Context, id event.SessionID, key, last string) (event.TaskReportedData, error) {
	news := event.TaskReportedData{Key: key, Status: event.TaskNone, Ended: true}
	p, err := c.Processes.Find(ctx, c.Owner(id), key)
	switch {
	case errors.Is(err, process.ErrNotFound):
		return news, nil
	case err != nil:
		return news, err
	}
	prompt, err := c.waitChange(ctx, p, last)
	if err != nil {
		return news, err
	}
	if p, err = c.Processes.Get(ctx, p.Owner, p.ID); err != nil {
		return news, err
	}
	switch {
	case p.State == process.FailedToStart:
		return news, nil
	case !p.State.Ended() && prompt == "":
		return event.TaskReportedData{Key: key, Status: statusRunning}, nil
	}
	return c.reportOn(ctx, id, p, prompt)
}

// News returns the report about a task if it has ended.
func (c *Commands) News(ctx context.Context, id event.SessionID, key string) (event.TaskReportedData, bool) {
	p, err := c.Processes.Find(ctx, c.Owner(id), key)
	if err != nil || !p.State.Ended() || p.State == process.FailedToStart {
		return event.TaskReportedData{}, false // Watch reports it
	}
	news, err := c.reportOn(ctx, id, p, "")
	return news, err == nil
}

// reportOn returns the report about a task.
func (c *Commands) reportOn(ctx context.Context, id event.SessionID, p process.Info, prompt string) (event.TaskReportedData, error) {
	all, err := c.readNotes(id)
	if err != nil {
		return event.TaskReportedData{}, err
	}
	if p.State.Ended() {
		prompt = ""
	}
	n := c.noticeOf(ctx, all.task(p), prompt)
	return event.TaskReportedData{
		Key: p.Key, TaskID: n.Task.ID, Status: n.Status(), Ended: p.State.Ended(), Text: n.Text(), Kind: n.kind(),
	}, nil
}

// kind returns the notice in the form that clients know.
func (n notice) kind() json.RawMessage {
	k := struct {
		Type        string `json:"type"`
		ShellID     string `json:"shellId"`
		ExitCode    *int   `json:"exitCode,omitempty"`
		Description string `json:"description,omitempty"`
		Status      string `json:"status"` // an addition of abide to the protocol
	}{Type: "shell_completed", ShellID: n.Task.ID, Description: n.Task.Description(), Status: n.Status()}
	if p := n.Task.Process; p.Exit != nil {
		k.ExitCode = &p.Exit.Code
	}
	return json.RawMessage(encode(k))
}

// waitChange waits until a process has ended, asks for input, or continues after it
// asked. It returns the question.
func (c *Commands) waitChange(ctx context.Context, p process.Info, last string) (prompt string, err error) {
	ends := func(ctx context.Context) (string, error) {
		_, err := c.Processes.Wait(ctx, p.Owner, p.ID)
		return "", err
	}
	changes := func(ctx context.Context) (string, error) {
		if last == event.TaskStalled {
			return "", waitAnswered(ctx, c.Processes, p)
		}
		text, _, err := waitPrompt(ctx, c.Processes, p)
		return text, err
	}
	conditions := []condition{ends}
	if p.Stdin || p.TTY {
		conditions = append(conditions, changes)
	}
	return waitConditions(ctx, conditions, false)
}

// Stop ends the command that a call has started, because the turn of the call was
// stopped. It returns when the command and all its children have ended. It is no error
// if the call has started no command.
func (c *Commands) Stop(ctx context.Context, id event.SessionID, key string) error {
	p, err := c.Processes.Find(ctx, c.Owner(id), key)
	if errors.Is(err, process.ErrNotFound) {
		return nil
	}
	if err == nil && !p.Gone {
		_, err = c.Processes.Interrupt(ctx, p.Owner, p.ID)
	}
	return err
}

// Summary returns the summary of the running tasks of a session with the given keys.
func (c *Commands) Summary(ctx context.Context, id event.SessionID, keys []string) (string, error) {
	tasks, err := c.running(ctx, id)
	tasks = slices.DeleteFunc(tasks, func(t Task) bool { return !slices.Contains(keys, t.Process.Key) })
	return summary(tasks, time.Now()), err
}

// Seen records that the end of a task was reported to the model. After that its output
// may be removed some time, even if it was not read.
func (c *Commands) Seen(ctx context.Context, id event.SessionID, key string) {
	p, err := c.Processes.Find(ctx, c.Owner(id), key)
	if err == nil {
		err = c.changeNote(id, key, func(*note) {}) // creates the note, so that output that was not read stays unread
	}
	if err == nil {
		_ = c.Processes.MarkSeen(ctx, p.Owner, p.ID) // if this fails, the output is only kept longer
	}
}
