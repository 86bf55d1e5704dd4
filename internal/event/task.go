package event

import "encoding/json"

// The types of events about tasks: work that a tool call began and that goes on after
// the call has ended.
const (
	TaskStarted        Type = "task.started"
	TaskReported       Type = "task.reported"
	SystemNotification Type = "system.notification"
	TasksChanged       Type = "session.background_tasks_changed"
)

var _ = list(
	Kind{Type: TaskStarted, body: body[TaskStartedData], Hidden: true, Lasting: true},
	Kind{Type: TaskReported, body: body[TaskReportedData], Hidden: true, Lasting: true},
	Kind{Type: SystemNotification, body: body[SystemNotificationData], Lasting: true, Shapes: true, Said: true, Silent: true},
	Kind{Type: TasksChanged, body: empty, Sent: true, Silent: true},
)

// TaskStartedData is the body of task.started: what a call began goes on after the call
// has ended, as a task.
type TaskStartedData struct {
	Key        string `json:"key"` // key of the call, which identifies the task
	ToolCallID string `json:"toolCallId"`
	Stop       bool   `json:"stop,omitempty"` // true if the task is to be ended, because the turn of its call was stopped
}

// TaskReportedData is the body of task.reported: the status of a task has changed. One
// system.notification tells the model.
type TaskReportedData struct {
	Key    string          `json:"key"`              // key of the task
	TaskID string          `json:"taskId,omitempty"` // id of the task that the model knows
	Status string          `json:"status"`           // one of the Task constants below
	Ended  bool            `json:"ended"`            // true if no further reports follow
	Text   string          `json:"text,omitempty"`   // text for the model; if empty, the model is not told
	Kind   json.RawMessage `json:"kind,omitempty"`   // kind of the notification, in the protocol's form
}

// The statuses of a task.
const (
	TaskCompleted = "completed" // the task has ended with success
	TaskFailed    = "failed"    // the task has ended with a failure
	TaskKilled    = "killed"    // the task was stopped
	TaskLost      = "lost"      // nobody can find out any more how the task ended
	TaskRunning   = "running"   // the task goes on after it was stalled
	TaskStalled   = "stalled"   // the task seems to wait for input
	TaskNone      = "none"      // the call had not begun anything
)

// SystemNotificationData is the body of system.notification: the model is told of
// something that happened outside of its turn.
type SystemNotificationData struct {
	Content       string          `json:"content"`                 // text as the model reads it
	Kind          json.RawMessage `json:"kind"`                    // kind of the notification, in the protocol's form
	InteractionID string          `json:"interactionId,omitempty"` // turn in which the model is told
	Report        Seq             `json:"report,omitempty"`        // ours: position of the task.reported that it is about
}

func (TaskStartedData) Type() Type        { return TaskStarted }
func (TaskReportedData) Type() Type       { return TaskReported }
func (SystemNotificationData) Type() Type { return SystemNotification }
