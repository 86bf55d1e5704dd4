package todo

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed update.md
var updateText string

var updateSpec = tool.Spec{
	Name:        "task_update",
	Description: updateText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"id":{"type":"integer","description":"The number of the task."},` +
		`"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},` +
		`"subject":{"type":"string","description":"What is to be done, in a line, if that is different now."},` +
		`"description":{"type":"string","description":"What else you will have to know, in place of what was there."}},` +
		`"required":["id"]}`),
	Replay: tool.Pure, Instant: true,
}

var statuses = []string{event.TodoPending, event.TodoInProgress, event.TodoCompleted, event.TodoCancelled}

// update changes a task.
func update(all []task, a *argument.Set) tool.Result {
	before, found := find(all, a)
	after, said := edited(before, a)
	switch {
	case !found && a.Err() == nil:
		a.Wrong("id", "Required")
	case !said && a.Err() == nil:
		a.Wrong("status", `Required, unless "subject" or "description" changes`)
	case after == before:
		return tool.Result{Text: "Nothing is new about task " + line(before)}
	case after.Open() && !before.Open():
		if full := checkOpen(all); full != "" {
			return tool.Fail(full)
		}
	}
	return changed("Updated", after)
}

// edited returns a task with the changes of the arguments, and whether there are any.
func edited(t task, a *argument.Set) (task, bool) {
	newStatus, byStatus := a.Text("status")
	if byStatus {
		t.Status = status(a, newStatus)
	}
	newSubject, bySubject := a.Text("subject")
	if bySubject {
		t.Subject = subject(a, newSubject)
	}
	newDescription, byDescription := a.Text("description")
	if byDescription {
		t.Description = description(a, newDescription)
	}
	return t, byStatus || bySubject || byDescription
}

// status checks and returns the status of a task.
func status(a *argument.Set, word string) string {
	if slices.Contains(statuses, word) {
		return word
	}
	const most = 40 // maximum characters of an invalid status that are repeated
	if runes := []rune(word); len(runes) > most {
		word = string(runes[:most]) + "…"
	}
	a.Wrong("status", "Invalid enum value. Expected '%s', received '%s'", strings.Join(statuses, "' | '"), word)
	return word
}
