package openai

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// format is the name of the cached form of messages and tools. A message begins with the
// comma that separates it from the one before, and ends with its content.
const format = "openai-chat"

// strictFormat is the format for providers that reject ids and names which other
// providers have chosen.
const strictFormat = "openai-chat-strict"

// strict reports whether a host needs strictFormat. A local server may store data in an
// id, and has to get the id back unchanged.
func strict(host string) bool {
	return host == "api.openai.com" || strings.HasSuffix(host, ".azure.com")
}

// fragments returns the body of a request in pieces. The pieces of history and tools
// are cached; the others are new. The newest text comes last.
func fragments(q *remote.Query) [][]byte {
	req := q.Request
	parts := make([][]byte, 0, 128)
	parts = append(parts, plainjson.AppendString([]byte(`{"model":`), req.Model))
	if req.Tools != nil && len(req.Tools.List) > 0 {
		parts = append(parts, req.Tools.Wire(format, encodeTools))
	}
	parts = append(parts, beginning(req.System))
	first := len(parts)
	if strict(q.Host) {
		parts = model.AppendWire(parts, nil, req.Messages, strictFormat, encodeStrict)
	} else {
		parts = model.AppendWire(parts, nil, req.Messages, format, encodeMessage)
	}
	if req.System == "" && len(req.Messages) > 0 {
		parts[first] = parts[first][1:] // the first message has no comma before it
	}
	parts = appendTail(parts, req)
	return append(parts, options(q))
}

// beginning returns the start of the body, up to the list of messages.
func beginning(system string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+64)
	b = append(b, `,"messages":[`...)
	if system != "" {
		b = plainjson.AppendString(append(b, `{"role":"system","content":`...), system)
		b = append(b, '}')
	}
	return b
}

// appendTail adds the volatile tail at the end, where it does not invalidate the cache:
// to the last message if that is the user's, else as a new message.
func appendTail(parts [][]byte, req *model.Request) [][]byte {
	if req.Tail == "" {
		return append(parts, []byte("]"))
	}
	tail := "<system_reminder>" + req.Tail + "</system_reminder>"
	var last *model.Message
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == model.User {
		last = req.Messages[n-1]
	}
	if last == nil {
		comma := ""
		if len(req.Messages) > 0 || req.System != "" {
			comma = ","
		}
		own := plainjson.AppendString([]byte(comma+`{"role":"user","content":`), tail)
		return append(parts, append(own, "}]"...))
	}
	n := len(parts) - 1
	parts[n] = parts[n][:len(parts[n])-len(`"}`)] // `]}` has the same length
	if len(last.Images) > 0 {
		part := plainjson.AppendString([]byte(`,{"type":"text","text":`), tail)
		return append(parts, append(part, "}]}]"...))
	}
	if last.Text != "" {
		tail = "\n\n" + tail
	}
	return append(parts, append(plainjson.AppendEscaped(nil, tail), `"}]`...))
}

func options(q *remote.Query) []byte {
	b := make([]byte, 0, 128)
	if q.Stream {
		b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	if q.ReasoningEffort != "" {
		b = plainjson.AppendString(append(b, `,"reasoning_effort":`...), q.ReasoningEffort)
	}
	if q.MaxOutput > 0 {
		b = strconv.AppendInt(append(b, `,"max_completion_tokens":`...), int64(q.MaxOutput), 10)
	}
	return append(b, '}')
}

// longestID is the length limit of ids at OpenAI, in bytes.
const longestID = 40

func encodeStrict(before, m *model.Message) []byte {
	fit := &model.Message{Role: m.Role, Text: m.Text, Images: m.Images, CallID: remote.FitIDWithin(longestID, m.CallID)}
	for _, c := range m.Calls {
		fit.Calls = append(fit.Calls, model.Call{ID: remote.FitIDWithin(longestID, c.ID), Name: remote.FitName(c.Name), Arguments: c.Arguments})
	}
	return encodeMessage(before, fit)
}

func encodeMessage(_, m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+64)
	b = plainjson.AppendString(append(b, `,{"role":`...), string(m.Role))
	switch {
	case m.Role == model.ToolRole:
		b = plainjson.AppendString(append(b, `,"tool_call_id":`...), m.CallID)
	case len(m.Calls) > 0:
		b = appendCalls(append(b, `,"tool_calls":`...), m.Calls)
	}
	return append(appendContent(append(b, `,"content":`...), m), '}')
}

func appendContent(b []byte, m *model.Message) []byte {
	switch {
	case m.Text == "" && len(m.Calls) > 0:
		return append(b, "null"...)
	case m.Role == model.User && len(m.Images) > 0:
		return appendPictures(b, m)
	}
	return plainjson.AppendString(b, m.Text)
}

func appendPictures(b []byte, m *model.Message) []byte {
	b = append(b, '[')
	if m.Text != "" {
		b = plainjson.AppendString(append(b, `{"type":"text","text":`...), m.Text)
		b = append(b, "},"...)
	}
	for i, image := range m.Images {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = append(plainjson.AppendEscaped(b, image.MediaType), ";base64,"...)
		b = append(base64.StdEncoding.AppendEncode(b, image.Data), `"}}`...)
	}
	return append(b, ']')
}

func appendCalls(b []byte, calls []model.Call) []byte {
	for i, call := range calls {
		b = append(b, "[,"[min(i, 1)])
		b = plainjson.AppendString(append(b, `{"id":`...), call.ID)
		b = plainjson.AppendString(append(b, `,"type":"function","function":{"name":`...), call.Name)
		arguments := string(call.Arguments)
		if arguments == "" {
			arguments = "{}" // the usual form of a call without arguments
		}
		b = plainjson.AppendString(append(b, `,"arguments":`...), arguments)
		b = append(b, "}}"...)
	}
	return append(b, ']')
}

// noParameters is the schema of a tool without parameters. It also replaces a schema
// that is not valid JSON, which would make the whole request invalid.
const noParameters = `{"type":"object","properties":{}}`

func encodeTools(t *model.Tools) []byte {
	b := []byte(`,"tools":`)
	for i, tool := range t.List {
		b = append(b, "[,"[min(i, 1)])
		b = plainjson.AppendString(append(b, `{"type":"function","function":{"name":`...), tool.Name)
		b = plainjson.AppendString(append(b, `,"description":`...), tool.Description)
		b = append(b, `,"parameters":`...)
		if json.Valid(tool.Parameters) {
			b = append(b, tool.Parameters...)
		} else {
			b = append(b, noParameters...)
		}
		b = append(b, "}}"...)
	}
	return append(b, ']')
}
