package event

// The types of events about the to-do list of the model.
const (
	TodoChanged  Type = "todo.changed"
	TodosChanged Type = "session.todos_changed"
)

var _ = list(
	Kind{Type: TodoChanged, body: body[TodoChangedData], Hidden: true, Lasting: true},
	Kind{Type: TodosChanged, body: empty, Sent: true, Silent: true},
)

// TodoChangedData is the body of todo.changed: an entry of the to-do list, with all
// its fields, as it is from here on.
type TodoChangedData struct {
	ID          int    `json:"id"` // number of the entry: 1, 2, 3 …
	Subject     string `json:"subject"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status"` // one of the Todo constants below
}

// The statuses of a to-do entry.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoCompleted  = "completed"
	TodoCancelled  = "cancelled" // the entry will not be done
)

// Open reports whether the entry is still to be done.
func (d TodoChangedData) Open() bool {
	return d.Status == TodoPending || d.Status == TodoInProgress
}

func (TodoChangedData) Type() Type { return TodoChanged }
