package event

// The kinds of events about the list that a model keeps of what it has to do.
const (
	TodoChanged  Type = "todo.changed"
	TodosChanged Type = "session.todos_changed"
)

var _ = list(
	Kind{Type: TodoChanged, body: body[TodoChangedData], Hidden: true, Lasting: true},
	Kind{Type: TodosChanged, body: empty, Sent: true},
)

// TodoChangedData is an entry of the model's own list, whole, as it is from here
// on.
type TodoChangedData struct {
	ID          int    `json:"id"` // 1, 2, 3 …
	Subject     string `json:"subject"`
	Description string `json:"description,omitempty"`
	Status      string `json:"status"` // one of Todo…
}

// The statuses of an entry.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoCompleted  = "completed"
	TodoCancelled  = "cancelled" // it will not be done
)

// Open reports whether something is left to do.
func (d TodoChangedData) Open() bool {
	return d.Status == TodoPending || d.Status == TodoInProgress
}

func (TodoChangedData) Type() Type { return TodoChanged }
