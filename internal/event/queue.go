package event

import "cmp"

// The kinds of events about inputs that wait.
const (
	QueueChanged            Type = "queue.changed"
	PendingMessagesModified Type = "pending_messages.modified"
)

var _ = list(
	Kind{Type: QueueChanged, body: body[QueueChangedData], Hidden: true, Lasting: true, Keyed: true},
	Kind{Type: PendingMessagesModified, body: empty, Sent: true},
)

// QueueChangedData is how the queue stands after somebody changed it.
type QueueChangedData struct {
	Order  []string   `json:"order"`            // the inputs that are left
	Edited *QueueEdit `json:"edited,omitempty"` // one that says something else now
	Steer  string     `json:"steer,omitempty"`  // one that is to be heard in the running turn
	Paused *bool      `json:"paused,omitempty"` // whether the queue is held, if that changed
	Added  string     `json:"added,omitempty"`  // an input that was put in
	Key    string     `json:"key,omitempty"`    // the idempotency key of the request
}

// A QueueEdit is what a queued input says from now on.
type QueueEdit struct {
	InputID       string `json:"inputId"`
	Prompt        string `json:"prompt"`
	DisplayPrompt string `json:"displayPrompt,omitempty"`
}

func (QueueChangedData) Type() Type { return QueueChanged }

func (d QueueChangedData) Request() Request {
	return Request{Key: d.Key, ID: cmp.Or(d.Added, string(QueueChanged))}
}
