// Package todo has the tools by which a model keeps a list of what it has to do:
// task_create, task_update and task_list.
//
//   - A call is a function of the list and of its arguments, and of nothing else.
//     What it changes is recorded together with its result.
//   - A call that cannot be made as it is changes nothing and says what is wrong,
//     in a few words, however long its arguments are.
//   - The list is bounded, since the model is shown what is open again and again:
//     so many open tasks, with so much text each. What is closed stays in the log.
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

// The bounds of a list.
const (
	maxOpen        = 100  // tasks that are open at a time
	maxSubject     = 400  // bytes
	maxDescription = 4000 // bytes
)

// New returns the tools.
func New() []tool.Tool {
	return []tool.Tool{&verb{createSpec, create}, &verb{updateSpec, update}, &verb{listSpec, list}}
}

// A task is an entry of the list.
type task = event.TodoChangedData

// A verb is what can be done with the list.
type verb struct {
	spec tool.Spec
	do   func(all []task, a *argument.Set) tool.Result
}

func (v *verb) Spec() tool.Spec                                 { return v.spec }
func (v *verb) Permission(tool.Call) (*approval.Request, error) { return nil, nil }

// Run makes a call. If anything is wrong with its arguments, that is the result.
func (v *verb) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	result := v.do(listOf(call.State), a)
	if refusal, refused := a.Refused(); refused {
		return refusal, nil
	}
	return result, nil
}

// listOf returns the list that a session's log tells of, by id.
func listOf(s tool.State) []task {
	if keeper, ok := s.(interface{ Todos() []task }); ok {
		return keeper.Todos()
	}
	return nil
}

// changed is the result of a call that makes a task what it is now.
func changed(done string, t task) tool.Result {
	return tool.Result{Text: done + " task " + line(t), Record: []event.Payload{t}}
}

// line shows a task.
func line(t task) string { return fmt.Sprintf("%d [%s] %s", t.ID, t.Status, t.Subject) }

// room says what is wrong if no further task can be open; else nothing.
func room(all []task) string {
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

// subject takes what is to be done: one line.
func subject(a *argument.Set, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		a.Wrong("subject", "It is empty: say in a line what is to be done")
	}
	bound(a, "subject", text, maxSubject, `say it in a line, and the rest in "description"`)
	return text
}

// description takes what else there is to know.
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
