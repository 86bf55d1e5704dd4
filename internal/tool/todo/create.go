package todo

import (
	_ "embed"
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed create.md
var createText string

var createSpec = tool.Spec{
	Name:        "task_create",
	Description: createText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"subject":{"type":"string","description":"What is to be done, in a line."},` +
		`"description":{"type":"string","description":"What else you will have to know to do it."}},` +
		`"required":["subject"]}`),
	Replay: tool.Pure, Instant: true,
}

// create adds a task.
func create(all []task, a *argument.Set) tool.Result {
	t := task{ID: 1, Status: event.TodoPending}
	if len(all) > 0 {
		t.ID = all[len(all)-1].ID + 1
	}
	if text := a.Needed("subject"); a.Err() == nil {
		t.Subject = subject(a, text)
	}
	text, _ := a.Text("description")
	t.Description = description(a, text)
	if full := checkOpen(all); full != "" {
		return tool.Fail(full)
	}
	return changed("Created", t)
}
