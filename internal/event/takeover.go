package event

// TurnTakenOver is the type of events about engines that go on with the turns of others.
const TurnTakenOver Type = "turn.taken_over"

var _ = list(
	Kind{Type: TurnTakenOver, body: body[TurnTakenOverData], Hidden: true, Inert: true},
)

// TurnTakenOverData is the body of turn.taken_over: an engine goes on with a turn that
// another one has begun, which was stopped or killed.
type TurnTakenOverData struct {
	InteractionID string `json:"interactionId"`
	LastTime      string `json:"lastTime"` // time of the last event that the earlier engine has stored, in the form of FormatTime
}

func (TurnTakenOverData) Type() Type { return TurnTakenOver }
