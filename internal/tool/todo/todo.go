// Package todo has the tools with which a model keeps a to-do list: task_create,
// task_update and task_list.
//
//   - A call depends only on the list and its arguments. Its change is recorded together
//     with its result.
//   - A call with invalid arguments changes nothing, and its result says in a few words
//     what is wrong, however long the arguments are.
//   - The number of open tasks and the length of their texts are limited, because the
//     model is shown the open tasks again and again. Closed tasks stay in the log.
package todo

import (
	"context"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

// Limits of a list.
const (
	maxOpen        = 100  // maximum number of open tasks
	maxSubject     = 400  // maximum bytes of a subject
	maxDescription = 4000 // maximum bytes of a description
)

// New returns the tools.
func New() []tool.Tool {
	return []tool.Tool{&listTool{createSpec, create}, &listTool{updateSpec, update}, &listTool{listSpec, list}}
}

// A task is an entry of the list.
type task = event.TodoChangedData

// A listTool is one of the tools: a description and a function on the list.
type listTool struct {
	spec tool.Spec
	do   func(all []task, a *argument.Set) tool.Result
}

func (v *listTool) Spec() tool.Spec                                                  { return v.spec }
func (v *listTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run makes a call. If its arguments are invalid, the result says so.
func (v *listTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	result := v.do(listOf(call.State), a)
	if refusal, refused := a.Refused(); refused {
		return refusal, nil
	}
	return result, nil
}

// listOf returns the list of a session, by ID.
func listOf(s tool.State) []task {
	if keeper, ok := s.(interface{ Todos() []task }); ok {
		return keeper.Todos()
	}
	return nil
}

// changed returns the result of a call that created or changed a task.
func changed(done string, t task) tool.Result {
	return tool.Result{Text: done + " task " + line(t), Record: []event.Payload{t}}
}

// line returns a task as one line.
func line(t task) string { return fmt.Sprintf("%d [%s] %s", t.ID, t.Status, t.Subject) }

// checkOpen returns an error text if there are too many open tasks for another one, else "".
func checkOpen(all []task) string {
	open := 0
	for _, t := range all {
		if t.Open() {
			open++
		}
	}
	if open < maxOpen {
		return ""
	}
	return fmt.Sprintf("%d tasks are open, and there cannot be more. Complete or cancel some with task_update, or make one task of several.", open)
}

// find returns the task that the argument id names, and whether there is one.
func find(all []task, a *argument.Set) (task, bool) {
	id, ok := a.Number("id")
	for _, t := range all {
		if ok && int64(t.ID) == id {
			return t, true
		}
	}
	if ok {
		a.Wrong("id", "There is no task %d; task_list shows those that there are", id)
	}
	return task{}, false
}

// subject checks and returns the subject of a task, which is one line.
func subject(a *argument.Set, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		a.Wrong("subject", "It is empty: say in a line what is to be done")
	}
	bound(a, "subject", text, maxSubject, `say it in a line, and the rest in "description"`)
	return text
}

// description checks and returns the description of a task.
func description(a *argument.Set, text string) string {
	text = strings.TrimSpace(text)
	bound(a, "description", text, maxDescription, "write the rest into a file and name the file")
	return text
}

func bound(a *argument.Set, name, text string, most int, way string) {
	if len(text) > most {
		a.Wrong(name, "It has %d bytes, and there is room for %d: %s", len(text), most, way)
	}
}
