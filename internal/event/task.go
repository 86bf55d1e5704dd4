package event

import "encoding/json"

// The kinds of events about work that goes on in the background.
const (
	TaskStarted        Type = "task.started"
	TaskReported       Type = "task.reported"
	SystemNotification Type = "system.notification"
	TasksChanged       Type = "session.background_tasks_changed"
)

var _ = list(
	Kind{Type: TaskStarted, body: body[TaskStartedData], Hidden: true, Lasting: true},
	Kind{Type: TaskReported, body: body[TaskReportedData], Hidden: true, Lasting: true},
	Kind{Type: SystemNotification, body: body[SystemNotificationData], Lasting: true, Shapes: true, Said: true},
	Kind{Type: TasksChanged, body: empty, Sent: true},
)

// TaskStartedData tells that what a call began goes on without it.
type TaskStartedData struct {
	Key        string `json:"key"` // of the call
	ToolCallID string `json:"toolCallId"`
}

// TaskReportedData is news of a task. The model is told with a
// system.notification, once.
type TaskReportedData struct {
	Key    string `json:"key"`
	TaskID string `json:"taskId,omitempty"` // what the model calls it
	Status string `json:"status"`           // one of Task…
	Ended  bool   `json:"ended"`            // there will be no more news
	// Text is what the model reads. Nothing is told if it is empty.
	Text string          `json:"text,omitempty"`
	Kind json.RawMessage `json:"kind,omitempty"` // of the notification, in the protocol's form
}

// The statuses of a task.
const (
	TaskCompleted = "completed"
	TaskFailed    = "failed"
	TaskKilled    = "killed"
	TaskLost      = "lost"
	TaskRunning   = "running" // it goes on after it stalled
	TaskStalled   = "stalled" // it seems to wait for input
	TaskNone      = "none"    // nothing was ever begun
)

// SystemNotificationData tells the model of something that happened outside.
type SystemNotificationData struct {
	Content       string          `json:"content"` // as the model reads it
	Kind          json.RawMessage `json:"kind"`
	InteractionID string          `json:"interactionId,omitempty"`
	Report        Seq             `json:"report,omitempty"` // the task.reported that it tells of
}

func (TaskStartedData) Type() Type        { return TaskStarted }
func (TaskReportedData) Type() Type       { return TaskReported }
func (SystemNotificationData) Type() Type { return SystemNotification }
