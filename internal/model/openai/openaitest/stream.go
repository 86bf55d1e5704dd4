package openaitest

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// pieceLength is how much one chunk carries of what the model did not stream.
const pieceLength = 40

// A sender sends a reply piece by piece, each in a chunk and a flush of its own.
type sender struct {
	w       http.ResponseWriter
	flusher *http.ResponseController
	model   string
	started bool

	text, reasoning int            // bytes sent
	calls           map[string]int // number of each call, in the order in which they begin
	arguments       map[string]int // bytes sent of each
}

// stream asks the model and passes the pieces on. Until the first of them an
// error is a status; after it, an event.
func (h *handler) stream(w http.ResponseWriter, r *http.Request, req *model.Request) {
	s := &sender{
		w: w, flusher: http.NewResponseController(w), model: req.Model,
		calls: make(map[string]int), arguments: make(map[string]int),
	}
	reply, err := h.model.Ask(r.Context(), req, s.delta)
	switch {
	case err != nil && s.started:
		s.fail(err)
	case err != nil:
		fail(w, err)
	default:
		s.rest(reply)
		s.finish(reply)
	}
}

func (s *sender) delta(d model.Delta) {
	switch {
	case d.Text != "":
		s.text += len(d.Text)
		s.chunk(object{"content": d.Text})
	case d.Reasoning != "":
		s.reasoning += len(d.Reasoning)
		s.chunk(object{"reasoning_content": d.Reasoning})
	case d.Arguments != "":
		s.begin(d.CallID, d.CallName)
		s.arguments[d.CallID] += len(d.Arguments)
		s.piece(d.CallID, object{"function": object{"arguments": d.Arguments}})
	}
}

// begin announces a call that is new.
func (s *sender) begin(id, name string) {
	if _, known := s.calls[id]; !known {
		s.calls[id] = len(s.calls)
		s.piece(id, object{"id": id, "type": "function", "function": object{"name": name, "arguments": ""}})
	}
}

// piece sends a piece of a call.
func (s *sender) piece(id string, what object) {
	what["index"] = s.calls[id]
	s.chunk(object{"tool_calls": []object{what}})
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

func (s *sender) finish(r *model.Reply) {
	out := completion("chat.completion.chunk", s.model)
	out["choices"] = []object{{"index": 0, "delta": object{}, "finish_reason": finishOf(r)}}
	s.event(encode(out))
	out["choices"] = []object{}
	out["usage"] = usageOf(r.Usage)
	s.event(encode(out))
	s.event([]byte("[DONE]"))
}

// fail reports an error in the middle of a stream.
func (s *sender) fail(err error) {
	var e *model.Error
	if !errors.As(err, &e) {
		panic(http.ErrAbortHandler)
	}
	status := cmp.Or(e.Status, statuses[e.Kind])
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	code := cmp.Or(errorCode(e), strconv.Itoa(status))
	s.event(encode(object{"error": object{"message": e.Message, "code": code}}))
}

func (s *sender) chunk(delta object) {
	out := completion("chat.completion.chunk", s.model)
	out["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": nil}}
	s.event(encode(out))
}

func (s *sender) event(data []byte) {
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = s.w.Write([]byte("data: " + string(data) + "\n\n"))
	_ = s.flusher.Flush()
}
