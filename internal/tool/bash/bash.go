// Package bash has the tools that run commands: bash and its companions
// read_bash, write_bash, stop_bash, list_bash and wait, and exec, which is bash
// with answers in JSON.
//
//   - A call starts one process or none, however often it is repeated after a
//     crash: the key of the call is the key of the process.
//   - A command that takes longer than its soft timeout continues as a task.
//     Nothing is killed, restarted or shown twice, even if the command ends at that
//     very moment. A call that is cancelled leaves a task that can be listed, read
//     and stopped.
//   - A command that did not start is never reported as started.
//   - The text that the model reads is valid UTF-8 and bounded: the first and the
//     last 16 KiB of an output, and the number of bytes between them. The last line
//     is always in it. All of the output can be read by offset.
//   - Output of a command is data. It cannot look like the end of a notification, nor
//     like a line of the summary of running tasks.
//   - A task belongs to its session. To other sessions it does not exist.
package bash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// Processes runs commands, on this machine or in a workspace elsewhere.
type Processes interface {
	Start(ctx context.Context, spec process.Spec) (info process.Info, attached bool, err error)
	Find(ctx context.Context, owner process.Owner, key string) (process.Info, error)
	Get(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	List(ctx context.Context, owner process.Owner) ([]process.Info, error)
	Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	Read(ctx context.Context, owner process.Owner, id process.ID, r process.ReadRequest) (process.Chunk, error)
	WriteStdin(ctx context.Context, owner process.Owner, id process.ID, in process.Input) error
	Resize(ctx context.Context, owner process.Owner, id process.ID, size process.Size) error
	Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	MarkSeen(ctx context.Context, owner process.Owner, id process.ID) error
}

// Options are the settings of the tools.
type Options struct {
	Processes Processes
	// Notes returns the folder in which a session keeps the names of its tasks and
	// how far their output was read. The folder exists.
	Notes func(id event.SessionID) (string, error)
	// Owner returns the owner of a session's processes; if nil, the owner is the ID
	// of the session.
	Owner func(id event.SessionID) process.Owner
	// Env returns the environment of a call's commands. The tools add variables that
	// keep commands from asking questions. If Env is nil or returns nil, the environment
	// is that of the call, or process.PlainEnv() if the call has none.
	Env func(ctx context.Context, call tool.Call) ([]string, error)
	// Hidden are the names of variables that commands do not get. A star at the end
	// of a name matches any text.
	Hidden []string
	// Scope returns the scope of a call; nil if commands may use no files but those of
	// the working directory.
	Scope func(ctx context.Context, call tool.Call) (*scope.Scope, error)
	// Elsewhere returns the files of the machine that the commands of a call run on; nil if
	// that is this machine. Commands are judged by what is there.
	Elsewhere func(ctx context.Context, call tool.Call) (workspace.Scoped, error)
	// Protected reports whether a path may not be changed unasked, and why.
	Protected func(path string) (reason string, ok bool)
	// Place returns what a confined command of a call may change; nil if that is the folder
	// that the command runs in.
	Place func(ctx context.Context, call tool.Call) (Place, error)
	// Confined is true if commands run in a sandbox: then the model can ask for a run
	// without it. Offline is true if they have no network there.
	Confined, Offline bool
	// Wait is how long a call without a timeout waits for its command; 10s if zero.
	Wait time.Duration
}

// A Place is what a confined command may change.
type Place struct {
	Root     string   // working directory of the session, on this machine without links; the folder that the command runs in if empty
	Writable []string // further folders
	// Repository is the repository of the root, as it was when the session ran its first
	// command; it is looked for if nil.
	Repository *sandbox.Repository
	// Family is the session whose working directories a command elsewhere has.
	Family process.Owner
}

// Commands are the commands of all sessions. They are safe for concurrent use.
type Commands struct {
	Options
	mu sync.Mutex // serialises changes of notes
}

// New returns the commands with the given options.
func New(o Options) *Commands {
	o.Wait = cmp.Or(o.Wait, defaultWait)
	if o.Owner == nil {
		o.Owner = func(id event.SessionID) process.Owner { return process.Owner(id) }
	}
	return &Commands{Options: o}
}

// Tools returns the tools: bash, read_bash, write_bash, stop_bash, list_bash,
// wait and exec. A session gets exec only if it asks for it by name.
func (c *Commands) Tools() []tool.Tool {
	return []tool.Tool{
		&runner{c, c.withSandbox(bashSpec), asText}, &reader{c}, &writer{c}, &stopper{c}, &lister{c}, &waiter{c},
		&runner{c, c.withSandbox(execSpec), asJSON},
	}
}

// A Task is a command that was started.
type Task struct {
	ID      string // name that the model uses: the one it chose, or else the ID of the process
	Process process.Info
	note    note
}

// Status returns the status of a task: running, completed, failed, killed or lost.
func (t Task) Status() string { return statusOf(t.Process) }

// Description returns what the task is for, or its command if that was not given.
func (t Task) Description() string {
	if t.Process.Title != "" {
		return oneLine(t.Process.Title, maxDescription)
	}
	return oneLine(t.Process.Command, maxDescription)
}

const maxDescription = 80 // characters of a description in a list

// unread returns the offset of the first byte that the model has not been shown.
func (t Task) unread() int64 {
	if t.note.Made.IsZero() && t.Process.Seen {
		return t.Process.Output.Bytes // the command ended within its call, which showed all output
	}
	return t.note.Seen
}

// Tasks returns the commands of a session, the oldest first.
func (c *Commands) Tasks(ctx context.Context, id event.SessionID) ([]Task, error) {
	list, err := c.Processes.List(ctx, c.Owner(id))
	if err != nil {
		return nil, err
	}
	all, err := c.readNotes(id)
	if err != nil {
		return nil, err
	}
	tasks := make([]Task, len(list))
	for i, info := range list {
		tasks[i] = all.task(info)
	}
	return tasks, nil
}

// running returns the commands of a session that have not ended.
func (c *Commands) running(ctx context.Context, id event.SessionID) ([]Task, error) {
	tasks, err := c.Tasks(ctx, id)
	return slices.DeleteFunc(tasks, func(t Task) bool { return t.Process.State.Ended() }), err
}

// Task returns the command of a session with this name, or this process ID: the
// newest, if there are several.
func (c *Commands) Task(ctx context.Context, id event.SessionID, name string) (Task, error) {
	tasks, err := c.Tasks(ctx, id)
	if err != nil {
		return Task{}, err
	}
	for _, t := range slices.Backward(tasks) {
		if t.ID == name || string(t.Process.ID) == name {
			return t, nil
		}
	}
	return Task{}, process.ErrNotFound
}

// task returns the task with a name. If there is none, the error for the model lists
// the tasks that exist.
func (c *Commands) task(ctx context.Context, call tool.Call, name string) (Task, error) {
	t, err := c.Task(ctx, call.Session, name)
	if !errors.Is(err, process.ErrNotFound) {
		return t, err
	}
	tasks, err := c.Tasks(ctx, call.Session)
	if err != nil {
		return Task{}, err
	}
	return Task{}, fail("Unknown shellId", "shellId: %s not found or was never created. Please supply a valid shell ID.\n\n%s", oneLine(name, maxDescription), listing(tasks, time.Now()))
}

// statusOf returns the status of a process.
func statusOf(p process.Info) string {
	switch {
	case !p.State.Ended():
		return statusRunning
	case p.State == process.Killed:
		return statusKilled
	case p.State == process.Lost:
		return statusLost
	case p.Exit != nil && p.Exit.Code == 0:
		return statusCompleted
	}
	return statusFailed
}

// fail returns an error for the model, with a short message for people.
func fail(message, format string, args ...any) *tool.Refusal {
	r := tool.Fail(fmt.Sprintf(format, args...))
	r.Message, r.Digest = message, tool.Digest(message, r.Text)
	return &tool.Refusal{Result: r}
}

// finish returns the result of a call. An error becomes a result that says so, unless
// the call was cancelled.
func finish(ctx context.Context, r tool.Result, err error) (tool.Result, error) {
	var refused *tool.Refusal
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case errors.As(err, &refused):
		return refused.Result, nil
	}
	return tool.Fail(sentence(err.Error())), nil
}

// overdue reports whether a wait failed because the deadline of soon was reached. A
// remote workspace may report that a moment before the local clock does.
func overdue(ctx, soon context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && (soon.Err() != nil || errors.Is(err, context.DeadlineExceeded))
}

// sentence begins a text with a capital letter and ends it with a full stop.
func sentence(s string) string {
	s = strings.TrimRight(s, ". \n")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// oneLine joins a text to one line of at most so many characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(clean([]byte(s))), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// plainSeconds formats a duration as a number of seconds.
func plainSeconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", d.Seconds()), "0"), ".")
}
