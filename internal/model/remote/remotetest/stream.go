package remotetest

import (
	"net/http"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// pieceLength is how much one event carries of what the model did not stream.
const pieceLength = 40

// A sender passes the pieces of a reply on, each in a flush of its own.
type sender struct {
	stream Stream

	text, reasoning int            // bytes sent
	calls           map[string]int // number of each call, in the order in which they begin
	arguments       map[string]int // bytes sent of each
}

// stream asks the model and passes the pieces on. Until the first of them an
// error is a status; after it, an event.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, req *model.Request) {
	started := false
	s := &sender{
		stream: h.wire.Stream(req, sendTo(w, &started)),
		calls:  make(map[string]int), arguments: make(map[string]int),
	}
	reply, err := h.model.Ask(r.Context(), req, s.delta)
	switch {
	case err != nil && started:
		s.stream.Fail(statusOf(err))
	case err != nil:
		fail(w, err)
	default:
		s.rest(reply)
		s.stream.End(reply)
	}
}

// sendTo writes events, and the header with the first one.
func sendTo(w http.ResponseWriter, started *bool) Send {
	flusher := http.NewResponseController(w)
	return func(name string, data []byte) {
		if !*started {
			*started = true
			w.Header().Set("Content-Type", "text/event-stream")
		}
		event := "data: " + string(data) + "\n\n"
		if name != "" {
			event = "event: " + name + "\n" + event
		}
		_, _ = w.Write([]byte(event))
		_ = flusher.Flush()
	}
}

func (s *sender) delta(d model.Delta) {
	switch {
	case d.Text != "":
		s.text += len(d.Text)
		s.stream.Text(d.Text)
	case d.Reasoning != "":
		s.reasoning += len(d.Reasoning)
		s.stream.Reasoning(d.Reasoning)
	case d.Arguments != "":
		s.begin(d.CallID, d.CallName)
		s.arguments[d.CallID] += len(d.Arguments)
		s.stream.Arguments(s.calls[d.CallID], d.Arguments)
	}
}

// begin announces a call that is new.
func (s *sender) begin(id, name string) {
	if _, known := s.calls[id]; !known {
		s.calls[id] = len(s.calls)
		s.stream.Call(s.calls[id], id, name)
	}
}

// rest sends what the model put into its reply without streaming it.
func (s *sender) rest(r *model.Reply) {
	if r.Reasoning != nil {
		for _, p := range pieces(r.Reasoning.Text[s.reasoning:]) {
			s.delta(model.Delta{Reasoning: p})
		}
	}
	for _, p := range pieces(r.Text[s.text:]) {
		s.delta(model.Delta{Text: p})
	}
	for _, c := range r.Calls {
		s.begin(c.ID, c.Name)
		for _, p := range pieces(string(c.Arguments[s.arguments[c.ID]:])) {
			s.delta(model.Delta{Arguments: p, CallID: c.ID, CallName: c.Name})
		}
	}
}

// pieces cuts a text between characters.
func pieces(text string) []string {
	var out []string
	for len(text) > pieceLength {
		cut := pieceLength
		for cut > 1 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		out = append(out, text[:cut])
		text = text[cut:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}
