package todo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed list.md
var listText string

var listSpec = tool.Spec{
	Name:        "task_list",
	Description: listText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"id":{"type":"integer","description":"The number of a task, to read its description."}}}`),
	Replay: tool.Pure, Instant: true,
}

// maxClosed is the maximum number of closed tasks in a list; the last ones are shown.
const maxClosed = 10

// list shows the tasks, or one of them with its description.
func list(all []task, a *argument.Set) tool.Result {
	if t, found := find(all, a); found {
		return tool.Result{Text: strings.TrimSpace(line(t) + "\n\n" + t.Description)}
	}
	var open, closed []string
	for _, t := range all {
		if t.Open() {
			open = append(open, listed(t))
		} else {
			closed = append(closed, listed(t))
		}
	}
	text := "No task is open."
	if len(open) > 0 {
		text = fmt.Sprintf("Open: %d\n%s", len(open), strings.Join(open, "\n"))
	}
	if n := len(closed); n > maxClosed {
		text += fmt.Sprintf("\n\nClosed: %d, the last %d of them\n%s", n, maxClosed, strings.Join(closed[n-maxClosed:], "\n"))
	} else if n > 0 {
		text += fmt.Sprintf("\n\nClosed: %d\n%s", n, strings.Join(closed, "\n"))
	}
	return tool.Result{Text: text}
}

// listed shows a task in a list.
func listed(t task) string {
	if t.Description == "" {
		return line(t)
	}
	return line(t) + " (has a description)"
}
