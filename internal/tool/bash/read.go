package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/tool/bash/screen"
)

//go:embed read.md
var readText string

var readSpec = tool.Spec{
	Name:        "read_bash",
	Description: readText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"shellId":{"type":"string","description":"The id of the command."},` +
		`"delay":{"type":"number","description":"How many seconds to wait for the command to end, up to 600. 0 by default."},` +
		`"offset":{"type":"integer","description":"Show the output from this byte on, also if it has been shown before. What is unread stays unread."},` +
		`"rows":{"type":"integer","description":"Change the size of the command's terminal first: the number of rows, up to 200."},` +
		`"cols":{"type":"integer","description":"The number of columns of the terminal, up to 400."}},` +
		`"required":["shellId"]}`),
	Replay: tool.Keyed,
}

// reader is the tool that reads the output of a command.
type reader struct{ *Commands }

func (r *reader) Spec() tool.Spec                                                  { return readSpec }
func (r *reader) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// names are the argument names for the ID of a task.
var names = []string{"shellId", "task_id", "process_id", "id"}

func (r *reader) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	name := a.Needed(names...)
	delay, _, _ := a.Seconds("delay", "wait_timeout", "timeout")
	offset, paging := a.Number("offset")
	size := readSize(a)
	if err := a.Err(); err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	t, err := r.task(ctx, call, name)
	if err != nil {
		return finish(ctx, tool.Result{}, err)
	}
	if size != (screen.Size{}) {
		if t, err = r.resize(ctx, call, t, size); err != nil {
			return finish(ctx, tool.Result{}, err)
		}
	}
	if paging {
		result, err := r.page(ctx, t, offset)
		return finish(ctx, result, err)
	}
	result, err := r.waitAndRead(ctx, call, t, min(max(delay, 0), maxWait))
	text := progressText(result)
	return finish(ctx, tool.Result{Text: text, Contents: contents(t.Process.Dir, result), Digest: progressDigest(call, text, result)}, err)
}

// page returns the output from an offset on.
func (r *reader) page(ctx context.Context, t Task, offset int64) (tool.Result, error) {
	const most = process.MaxHeadBytes + process.MaxTailBytes
	end := t.Process.Output.Bytes
	if offset > end {
		return tool.Result{}, fail("The offset is beyond the output", "The output of %s has %d bytes, so there is nothing at offset %d.", t.ID, end, offset)
	}
	e, err := r.excerpt(ctx, t.Process, offset, min(end, offset+most))
	if err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("%s\n<bytes %d to %d of %d>", e.text, offset, e.next, end)
	if e.next < end {
		text = fmt.Sprintf("%s\n<bytes %d to %d of %d; use offset %d to go on>", e.text, offset, e.next, end, e.next)
	}
	return tool.Result{Text: text}, nil
}

// waitAndRead waits for a task for at most delay, and returns the output that the model has
// not been shown.
func (c *Commands) waitAndRead(ctx context.Context, call tool.Call, t Task, delay time.Duration) (Result, error) {
	soon, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	info, err := c.Processes.Wait(soon, t.Process.Owner, t.Process.ID)
	if overdue(ctx, soon, err) {
		info, err = c.Processes.Get(ctx, t.Process.Owner, t.Process.ID)
	}
	if err != nil {
		return Result{}, err
	}
	t.Process = info
	return c.readUnread(ctx, call, t)
}

// readUnread returns the output of a task that the model has not been shown, and records
// that it was shown.
func (c *Commands) readUnread(ctx context.Context, call tool.Call, t Task) (Result, error) {
	from := t.note.from(call.Key, t.unread())
	e, err := c.excerpt(ctx, t.Process, from, t.Process.Output.Bytes)
	if errors.Is(err, process.ErrDropped) {
		r := report(t, excerpt{next: t.Process.Output.Bytes})
		r.Note = "Its output is not kept any more."
		return r, nil
	}
	if err != nil {
		return Result{}, err
	}
	drawn, full, err := c.fullScreen(ctx, t)
	if err != nil {
		return Result{}, err
	}
	if full && (e.total > 0 || !t.Process.State.Ended()) {
		e = e.as(drawn)
	}
	r := report(t, e)
	if r.NeedsInput, err = questionOf(ctx, c.Processes, t.Process); err != nil {
		return r, err
	}
	if full && r.NeedsInput != "" {
		r.NeedsInput = waitingFor(drawn)
	}
	if from > 0 {
		r.Stdout, r.Stderr = "", "" // after the first read the streams would be incomplete
	}
	if err := c.recordShown(call.Session, t, call.Key, from, e.next); err != nil {
		return r, err
	}
	if r.Ended() {
		return r, c.Processes.MarkSeen(ctx, t.Process.Owner, t.Process.ID)
	}
	return r, nil
}

// progressText returns the result of a command as the model reads it, whether the command
// has ended or not.
func progressText(r Result) string {
	if r.Ended() {
		return r.text()
	}
	state := "The command is still running. Use read_bash to continue waiting for output, or stop_bash to stop it."
	switch {
	case r.NeedsInput != "":
		state = fmt.Sprintf("It seems to wait for input (%s). Use write_bash to answer, or stop_bash to stop it.", oneLine(r.NeedsInput, maxDescription))
	case r.Output == "" && r.Offset == 0:
		state = "The command is still running but hasn't produced output yet. Use read_bash to continue waiting, or stop_bash to stop it."
	case r.Output == "":
		state = "The command is still running and has produced no output since you last looked. Use read_bash to continue waiting, or stop_bash to stop it."
	}
	return fmt.Sprintf("%s\n<command with shellId: %s is still running after %d seconds. %s>",
		strings.TrimLeft(strings.TrimRight(r.Output, " \t\r\n"), "\r\n"), r.TaskID, r.Duration/1000, state)
}
