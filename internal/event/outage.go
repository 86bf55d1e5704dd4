package event

// The types of events about a model that cannot be reached.
const (
	TurnParked   Type = "turn.parked"
	TurnFallback Type = "turn.fallback"
)

var _ = list(
	Kind{Type: TurnParked, body: body[TurnParkedData], Hidden: true},
	Kind{Type: TurnFallback, body: body[TurnFallbackData], Hidden: true},
)

// OutageRules say what a session does while its model cannot be reached.
type OutageRules struct {
	PatienceMs *int64   `json:"patienceMs,omitempty"` // time that a turn waits for one model; the default of the engine if nil
	Fallback   []string `json:"fallback,omitempty"`   // models that are asked, in this order, when waiting is over
}

// TurnParkedData is the body of turn.parked: a request to the model failed, and it is
// made again later. Durations count from the time of the event, because the clock may be
// set meanwhile.
type TurnParkedData struct {
	TurnID   string `json:"turnId"`
	Until    string `json:"until"`          // time of the next attempt, in the form of FormatTime
	WaitMs   int64  `json:"waitMs"`         // time until then
	LeftMs   int64  `json:"leftMs"`         // time after which the turn gives the model up
	Attempts int    `json:"attempts"`       // number of attempts that failed
	Told     bool   `json:"told,omitempty"` // true if the provider said how long to wait
	Model    string `json:"model,omitempty"`
	Endpoint string `json:"endpoint,omitempty"` // place that could not be reached; turns that wait for the same one take turns
	// The reason, as in SessionErrorData.
	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"`
}

// TurnFallbackData is the body of turn.fallback: the rest of the turn is asked of another
// model.
type TurnFallbackData struct {
	TurnID string `json:"turnId"`
	Model  string `json:"model"`                   // model that is asked from here on
	From   string `json:"previousModel,omitempty"` // model that was given up
	// The reason, as in SessionErrorData.
	ErrorType  string `json:"errorType"`
	Message    string `json:"message"`
	StatusCode int    `json:"statusCode,omitempty"`
}

func (TurnParkedData) Type() Type   { return TurnParked }
func (TurnFallbackData) Type() Type { return TurnFallback }
