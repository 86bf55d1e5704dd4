package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// marker returns the end of a block after which the provider caches everything so far. It
// replaces the closing brace of the block.
func marker(q *remote.Query) string { return `,"cache_control":` + q.CacheControl() + `}` }

// fragments returns the body of a request in pieces. The pieces of history, tools
// and system prompt are cached; the others are new. The newest text comes last.
func fragments(q *remote.Query) [][]byte {
	parts := make([][]byte, 0, 128)
	parts = append(parts, thinkingOf(q).append(plainjson.AppendString([]byte(`{"model":`), q.Model), enforced(q)))
	if q.HasTools() {
		end := marker(q)
		parts = append(parts, q.Tools.Wire("anthropic "+end, func(t *model.Tools) []byte { return encodeTools(t, end) }))
	}
	if asksByTool(q) {
		parts = appendAnswerTool(parts, q)
	}
	end := marker(q)
	parts = append(parts, q.Beginning(end, func() []byte { return beginning(q.System, end) }))
	parts = appendHistory(parts, q)
	return append(parts, ending(q))
}

// beginning returns the start of the body, up to the list of messages.
func beginning(system, marker string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+128)
	if strings.TrimSpace(system) != "" {
		b = plainjson.AppendString(append(b, `,"system":[{"type":"text","text":`...), system)
		b = append(append(b, marker...), ']')
	}
	return append(b, `,"messages":[`...)
}

// appendHistory adds the messages, without the end of the last one. It marks two places
// for the cache: the end of the history, and the end of the previous request, so that
// the provider finds that in its cache however much was added since.
func appendHistory(parts [][]byte, q *remote.Query) [][]byte {
	e := encoder{q}
	format, messages := e.format(), q.Messages
	var before *model.Message
	if ended := lastAnswer(messages); ended > 0 {
		before = messages[ended-1]
		parts = model.AppendWire(parts, nil, messages[:ended], format, e.message)
		parts = mark(parts, before, marker(q))
		messages = messages[ended:]
	}
	parts = model.AppendWire(parts, before, messages, format, e.message)
	if len(messages) > 0 {
		parts = mark(parts, messages[len(messages)-1], marker(q))
	}
	return parts
}

// lastAnswer returns the index of the newest answer, or -1. The messages before it were
// the previous request.
func lastAnswer(messages []*model.Message) int {
	i := len(messages) - 1
	for i >= 0 && messages[i].Role != model.Assistant {
		i--
	}
	return i
}

// mark marks the end of the last piece, which is that of m. Answers are not marked,
// because thinking cannot be.
func mark(parts [][]byte, m *model.Message, marker string) [][]byte {
	if m.Role == model.Assistant {
		return parts
	}
	n := len(parts) - 1
	parts[n] = parts[n][:len(parts[n])-len("}")]
	return append(parts, []byte(marker))
}

// ending returns the end of the body: the volatile tail, which comes after everything
// that is cached, and the end of the last message.
func ending(q *remote.Query) []byte {
	b := make([]byte, 0, len(q.Tail)+len(q.Tail)/16+128)
	var last *model.Message
	if n := len(q.Messages); n > 0 {
		last = q.Messages[n-1]
	}
	if q.Tail != "" {
		tail := &model.Message{Role: model.User}
		b = appendText(open(b, last, tail), "<system_reminder>"+q.Tail+"</system_reminder>")
		last = tail
	}
	if last != nil {
		b = append(b, "]}"...)
	}
	b = append(b, ']')
	if asksByTool(q) && !thinkingOf(q).on() { // a model that thinks cannot be made to call a tool
		b = append(b, `,"tool_choice":{"type":"any"}`...)
	}
	if q.Calling == model.MustNotCall && q.HasTools() && !asksByTool(q) { // the cache of the messages depends on it
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	}
	if !thinkingOf(q).on() { // it cannot be set for a model that thinks
		b = q.AppendSampling(b)
	}
	if q.Stream {
		b = append(b, `,"stream":true`...)
	}
	return append(b, '}')
}

// An encoder encodes messages for a host and model.
type encoder struct{ q *remote.Query }

// format returns the name of the cached form of messages. It is different for each
// profile, host and model, because thinking is only sent back to the one that it came from.
func (e encoder) format() string {
	format := "anthropic " + e.q.As().Name + " " + e.q.Host + " " + e.q.Model
	if e.q.Forget {
		format += " without thoughts"
	}
	return format
}

// message encodes a message as blocks. The list of blocks is not closed, because the
// next message may add to it.
func (e encoder) message(before, m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+128)
	b = open(b, before, m)
	switch m.Role {
	case model.Assistant:
		return e.appendAnswer(b, m)
	case model.ToolRole:
		return e.appendResult(b, m)
	}
	return e.appendContent(b, m)
}

func side(m *model.Message) string {
	if m.Role == model.Assistant {
		return "assistant"
	}
	return "user"
}

// open appends what comes before the blocks of m. A conversation always begins with the
// user.
func open(b []byte, before, m *model.Message) []byte {
	switch {
	case before == nil && m.Role == model.Assistant:
		b = appendText(append(b, `{"role":"user","content":[`...), "(The conversation began earlier.)")
		b = append(b, "]},"...)
	case before == nil:
	case side(before) == side(m):
		return append(b, ',')
	default:
		b = append(b, "]},"...)
	}
	b = append(append(b, `{"role":"`...), side(m)...)
	return append(b, `","content":[`...)
}

// appendText appends a block of text, or nothing if the text is empty.
func appendText(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = "(empty)"
	}
	return append(plainjson.AppendString(append(b, `{"type":"text","text":`...), text), '}')
}

// appendOwnText appends a text of the model with its further members.
func appendOwnText(b []byte, text string, own remote.Members) []byte {
	b = appendText(b, text)
	if len(own) == 0 {
		return b
	}
	return append(own.Append(b[:len(b)-1], ","), '}')
}

// appendContent appends the text, the images and the documents of a user message.
func (e encoder) appendContent(b []byte, m *model.Message) []byte {
	empty := len(b)
	if strings.TrimSpace(m.Text) != "" || len(m.Images)+len(m.Documents) == 0 {
		b = appendText(b, m.Text)
	}
	comma := func() {
		if len(b) > empty {
			b = append(b, ',')
		}
	}
	for _, image := range m.Images {
		comma()
		b = appendImage(b, image)
	}
	for _, d := range m.Documents {
		comma()
		b = e.appendDocument(b, d)
	}
	return b
}

func (e encoder) appendDocument(b []byte, d model.Document) []byte {
	if !e.q.FitDocument(d) {
		return appendText(b, remote.Unread(d))
	}
	b = plainjson.AppendString(append(b, `{"type":"document","title":`...), remote.FileName(d))
	b = append(b, `,"source":{"type":"base64","media_type":"`+model.PDF+`","data":"`...)
	return append(base64.StdEncoding.AppendEncode(b, d.Data), `"}}`...)
}

func appendImage(b []byte, image model.Image) []byte {
	mediaType, ok := remote.FitImage(image)
	if !ok {
		return appendText(b, remote.Unseen(image))
	}
	b = append(append(b, `{"type":"image","source":{"type":"base64","media_type":"`...), mediaType...)
	b = base64.StdEncoding.AppendEncode(append(b, `","data":"`...), image.Data)
	return append(b, `"}}`...)
}

func (e encoder) appendResult(b []byte, m *model.Message) []byte {
	b = plainjson.AppendString(append(b, `{"type":"tool_result","tool_use_id":`...), remote.FitID(m.CallID))
	if strings.TrimSpace(m.Text) != "" || len(m.Images)+len(m.Documents) > 0 {
		b = append(e.appendContent(append(b, `,"content":[`...), m), ']')
	}
	if m.Failed {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, '}')
}

// appendAnswer appends an answer of the model, in its original order if that is known.
func (e encoder) appendAnswer(b []byte, m *model.Message) []byte {
	parts := kept(e.q, m)
	if parts == nil {
		parts = plainParts(m)
	}
	text, calls, first := m.Text, m.Calls, true
	for _, p := range parts {
		var said string
		said, text = p.Cut(text)
		if p.Text > 0 && strings.TrimSpace(said) == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		switch {
		case p.Call:
			b = appendCall(b, calls[0], p.Own)
			calls = calls[1:]
		case p.Text > 0:
			b = appendOwnText(b, said, p.Own)
		default:
			b = append(b, p.Raw...)
		}
	}
	if first {
		b = appendText(b, "")
	}
	return b
}

// plainParts returns the parts of an answer without an outline.
func plainParts(m *model.Message) []remote.Part {
	var parts []remote.Part
	if m.Text != "" {
		parts = append(parts, remote.Part{Text: len(m.Text)})
	}
	for range m.Calls {
		parts = append(parts, remote.Part{Call: true})
	}
	return parts
}

func appendCall(b []byte, c model.Call, own remote.Members) []byte {
	b = plainjson.AppendString(append(b, `{"type":"tool_use","id":`...), remote.FitID(c.ID))
	b = plainjson.AppendString(append(b, `,"name":`...), remote.FitName(c.Name))
	b = append(b, `,"input":`...)
	if isObject(c.Arguments) {
		b = append(b, c.Arguments...)
	} else {
		b = append(b, "{}"...)
	}
	return append(own.Append(b, ","), '}')
}

// isObject reports whether the arguments are valid in a request.
func isObject(arguments json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(arguments), []byte("{")) && json.Valid(arguments)
}

// noParameters is the schema of a tool without parameters. It also replaces a schema
// that is not an object, which would make the whole request invalid.
const noParameters = `{"type":"object","properties":{}}`

func encodeTools(t *model.Tools, marker string) []byte {
	b := []byte(`,"tools":`)
	for i, tool := range t.List {
		b = appendTool(append(b, "[,"[min(i, 1)]), tool)
		if i < len(t.List)-1 {
			b = append(b, '}')
		}
	}
	return append(append(b, marker...), ']')
}

// appendTool appends a tool without its closing brace, which a marker may replace.
func appendTool(b []byte, tool model.Tool) []byte {
	b = plainjson.AppendString(append(b, `{"name":`...), remote.FitName(tool.Name))
	if tool.Description != "" {
		b = plainjson.AppendString(append(b, `,"description":`...), tool.Description)
	}
	b = append(b, `,"input_schema":`...)
	if isObject(tool.Parameters) {
		return append(b, tool.Parameters...)
	}
	return append(b, noParameters...)
}
