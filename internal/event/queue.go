package event

import "cmp"

// The types of events about the queue: accepted inputs that wait to be delivered.
const (
	QueueChanged            Type = "queue.changed"
	PendingMessagesModified Type = "pending_messages.modified"
)

var _ = list(
	Kind{Type: QueueChanged, body: body[QueueChangedData], Hidden: true, Lasting: true, Keyed: true},
	Kind{Type: PendingMessagesModified, body: empty, Sent: true, Silent: true},
)

// QueueChangedData is the body of queue.changed: the queue as it is after a client
// changed it.
type QueueChangedData struct {
	Order  []string   `json:"order"`            // ids of all inputs that wait, in their new order
	Edited *QueueEdit `json:"edited,omitempty"` // input whose text was changed
	Steer  string     `json:"steer,omitempty"`  // id of an input that is now to be delivered in the running turn
	Paused *bool      `json:"paused,omitempty"` // true if the queue is paused; nil if that did not change
	Added  string     `json:"added,omitempty"`  // id of an input that was added
	Key    string     `json:"key,omitempty"`    // idempotency key of the request
}

// A QueueEdit is the new text of a queued input.
type QueueEdit struct {
	InputID       string `json:"inputId"`
	Prompt        string `json:"prompt"`                  // text for the model
	DisplayPrompt string `json:"displayPrompt,omitempty"` // text to show to people; Prompt if empty
}

func (QueueChangedData) Type() Type { return QueueChanged }

func (d QueueChangedData) Request() Request {
	return Request{Key: d.Key, ID: cmp.Or(d.Added, string(QueueChanged))}
}
