package event

// The types of events about a summary for whoever takes over a session. They are stored only
// for a client that may repeat its request.
const (
	HandoffRequested Type = "handoff.requested"
	HandoffCompleted Type = "handoff.completed"
)

var _ = list(
	Kind{Type: HandoffRequested, body: body[HandoffRequestedData], Hidden: true, Lasting: true, Keyed: true},
	Kind{Type: HandoffCompleted, body: body[HandoffCompletedData], Hidden: true, Lasting: true},
)

// HandoffRequestedData is the body of handoff.requested: a model is about to be asked for a
// summary.
type HandoffRequestedData struct {
	HandoffID string `json:"handoffId"`
	Key       string `json:"key,omitempty"` // idempotency key of the request
}

// HandoffCompletedData is the body of handoff.completed: how a summary ended. A request that
// is repeated gets the same.
type HandoffCompletedData struct {
	HandoffID string `json:"handoffId"`
	Summary   string `json:"summary,omitempty"` // empty if there was nothing to summarise
	Error     string `json:"error,omitempty"`   // reason of a failure
	Stopped   bool   `json:"stopped,omitempty"` // true if somebody has stopped the session
}

func (HandoffRequestedData) Type() Type { return HandoffRequested }
func (HandoffCompletedData) Type() Type { return HandoffCompleted }

func (d HandoffRequestedData) Request() Request { return Request{Key: d.Key, ID: d.HandoffID} }
