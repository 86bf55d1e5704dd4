package openaitest

import (
	"cmp"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

type object = remotetest.Object

// serverWire is the server's half of Chat Completions.
type serverWire struct{ split bool }

func (serverWire) Path() string { return "/chat/completions" }

func (serverWire) Decode(body []byte) (*model.Request, bool, error) { return decodeRequest(body) }

// Whole is a reply in one piece.
func (s serverWire) Whole(req *model.Request, r *model.Reply) object {
	out := completion("chat.completion", cmp.Or(r.Model, req.Model))
	out["usage"] = usageOf(r.Usage)
	var choices []object
	for i, m := range s.messages(r) {
		choices = append(choices, object{"index": i, "message": m, "finish_reason": remotetest.Finish(r), "logprobs": nil})
	}
	out["choices"] = choices
	return out
}

// messages is the reply as the messages of its choices.
func (s serverWire) messages(r *model.Reply) []object {
	first := object{"role": "assistant", "content": nil}
	if r.Text != "" || len(r.Calls) == 0 {
		first["content"] = r.Text
	}
	if r.Reasoning != nil {
		first["reasoning_content"] = r.Reasoning.Text
	}
	var calls []object
	for _, c := range r.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.Arguments)}})
	}
	if !s.split {
		if len(calls) > 0 {
			first["tool_calls"] = calls
		}
		return []object{first}
	}
	messages := []object{first}
	for _, c := range calls {
		messages = append(messages, object{"role": "assistant", "content": nil, "tool_calls": []object{c}})
	}
	return messages
}

func completion(kind, name string) object {
	return object{"id": "chatcmpl-local", "object": kind, "created": time.Now().Unix(), "model": name}
}

func usageOf(u model.Usage) object {
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"prompt_tokens":             in,
		"completion_tokens":         u.Output,
		"total_tokens":              in + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}

func (serverWire) Stream(req *model.Request, send remotetest.Send) remotetest.Stream {
	return &stream{model: req.Model, send: send}
}

// A stream sends a reply, each piece in a chunk of its own.
type stream struct {
	model string
	send  remotetest.Send
}

func (s *stream) Text(piece string)      { s.chunk(object{"content": piece}) }
func (s *stream) Reasoning(piece string) { s.chunk(object{"reasoning_content": piece}) }

func (s *stream) Call(n int, id, name string) {
	s.call(object{"index": n, "id": id, "type": "function", "function": object{"name": name, "arguments": ""}})
}

func (s *stream) Arguments(n int, piece string) {
	s.call(object{"index": n, "function": object{"arguments": piece}})
}

func (s *stream) call(what object) { s.chunk(object{"tool_calls": []object{what}}) }

func (s *stream) chunk(delta object) {
	out := completion("chat.completion.chunk", s.model)
	out["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": nil}}
	s.send("", out.Encode())
}

func (s *stream) End(r *model.Reply) {
	out := completion("chat.completion.chunk", s.model)
	out["choices"] = []object{{"index": 0, "delta": object{}, "finish_reason": remotetest.Finish(r)}}
	s.send("", out.Encode())
	out["choices"] = []object{}
	out["usage"] = usageOf(r.Usage)
	s.send("", out.Encode())
	s.send("", []byte("[DONE]"))
}

func (s *stream) Fail(status int, e *model.Error) {
	code := cmp.Or(remotetest.ErrorCode(e), strconv.Itoa(status))
	s.send("", object{"error": object{"message": e.Message, "code": code}}.Encode())
}
