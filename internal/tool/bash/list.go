package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
)

//go:embed list.md
var listText string

var listSpec = tool.Spec{
	Name:        "list_bash",
	Description: listText,
	Parameters:  json.RawMessage(`{"type":"object","properties":{}}`),
	Replay:      tool.Pure,
}

// lister is the tool that lists commands.
type lister struct{ *Commands }

func (l *lister) Spec() tool.Spec                                                  { return listSpec }
func (l *lister) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (l *lister) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	tasks, err := l.Tasks(ctx, call.Session)
	return finish(ctx, tool.Result{Text: listing(tasks, time.Now())}, err)
}

const (
	maxListed       = 50  // maximum number of commands in a list
	maxEnded        = 5   // maximum number of listed commands whose end was reported
	maxCommandShown = 200 // maximum characters of a command in a list
)

// listing lists the commands that run, those whose end was not reported yet, and the
// last few of the others.
func listing(tasks []Task, now time.Time) string {
	var lines []string
	more, ended := 0, 0
	for i := len(tasks) - 1; i >= 0; i-- {
		t := tasks[i]
		told := t.Process.State.Ended() && t.Process.Seen
		switch {
		case told && ended == maxEnded || t.Process.State == process.FailedToStart:
			continue
		case len(lines) == maxListed:
			more++
			continue
		case told:
			ended++
		}
		lines = append(lines, t.line(now))
	}
	if len(lines) == 0 {
		return "<no active shell sessions>"
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return "Active shell sessions:\n" + strings.Join(lines, "\n")
}

// line returns the lines of a task in a list.
func (t Task) line(now time.Time) string {
	mode, status, unread := "sync", t.Status(), "no"
	if t.Process.Class == process.Service {
		mode = "async"
	}
	if t.Process.Exit != nil {
		status += fmt.Sprintf(" (exit code: %d)", t.Process.Exit.Code)
	}
	if t.unread() < t.Process.Output.Bytes {
		unread = "yes"
	}
	return fmt.Sprintf("  shellId: %s, pid: %d, mode: %s, status: %s, elapsed: %ds, commands: 1, unread output: %s\n    current command: %s",
		t.ID, t.Process.PID, mode, status, int(runTime(t.Process, now).Seconds()), unread, oneLine(t.Process.Command, maxCommandShown))
}
