package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// format names the form that messages and tools keep. A message begins with the
// comma that parts it from the one before, and ends with its content.
const format = "openai-chat"

// fragments returns the body of a request in pieces. History and tools are the
// kept ones; what is made anew stands around them. The newest words come last.
func fragments(req *model.Request, stream bool) [][]byte {
	parts := make([][]byte, 0, 128)
	parts = append(parts, appendString([]byte(`{"model":`), req.Model))
	if req.Tools != nil && len(req.Tools.List) > 0 {
		parts = append(parts, req.Tools.Wire(format, encodeTools))
	}
	parts = append(parts, beginning(req.System))
	first := len(parts)
	parts = model.AppendWire(parts, req.Messages, format, encodeMessage)
	if req.System == "" && len(req.Messages) > 0 {
		parts[first] = parts[first][1:] // nothing before it
	}
	parts = appendTail(parts, req)
	return append(parts, options(req, stream))
}

// beginning opens the list of messages.
func beginning(system string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+64)
	b = append(b, `,"messages":[`...)
	if system != "" {
		b = appendString(append(b, `{"role":"system","content":`...), system)
		b = append(b, '}')
	}
	return b
}

// appendTail puts the volatile state where it spoils no cache: into the last
// message if that is the user's, else into a message of its own.
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
		own := appendString([]byte(comma+`{"role":"user","content":`), tail)
		return append(parts, append(own, "}]"...))
	}
	n := len(parts) - 1
	parts[n] = parts[n][:len(parts[n])-len(`"}`)] // as long as `]}`
	if len(last.Images) > 0 {
		part := appendString([]byte(`,{"type":"text","text":`), tail)
		return append(parts, append(part, "}]}]"...))
	}
	if last.Text != "" {
		tail = "\n\n" + tail
	}
	return append(parts, append(appendEscaped(nil, tail), `"}]`...))
}

func options(req *model.Request, stream bool) []byte {
	b := make([]byte, 0, 128)
	if stream {
		b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	if req.ReasoningEffort != "" {
		b = appendString(append(b, `,"reasoning_effort":`...), req.ReasoningEffort)
	}
	if req.MaxOutput > 0 {
		b = strconv.AppendInt(append(b, `,"max_completion_tokens":`...), int64(req.MaxOutput), 10)
	}
	return append(b, '}')
}

func encodeMessage(m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+64)
	b = appendString(append(b, `,{"role":`...), string(m.Role))
	switch {
	case m.Role == model.ToolRole:
		b = appendString(append(b, `,"tool_call_id":`...), m.CallID)
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
	return appendString(b, m.Text)
}

func appendPictures(b []byte, m *model.Message) []byte {
	b = append(b, '[')
	if m.Text != "" {
		b = appendString(append(b, `{"type":"text","text":`...), m.Text)
		b = append(b, "},"...)
	}
	for i, image := range m.Images {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = append(appendEscaped(b, image.MediaType), ";base64,"...)
		b = append(base64.StdEncoding.AppendEncode(b, image.Data), `"}}`...)
	}
	return append(b, ']')
}

func appendCalls(b []byte, calls []model.Call) []byte {
	for i, call := range calls {
		b = append(b, "[,"[min(i, 1)])
		b = appendString(append(b, `{"id":`...), call.ID)
		b = appendString(append(b, `,"type":"function","function":{"name":`...), call.Name)
		arguments := string(call.Arguments)
		if arguments == "" {
			arguments = "{}" // what providers make of a call without any
		}
		b = appendString(append(b, `,"arguments":`...), arguments)
		b = append(b, "}}"...)
	}
	return append(b, ']')
}

// noParameters is the schema of a tool that takes none. It also stands in for a
// schema that is no JSON, which would spoil the whole request.
const noParameters = `{"type":"object","properties":{}}`

func encodeTools(t *model.Tools) []byte {
	b := []byte(`,"tools":`)
	for i, tool := range t.List {
		b = append(b, "[,"[min(i, 1)])
		b = appendString(append(b, `{"type":"function","function":{"name":`...), tool.Name)
		b = appendString(append(b, `,"description":`...), tool.Description)
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

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	return append(appendEscaped(append(b, '"'), s), '"')
}

func appendEscaped(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b = append(append(b, s[start:i]...), escape(c)...)
			start = i + 1
		}
	}
	return append(b, s[start:]...)
}

func escape(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// A body reads pieces one after the other.
type body struct {
	parts [][]byte
	off   int // in the first of them
}

func newBody(parts [][]byte) *body { return &body{parts: parts} }

func size(parts [][]byte) int64 {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return int64(n)
}

// Read fills p as far as it can: short pieces must not make short writes.
func (b *body) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(b.parts) > 0 {
		took := copy(p[n:], b.parts[0][b.off:])
		n += took
		b.off += took
		if b.off == len(b.parts[0]) {
			b.parts, b.off = b.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }
