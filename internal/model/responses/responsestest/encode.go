package responsestest

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

type object = remotetest.Object

func usageOf(u model.Usage) object {
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"input_tokens":          in,
		"input_tokens_details":  object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens":         u.Output,
		"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		"total_tokens":          in + u.Output,
	}
}

func head(name, status string) object {
	return object{"id": "resp_local", "object": "response", "created_at": time.Now().Unix(), "status": status, "model": name,
		"output": []object{}, "usage": nil, "error": nil, "incomplete_details": nil}
}

func summary(text string) []object {
	if text == "" {
		return []object{}
	}
	return []object{{"type": "summary_text", "text": text}}
}

func reasoningItem(i int, t *model.Reasoning) object {
	item := object{"type": "reasoning", "id": itemID("rs", i), "summary": summary(t.Text)}
	if t.Encrypted != "" {
		item["encrypted_content"] = t.Encrypted
	}
	return item
}

func textItem(i int, status, text string) object {
	content := []object{}
	if status == "completed" {
		content = append(content, object{"type": "output_text", "text": text, "annotations": []object{}})
	}
	return object{"type": "message", "id": itemID("msg", i), "role": "assistant", "status": status, "content": content}
}

func callItem(i int, status string, c model.Call) object {
	return object{"type": "function_call", "id": itemID("fc", i), "status": status, "call_id": c.ID, "name": c.Name, "arguments": string(c.Arguments)}
}

func itemID(kind string, i int) string { return kind + "_local_" + strconv.Itoa(i) }

// items is a reply item by item.
func items(r *model.Reply) []object {
	all := []object{}
	if r.Reasoning != nil {
		all = append(all, reasoningItem(len(all), r.Reasoning))
	}
	if r.Text != "" || len(r.Calls) == 0 {
		all = append(all, textItem(len(all), "completed", r.Text))
	}
	for _, c := range r.Calls {
		all = append(all, callItem(len(all), "completed", c))
	}
	return all
}

// ended is the response when it is over.
func ended(req *model.Request, r *model.Reply, output []object) object {
	out := head(cmp.Or(r.Model, req.Model), "completed")
	out["output"], out["usage"] = output, usageOf(r.Usage)
	if remotetest.Finish(r) == "length" {
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	return out
}

// whole is a reply in one piece.
func whole(req *model.Request, r *model.Reply) object { return ended(req, r, items(r)) }

// none is the place of an item that was not begun.
const none = -1

// A stream sends a reply, each piece in an event of its own.
type stream struct {
	req             *model.Request
	send            remotetest.Send
	sent            int // events
	output          []func(*model.Reply) object
	text, reasoning int // places in the output
	calls           []int
}

func (s *stream) event(kind string, o object) {
	if s.sent == 0 && kind != "response.created" {
		s.event("response.created", object{"response": head(s.req.Model, "in_progress")})
	}
	o["type"], o["sequence_number"] = kind, s.sent
	s.sent++
	s.send(kind, o.Encode())
}

// begin announces an item, and says what it will be in the end.
func (s *stream) begin(item func(place int) object, whole func(place int, r *model.Reply) object) int {
	place := len(s.output)
	s.output = append(s.output, func(r *model.Reply) object { return whole(place, r) })
	s.event("response.output_item.added", object{"output_index": place, "item": item(place)})
	return place
}

func (s *stream) Text(piece string) {
	if s.text == none {
		s.text = s.begin(
			func(i int) object { return textItem(i, "in_progress", "") },
			func(i int, r *model.Reply) object { return textItem(i, "completed", r.Text) })
	}
	s.event("response.output_text.delta", object{"output_index": s.text, "item_id": itemID("msg", s.text), "content_index": 0, "delta": piece, "logprobs": []object{}})
}

func (s *stream) Reasoning(piece string) {
	if s.reasoning == none {
		s.reasoning = s.begin(
			func(i int) object { return reasoningItem(i, new(model.Reasoning)) },
			func(i int, r *model.Reply) object { return reasoningItem(i, cmp.Or(r.Reasoning, new(model.Reasoning))) })
	}
	s.event("response.reasoning_summary_text.delta", object{"output_index": s.reasoning, "item_id": itemID("rs", s.reasoning), "summary_index": 0, "delta": piece})
}

func (s *stream) Call(n int, id, name string) {
	s.calls = append(s.calls, s.begin(
		func(i int) object { return callItem(i, "in_progress", model.Call{ID: id, Name: name}) },
		func(i int, r *model.Reply) object { return callItem(i, "completed", r.Calls[n]) }))
}

func (s *stream) Arguments(n int, piece string) {
	place := s.calls[n]
	s.event("response.function_call_arguments.delta", object{"output_index": place, "item_id": itemID("fc", place), "delta": piece})
}

func (s *stream) End(r *model.Reply) {
	output := []object{}
	for i, whole := range s.output {
		output = append(output, whole(r))
		s.event("response.output_item.done", object{"output_index": i, "item": output[i]})
	}
	kind := "response.completed"
	if remotetest.Finish(r) == "length" {
		kind = "response.incomplete"
	}
	s.event(kind, object{"response": ended(s.req, r, output)})
}

func (s *stream) Fail(status int, e *model.Error) {
	code := cmp.Or(remotetest.ErrorCode(e), remotetest.ErrorType(status))
	if status == http.StatusTooManyRequests {
		code = "rate_limit_exceeded"
	}
	out := head(s.req.Model, "failed")
	out["error"] = object{"code": code, "message": e.Message}
	s.event("response.failed", object{"response": out})
}
