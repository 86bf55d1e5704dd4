package todo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/todo"
)

// A fixture is the tools and a list.
type fixture struct {
	t    testing.TB
	list []event.TodoChangedData
}

// call makes a call and applies its change to the list, as a session would.
func (d *fixture) call(name, args string) tool.Result {
	d.t.Helper()
	for _, v := range todo.New() {
		if v.Spec().Name != name {
			continue
		}
		if ask, err := v.Permission(d.t.Context(), tool.Call{}); ask != nil || err != nil {
			d.t.Fatalf("%s asks for %v, %v", name, ask, err)
		}
		r, err := v.Run(d.t.Context(), tool.Call{Arguments: json.RawMessage(args), State: d})
		if err != nil {
			d.t.Fatal(err)
		}
		for _, p := range r.Record {
			d.keep(p.(event.TodoChangedData))
		}
		return r
	}
	d.t.Fatalf("there is no tool %s", name)
	return tool.Result{}
}

// Todos returns the list, as the state of a session does.
func (d *fixture) Todos() []event.TodoChangedData { return d.list }

func (d *fixture) keep(to event.TodoChangedData) {
	for i, t := range d.list {
		if t.ID == to.ID {
			d.list[i] = to
			return
		}
	}
	d.list = append(d.list, to)
}

func TestAListIsKept(t *testing.T) {
	d := &fixture{t: t}
	for _, step := range []struct{ tool, args, want string }{
		{"task_list", ``, "No task is open."},
		{"task_create", `{"subject":" Read\n the code "}`, "Created task 1 [pending] Read the code"},
		{"task_create", `{"subject":"Write it","description":" In Go.\n"}`, "Created task 2 [pending] Write it"},
		{"task_create", `{"subject":"Sell it","description":null}`, "Created task 3 [pending] Sell it"},
		{"task_update", `{"id":1,"status":"in_progress"}`, "Updated task 1 [in_progress] Read the code"},
		{"task_update", `{"id":1,"status":"in_progress"}`, "Nothing is new about task 1 [in_progress] Read the code"},
		{"task_update", `{"id":3,"status":"cancelled"}`, "Updated task 3 [cancelled] Sell it"},
		{"task_update", `{"id":2,"subject":"Write all of it"}`, "Updated task 2 [pending] Write all of it"},
		{"task_list", `{}`, "Open: 2\n1 [in_progress] Read the code\n2 [pending] Write all of it (has a description)\n\nClosed: 1\n3 [cancelled] Sell it"},
		{"task_list", `{"id":2}`, "2 [pending] Write all of it\n\nIn Go."},
		{"task_list", `{"id":1}`, "1 [in_progress] Read the code"},
		{"task_update", `{"id":2,"description":"","status":"completed"}`, "Updated task 2 [completed] Write all of it"},
		{"task_list", `{"id":2}`, "2 [completed] Write all of it"},
		{"task_update", `{"id":3,"status":"pending"}`, "Updated task 3 [pending] Sell it"},
		{"task_create", `{"subject":"Rest"}`, "Created task 4 [pending] Rest"},
	} {
		before := fmt.Sprint(d.list)
		r := d.call(step.tool, step.args)
		if r.Failed || r.Text != step.want {
			t.Errorf("%s %s: %q, failed %v; want %q", step.tool, step.args, r.Text, r.Failed, step.want)
		}
		if changed := fmt.Sprint(d.list) != before; changed != (len(r.Record) > 0) {
			t.Errorf("%s %s: changed %v, recorded %v", step.tool, step.args, changed, r.Record)
		}
	}
}

func TestInvalidInputIsReportedAndChangesNothing(t *testing.T) {
	long := strings.Repeat("ä", 1<<19)
	for _, test := range []struct{ tool, args, want string }{
		{"task_create", ``, `"subject": Required`},
		{"task_create", `{}`, `"subject": Required`},
		{"task_create", `{"subject":7}`, `"subject": Expected string, received number`},
		{"task_create", `{"subject":" \n\t"}`, `"subject": It is empty`},
		{"task_create", `{"subject":"` + long + `"}`, `"subject": It has 1048576 bytes, and there is room for 400`},
		{"task_create", `{"subject":"x","description":"` + long + `"}`, `"description": It has 1048576 bytes, and there is room for 4000`},
		{"task_create", `{"subject":"x","description":[]}`, `"description": Expected string, received array`},
		{"task_create", `[]`, `Expected JSON object but got array`},
		{"task_update", `{}`, `"id": Required`},
		{"task_update", `{"status":"completed"}`, `"id": Required`},
		{"task_update", `{"id":"1","status":"completed"}`, `"id": Expected number, received string`},
		{"task_update", `{"id":-1,"status":"completed"}`, `"id": Number must be greater than or equal to 0`},
		{"task_update", `{"id":1.5,"status":"completed"}`, `"id": Expected integer, received float`},
		{"task_update", `{"id":2,"status":"completed"}`, `"id": There is no task 2; task_list shows those that there are`},
		{"task_update", `{"id":1}`, `"status": Required, unless "subject" or "description" changes`},
		{"task_update", `{"id":1,"status":"done"}`, `"status": Invalid enum value. Expected 'pending' | 'in_progress' | 'completed' | 'cancelled', received 'done'`},
		{"task_update", `{"id":1,"status":"` + long + `"}`, `received 'ääää`},
		{"task_update", `{"id":1,"status":""}`, `received ''`},
		{"task_update", `{"id":1,"subject":""}`, `"subject": It is empty`},
		{"task_update", `{"id":1,"status":"no","subject":""}`, "Multiple validation errors"},
		{"task_list", `{"id":9}`, `"id": There is no task 9`},
		{"task_list", `{"id":"one"}`, `"id": Expected number, received string`},
	} {
		d := &fixture{t: t, list: []event.TodoChangedData{{ID: 1, Subject: "x", Status: event.TodoPending}}}
		r := d.call(test.tool, test.args)
		if !r.Failed || r.Code != event.CodeFailure || !strings.Contains(r.Text, test.want) || len(r.Record) > 0 {
			t.Errorf("%s %.60s: %.200q, failed %v, recorded %v; want %q", test.tool, test.args, r.Text, r.Failed, r.Record, test.want)
		}
		if len(r.Text) > 500 {
			t.Errorf("%s %.60s: the answer has %d bytes", test.tool, test.args, len(r.Text))
		}
	}
}

func TestAListIsBounded(t *testing.T) {
	d := &fixture{t: t}
	refused := 0
	for range 1000 {
		if r := d.call("task_create", `{"subject":"x"}`); r.Failed {
			if !strings.HasPrefix(r.Text, "100 tasks are open, and there cannot be more.") {
				t.Fatal(r.Text)
			}
			refused++
		}
	}
	if len(d.list) != 100 || refused != 900 {
		t.Errorf("%d tasks, %d refused", len(d.list), refused)
	}
	d.call("task_update", `{"id":7,"status":"completed"}`)
	if r := d.call("task_create", `{"subject":"x"}`); r.Text != "Created task 101 [pending] x" {
		t.Errorf("after one was closed: %s", r.Text)
	}
	if r := d.call("task_update", `{"id":7,"status":"pending"}`); !r.Failed || len(r.Record) > 0 {
		t.Errorf("a task too many was opened again: %s", r.Text)
	}
	if r := d.call("task_update", `{"id":8,"status":"in_progress"}`); r.Failed {
		t.Errorf("one of the open tasks cannot be worked on: %s", r.Text)
	}
	for id := range 50 {
		d.call("task_update", fmt.Sprintf(`{"id":%d,"status":"cancelled"}`, id+1))
	}
	text := d.call("task_list", ``).Text
	if !strings.HasPrefix(text, "Open: 51\n51 [pending] x\n") || !strings.HasSuffix(text, "\n\nClosed: 50, the last 10 of them\n41 [cancelled] x\n42 [cancelled] x\n43 [cancelled] x\n44 [cancelled] x\n45 [cancelled] x\n46 [cancelled] x\n47 [cancelled] x\n48 [cancelled] x\n49 [cancelled] x\n50 [cancelled] x") {
		t.Error(text)
	}
}

// FuzzCalls checks that for any arguments the answer is short, and a recorded task is
// valid.
func FuzzCalls(f *testing.F) {
	for _, args := range []string{
		``, `{}`, `[]`, `null`, `{"subject":"x","description":"y"}`, `{"subject":"\ud800"}`, `{"id":1,"status":"completed"}`,
		`{"id":2,"status":"pending"}`, `{"id":1e300}`, `{"id":9007199254740993}`, `{"id":1,"subject":" ","status":[]}`, `{"id":3,"description":""}`,
	} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, v := range todo.New() {
			d := &fixture{t: t, list: []event.TodoChangedData{
				{ID: 1, Subject: "a", Status: event.TodoPending}, {ID: 2, Subject: "b", Status: event.TodoCompleted}, {ID: 3, Subject: "c", Description: "d", Status: event.TodoInProgress},
			}}
			r := d.call(v.Spec().Name, args)
			if r.Text == "" || len(r.Text) > 8000 || (r.Failed && len(r.Record) > 0) || len(r.Record) > 1 {
				t.Fatalf("%.200q, failed %v, recorded %v", r.Text, r.Failed, r.Record)
			}
			for _, p := range r.Record {
				to := p.(event.TodoChangedData)
				if to.Subject == "" || len(to.Subject) > 400 || len(to.Description) > 4000 || strings.ContainsAny(to.Subject, "\n\r") || !utf8.ValidString(to.Subject) || to.ID < 1 || to.ID > 4 {
					t.Fatalf("recorded %+v", to)
				}
			}
		}
	})
}
