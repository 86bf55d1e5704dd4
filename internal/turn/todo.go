package turn

import (
	"cmp"
	"context"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// A Todo is an entry of the model's list of what it has to do. The tools call it a
// task.
type Todo = event.TodoChangedData

// todos is the model's list of what it has to do, and the changes that made it.
type todos struct {
	list    []Todo       // entries in the order of their ids
	changes []todoChange // the oldest first, without those that were taken back
	at      event.Seq    // position of the last change of the list
}

type todoChange struct {
	seq event.Seq
	to  Todo
}

// OpenTodos returns the entries that are not done, sorted by id.
func (s *State) OpenTodos() []Todo {
	var open []Todo
	for _, t := range s.todos.list {
		if t.Open() {
			open = append(open, t)
		}
	}
	return open
}

// Todos returns all entries, sorted by id.
func (s *State) Todos() []Todo { return slices.Clone(s.todos.list) }

// TodosAt returns the position of the last change of the list.
func (s *State) TodosAt() event.Seq { return s.todos.at }

func (t *todos) fold(e event.Event, body event.Payload) {
	if d, ok := body.(event.TodoChangedData); ok {
		t.change(e.Seq, d)
	}
}

// change adds an entry, or replaces the one with the same id.
func (t *todos) change(seq event.Seq, to Todo) {
	i, found := t.find(to.ID)
	if found {
		to = sharing(to, t.list[i])
	}
	t.changes = append(t.changes, todoChange{seq, to})
	t.put(to)
	t.at = seq
}

func (t *todos) find(id int) (int, bool) {
	return slices.BinarySearchFunc(t.list, id, func(e Todo, id int) int { return cmp.Compare(e.ID, id) })
}

func (t *todos) put(to Todo) {
	if i, found := t.find(to.ID); found {
		t.list[i] = to
	} else {
		t.list = slices.Insert(t.list, i, to)
	}
}

// sharing returns an entry that uses the texts of an earlier one where they are equal.
// All changes are kept in memory, and most of them change the status alone.
func sharing(t, before Todo) Todo {
	if t.Subject == before.Subject {
		t.Subject = before.Subject
	}
	if t.Description == before.Description {
		t.Description = before.Description
	}
	return t
}

// hide takes back the changes in a part of the log. The event at the given position
// says so.
func (t *todos) hide(at event.Seq, d event.HistoryHiddenData) {
	before := len(t.changes)
	t.changes = slices.DeleteFunc(t.changes, func(c todoChange) bool { return d.From <= c.seq && c.seq <= d.To })
	if len(t.changes) == before {
		return
	}
	t.list, t.at = nil, at
	for _, c := range t.changes {
		t.put(c.to)
	}
}

// runInstantly makes a call that only changes the session itself, and returns what is
// to be recorded. The tool sees what earlier calls of the same answer have changed.
func (c Catalog) runInstantly(s *State, call *Call, t tool.Tool) []event.Payload {
	result, err := t.Run(context.Background(), c.toolCall(s, call))
	if err != nil {
		result = tool.Fail(err.Error())
	}
	return Finish(s, call, result)
}
