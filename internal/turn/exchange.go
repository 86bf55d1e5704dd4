package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// An Exchange is a question to the clients of a session that does not belong to a
// call of the model: a form to fill in, or a command to carry out. It is open until
// it is answered, even if no client is connected.
type Exchange struct {
	RequestID string
	Asked     event.Event
	Command   string // the text of a command; empty for a form
	InputID   string // the input that a queued command was; empty otherwise
}

// Form reports whether the exchange is a form for a person.
func (x Exchange) Form() bool { return x.Asked.Type == event.ElicitationAsked }

// Exchanges is the open exchanges with clients and the last ones that were closed.
type Exchanges struct {
	Open []Exchange
	done []closedExchange // the last ones that were closed, for clients that answer again

	redelivered map[string]int // number of times that open questions were sent to clients again, by request id
}

// A closedExchange is the id of an exchange and the event that closed it.
type closedExchange struct {
	id    string
	event event.Event
}

func (x *Exchanges) fold(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.ElicitationAskedData:
		x.ask(Exchange{RequestID: d.RequestID, Asked: e})
	case event.CommandExecuteData:
		x.ask(Exchange{RequestID: d.RequestID, Asked: e, Command: d.Command, InputID: d.InputID})
	case event.CommandQueuedData:
		x.ask(Exchange{RequestID: d.RequestID, Asked: e, Command: d.Command, InputID: d.InputID})
	case event.ElicitationDoneData:
		x.close(d.RequestID, e)
	case event.CommandDoneData:
		x.close(d.RequestID, e)
	case event.QuestionsRedeliveredData:
		x.redeliver(d.RequestIDs)
	}
}

// Find returns the open exchange of that id, or nil.
func (x *Exchanges) Find(requestID string) *Exchange {
	for i := range x.Open {
		if x.Open[i].RequestID == requestID {
			return &x.Open[i]
		}
	}
	return nil
}

// Queued returns the command from the queue that a client is carrying out, or nil.
func (x *Exchanges) Queued() *Exchange {
	for i := range x.Open {
		if x.Open[i].InputID != "" {
			return &x.Open[i]
		}
	}
	return nil
}

// Closed returns the event that closed an exchange, if it is one of the last.
func (x *Exchanges) Closed(requestID string) (event.Event, bool) {
	for _, d := range x.done {
		if d.id == requestID {
			return d.event, true
		}
	}
	return event.Event{}, false
}

// Forms returns the open forms.
func (x *Exchanges) Forms() []Exchange {
	var forms []Exchange
	for _, o := range x.Open {
		if o.Form() {
			forms = append(forms, o)
		}
	}
	return forms
}

func (x *Exchanges) ask(o Exchange) { x.Open = append(slices.Clip(x.Open), o) }

func (x *Exchanges) close(requestID string, e event.Event) {
	if x.Find(requestID) == nil {
		return
	}
	x.Open = slices.DeleteFunc(slices.Clone(x.Open), func(o Exchange) bool { return o.RequestID == requestID })
	if x.done = append(slices.Clip(x.done), closedExchange{requestID, e}); len(x.done) > maxRecent {
		x.done = slices.Clone(x.done[1:])
	}
}

func (x *Exchanges) redeliver(requestIDs []string) {
	counts := maps.Clone(x.redelivered)
	if counts == nil {
		counts = make(map[string]int)
	}
	for _, id := range requestIDs {
		counts[id]++
	}
	x.redelivered = counts
}

// A Filled form is the answer to a form.
type Filled struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// The actions of a Filled form.
const (
	Accept  = "accept"
	Dismiss = "decline"
	Cancel  = "cancel"
)

// FillIn returns what is to be recorded when a form is answered: without what was typed as
// a secret, of which not even a digest is kept, because a password can be guessed from it.
// It reports false if no such form is open.
func (s *State) FillIn(requestID, key string, f Filled) ([]event.Payload, bool, error) {
	o := s.Exchanges.Find(requestID)
	if o == nil || !o.Form() {
		return nil, false, nil
	}
	switch f.Action {
	case Accept, Dismiss, Cancel:
	default:
		return nil, false, fmt.Errorf("result.action: %q is unknown; use %s, %s or %s", f.Action, Accept, Dismiss, Cancel)
	}
	f.Content, _ = o.Redact(f.Content)
	return append([]event.Payload{event.ElicitationDoneData{
		RequestID: requestID, Action: f.Action, Content: f.Content, Answer: digestOf(key, f),
	}}, s.answerBudget(requestID, f.Action)...), true, nil
}

// A Carried command is the answer to a command.
type Carried struct {
	Error string `json:"error,omitempty"`
	Stop  bool   `json:"stop,omitempty"`
}

// CarryOut returns what is to be recorded when a client has carried out a command
// of the given kind. It reports false if no such command is open.
func (s *State) CarryOut(kind event.Type, requestID, key string, c Carried) ([]event.Payload, bool) {
	o := s.Exchanges.Find(requestID)
	if o == nil || o.Asked.Type != kind {
		return nil, false
	}
	return []event.Payload{event.CommandDoneData{RequestID: requestID, Error: c.Error, Stop: c.Stop, Answer: digestOf(key, c)}}, true
}

// DropCommand returns what is to be recorded when the command from the queue that a
// client is carrying out is given up.
func (s *State) DropCommand(reason string) []event.Payload {
	if o := s.Exchanges.Queued(); o != nil {
		return []event.Payload{event.CommandDoneData{RequestID: o.RequestID, Error: reason}}
	}
	return nil
}

func digestOf(key string, answer any) *event.Answered {
	b, err := json.Marshal(answer)
	if err != nil { // strings and raw JSON that was decoded before
		panic(err)
	}
	sum := sha256.Sum256(b)
	return &event.Answered{Digest: hex.EncodeToString(sum[:]), Key: key}
}

// Attempt returns how often an open question was sent to clients.
func (s *State) Attempt(requestID string) int { return 1 + s.Exchanges.redelivered[requestID] }
