package turn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool/todo"
	"github.com/abide-run/abide/internal/turn"
)

func entry(id int, subject, status string) event.TodoChangedData {
	return event.TodoChangedData{ID: id, Subject: subject, Status: status}
}

var _ = choose(entry(1, "a", event.TodoPending), entry(1, "a", event.TodoCompleted), entry(2, "b", event.TodoInProgress))

func hidden(from, to event.Seq) event.Payload {
	return event.HistoryHiddenData{From: from, To: to, Reason: "rewind"}
}

// wrote is a list as a line.
func wrote(list []turn.Todo) string {
	var words []string
	for _, t := range list {
		words = append(words, fmt.Sprintf("%d %s %s", t.ID, t.Subject, t.Status))
	}
	return strings.Join(words, ", ")
}

func TestTheListIsWhatTheLogSays(t *testing.T) {
	a, b := entry(1, "a", event.TodoPending), entry(2, "b", event.TodoPending)
	begun, done, dropped := entry(1, "a", event.TodoInProgress), entry(1, "a", event.TodoCompleted), entry(2, "b", event.TodoCancelled)
	for _, test := range []struct {
		name      string
		log       []event.Payload
		all, open string
	}{
		{"nothing", nil, "", ""},
		{"one", []event.Payload{a}, "1 a pending", "1 a pending"},
		{"two", []event.Payload{a, b}, "1 a pending, 2 b pending", "1 a pending, 2 b pending"},
		{"changed", []event.Payload{a, b, begun}, "1 a in_progress, 2 b pending", "1 a in_progress, 2 b pending"},
		{"closed", []event.Payload{a, b, done, dropped}, "1 a completed, 2 b cancelled", ""},
		{"opened again", []event.Payload{a, done, a}, "1 a pending", "1 a pending"},
		{"a change is taken back", []event.Payload{a, b, done, hidden(4, 4)}, "1 a pending, 2 b pending", "1 a pending, 2 b pending"},
		{"a task is taken back", []event.Payload{a, b, hidden(3, 3)}, "1 a pending", "1 a pending"},
		{"all is taken back", []event.Payload{a, b, done, hidden(1, 4)}, "", ""},
		{"what came before stays", []event.Payload{a, done, hidden(4, 9), b}, "1 a completed, 2 b pending", "2 b pending"},
		{"taken back in the middle", []event.Payload{a, begun, done, hidden(3, 3)}, "1 a completed", ""},
		{"taken back twice", []event.Payload{a, begun, hidden(3, 3), done, hidden(3, 5)}, "1 a pending", "1 a pending"},
		{"and gone on with", []event.Payload{a, b, hidden(2, 3), entry(1, "c", event.TodoPending)}, "1 c pending", "1 c pending"},
		{"kept by a fork", []event.Payload{a, b, event.SessionForkedData{Parent: "p"}, done}, "1 a completed, 2 b pending", "2 b pending"},
		{"taken back in a fork", []event.Payload{a, b, event.SessionForkedData{Parent: "p"}, hidden(3, 4)}, "1 a pending", "1 a pending"},
		{"of another program", []event.Payload{entry(-3, "x", "odd"), entry(1<<40, "y", event.TodoPending)}, "-3 x odd, 1099511627776 y pending", "1099511627776 y pending"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWriter(t).add(start).add(test.log...)
			check := func(s *turn.State) {
				t.Helper()
				if all, open := wrote(s.Todos()), wrote(s.OpenTodos()); all != test.all || open != test.open {
					t.Errorf("all: %q, want %q\nopen: %q, want %q", all, test.all, open, test.open)
				}
			}
			check(w.state)
			// Idle in between, so that loading skips what does not last.
			w.add(accepted, message, asked, words, ended, idle)
			loaded := turn.New("s")
			if err := loaded.Load(w.events); err != nil {
				t.Fatal(err)
			}
			check(loaded)
			if w.state.TodosAt() != loaded.TodosAt() {
				t.Errorf("changed at %d; after loading, at %d", w.state.TodosAt(), loaded.TodosAt())
			}
		})
	}
}

func TestTheListSaysWhereItChanged(t *testing.T) {
	w := newWriter(t).add(start)
	for _, step := range []struct {
		what event.Payload
		want event.Seq
	}{
		{accepted, 0}, {entry(1, "a", event.TodoPending), 3}, {hidden(1, 2), 3}, {hidden(1, 3), 5}, {hidden(1, 3), 5},
	} {
		if w.add(step.what); w.state.TodosAt() != step.want {
			t.Errorf("after event %d: changed at %d, want %d", w.state.Seq, w.state.TodosAt(), step.want)
		}
	}
}

// A rewind gives the list that there was, whatever came before and after.
func TestARewindGivesTheListThatThereWas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWriter(t).add(start)
		lists := []string{"", ""} // lists after 0, 1, 2 … events
		shown := []int{1}         // the events that can be gone back to
		for range rapid.IntRange(1, 30).Draw(rt, "length") {
			want := ""
			if rapid.IntRange(0, 4).Draw(rt, "rewind") == 0 && len(shown) > 0 {
				i := rapid.IntRange(0, len(shown)-1).Draw(rt, "from")
				w.add(hidden(event.Seq(shown[i]), event.Seq(len(w.events))))
				want, shown = lists[shown[i]-1], shown[:i]
			} else {
				shown = append(shown, len(w.events)+1)
				w.add(entry(rapid.IntRange(1, 4).Draw(rt, "id"), "s", rapid.SampledFrom([]string{event.TodoPending, event.TodoCompleted}).Draw(rt, "status")))
				want = wrote(w.state.Todos())
			}
			if got := wrote(w.state.Todos()); got != want {
				rt.Fatalf("the list is %q, and was %q", got, want)
			}
			lists = append(lists, want)
		}
	})
}

// noted makes the calls of one answer, one after the other, and returns what was
// recorded of each.
func noted(t *testing.T, w *writer, calls ...[2]string) [][]event.Payload {
	t.Helper()
	catalog := turn.Catalog(todo.New())
	answer := event.AssistantMessageData{MessageID: "m"}
	for i, c := range calls {
		answer.ToolRequests = append(answer.ToolRequests, event.ToolRequest{ToolCallID: fmt.Sprint("c", i), Name: c[0], Arguments: json.RawMessage(c[1])})
	}
	w.add(accepted, message, asked, answer)
	for i := range calls {
		w.add(intended(fmt.Sprint("c", i)))
	}
	var records [][]event.Payload
	for range calls {
		step, ok := turn.Next(w.state, nothing).(turn.Judge)
		if !ok {
			t.Fatalf("next = %T, want turn.Judge", turn.Next(w.state, nothing))
		}
		record := catalog.Judge(w.state, step.Call)
		w.add(record...)
		records = append(records, record)
	}
	return records
}

func TestACallAndItsChangeAreOneRecord(t *testing.T) {
	w := newWriter(t).add(start)
	records := noted(t, w,
		[2]string{"task_create", `{"subject":"a"}`}, [2]string{"task_create", `{"subject":"b"}`},
		[2]string{"task_update", `{"id":1,"status":"completed"}`}, [2]string{"task_update", `{"id":7,"status":"completed"}`}, [2]string{"task_list", `{}`})
	want := [][]event.Type{
		{event.TodoChanged, event.ToolComplete}, {event.TodoChanged, event.ToolComplete}, {event.TodoChanged, event.ToolComplete},
		{event.ToolComplete}, {event.ToolComplete},
	}
	for i, record := range records {
		var kinds []event.Type
		for _, p := range record {
			kinds = append(kinds, p.Type())
		}
		if !slices.Equal(kinds, want[i]) {
			t.Errorf("call %d is recorded as %v, want %v", i+1, kinds, want[i])
		}
	}
	if got, want := wrote(w.state.Todos()), "1 a completed, 2 b pending"; got != want {
		t.Errorf("the list is %q, want %q", got, want)
	}
	if d := records[3][0].(event.ToolCompleteData); d.Success || !strings.Contains(d.Error.Message, "There is no task 7") {
		t.Errorf("an unknown task: %+v", d)
	}
	if d := records[4][0].(event.ToolCompleteData); !d.Success || d.Result.Content != "Open: 1\n2 [pending] b\n\nClosed: 1\n1 [completed] a" {
		t.Errorf("the list as told: %+v", d.Result)
	}
	if _, ok := turn.Next(w.state, nothing).(turn.EndStep); !ok {
		t.Errorf("next = %T, want turn.EndStep", turn.Next(w.state, nothing))
	}
}

func TestOpenTodosAreACopy(t *testing.T) {
	w := newWriter(t).add(start, entry(1, "a", event.TodoPending))
	w.state.OpenTodos()[0].Subject, w.state.Todos()[0].Subject = "x", "y"
	if got := wrote(w.state.Todos()); got != "1 a pending" {
		t.Errorf("the list is %q", got)
	}
}
