package anthropictest

import (
	"cmp"
	"encoding/json"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

type object = remotetest.Object

// reasons is how the wire calls the ends of a reply.
var reasons = map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}

func stopReason(r *model.Reply) string {
	finish := remotetest.Finish(r)
	return cmp.Or(reasons[finish], finish)
}

func head(name string) object {
	return object{"id": "msg_local", "type": "message", "role": "assistant", "model": name, "content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": usageOf(model.Usage{})}
}

func usageOf(u model.Usage) object {
	return object{
		"input_tokens":                u.Input,
		"output_tokens":               u.Output,
		"cache_read_input_tokens":     u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite,
		"output_tokens_details":       object{"thinking_tokens": u.Reasoning},
	}
}

// whole is a reply in one piece.
func whole(req *model.Request, r *model.Reply) object {
	out := head(cmp.Or(r.Model, req.Model))
	content := []object{}
	if t := r.Reasoning; t != nil {
		content = append(content, object{"type": "thinking", "thinking": t.Text, "signature": t.Opaque})
	}
	if r.Text != "" {
		content = append(content, object{"type": "text", "text": r.Text, "citations": nil})
	}
	for _, c := range r.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input(c)})
	}
	out["content"], out["stop_reason"], out["usage"] = content, stopReason(r), usageOf(r.Usage)
	return out
}

// input is the arguments of a call. Only a stream can carry what is no JSON.
func input(c model.Call) json.RawMessage {
	if json.Valid(c.Arguments) {
		return c.Arguments
	}
	return json.RawMessage("{}")
}

// none is the index of a block that was not begun.
const none = -1

// A stream sends a reply, each piece in an event of its own.
type stream struct {
	model          string
	send           remotetest.Send
	started        bool
	blocks         int // number of content blocks that were begun
	text, thinking int // indices
	calls          []int
}

func (s *stream) event(kind string, o object) {
	o["type"] = kind
	s.send(kind, o.Encode())
}

func (s *stream) start() {
	if !s.started {
		s.started = true
		s.event("message_start", object{"message": head(s.model)})
		s.event("ping", object{})
	}
}

// begin announces a block.
func (s *stream) begin(block object) int {
	s.start()
	index := s.blocks
	s.blocks++
	s.event("content_block_start", object{"index": index, "content_block": block})
	return index
}

func (s *stream) delta(index int, delta object) {
	s.event("content_block_delta", object{"index": index, "delta": delta})
}

func (s *stream) Text(piece string) {
	if s.text == none {
		s.text = s.begin(object{"type": "text", "text": "", "citations": nil})
	}
	s.delta(s.text, object{"type": "text_delta", "text": piece})
}

func (s *stream) Reasoning(piece string) {
	if s.thinking == none {
		s.thinking = s.begin(object{"type": "thinking", "thinking": "", "signature": ""})
	}
	s.delta(s.thinking, object{"type": "thinking_delta", "thinking": piece})
}

func (s *stream) Call(_ int, id, name string) {
	s.calls = append(s.calls, s.begin(object{"type": "tool_use", "id": id, "name": name, "input": object{}}))
}

func (s *stream) Arguments(n int, piece string) {
	s.delta(s.calls[n], object{"type": "input_json_delta", "partial_json": piece})
}

func (s *stream) End(r *model.Reply) {
	s.start()
	if s.thinking != none && r.Reasoning != nil {
		s.delta(s.thinking, object{"type": "signature_delta", "signature": r.Reasoning.Opaque})
	}
	for i := range s.blocks {
		s.event("content_block_stop", object{"index": i})
	}
	s.event("message_delta", object{"delta": object{"stop_reason": stopReason(r), "stop_sequence": nil}, "usage": usageOf(r.Usage)})
	s.event("message_stop", object{})
}

func (s *stream) Fail(status int, e *model.Error) {
	s.event("error", object{"error": object{"type": remotetest.ErrorType(status), "code": remotetest.ErrorCode(e), "message": e.Message}})
}
