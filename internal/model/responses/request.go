package responses

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// fragments returns the body of a request in pieces. The pieces of history, tools
// and system prompt are cached; the others are new. The newest text comes last.
func fragments(q *remote.Query) [][]byte {
	parts := make([][]byte, 0, 128)
	parts = append(parts, plainjson.AppendString([]byte(`{"model":`), q.Model))
	if q.Tools != nil && len(q.Tools.List) > 0 {
		parts = append(parts, q.Tools.Wire("openai-responses", encodeTools))
	}
	parts = append(parts, q.Beginning("", func() []byte { return beginning(q.System) }))
	e := encoder{q}
	parts = model.AppendWire(parts, nil, q.Messages, e.format(), e.message)
	parts = appendTail(parts, q)
	return append(parts, options(q))
}

// beginning returns the start of the body, up to the list of items.
func beginning(system string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+64)
	if system != "" {
		b = plainjson.AppendString(append(b, `,"instructions":`...), system)
	}
	return append(b, `,"input":[`...)
}

// appendTail adds the volatile tail at the end, where it does not invalidate the cache:
// to the last message if that is the user's, else as a new message.
func appendTail(parts [][]byte, q *remote.Query) [][]byte {
	if q.Tail == "" {
		return append(parts, []byte("]"))
	}
	tail := "<system_reminder>" + q.Tail + "</system_reminder>"
	n := len(q.Messages)
	if n > 0 && q.Messages[n-1].Role == model.User {
		last := len(parts) - 1
		parts[last] = parts[last][:len(parts[last])-len("]}")]
		return append(parts, append(appendText([]byte(","), tail), "]}]"...))
	}
	var before *model.Message
	if n > 0 {
		before = q.Messages[n-1]
	}
	own := encoder{q}.message(before, &model.Message{Role: model.User, Text: tail})
	return append(parts, append(own, ']'))
}

// options returns the options of a request. The provider stores nothing, so it is asked
// to include encrypted reasoning if the model reasons.
func options(q *remote.Query) []byte {
	b := append(make([]byte, 0, 256), `,"store":false`...)
	can := catalog.Of(q.Request)
	if reasons := can.Reasoning || !can.Known; reasons {
		if !q.Forget {
			b = append(b, `,"include":["reasoning.encrypted_content"]`...)
		}
		if q.ReasoningEffort != "" {
			b = plainjson.AppendString(append(b, `,"reasoning":{"effort":`...), q.ReasoningEffort)
			b = append(b, `,"summary":"auto"}`...)
		}
	}
	if q.MaxOutput > 0 {
		b = strconv.AppendInt(append(b, `,"max_output_tokens":`...), int64(q.MaxOutput), 10)
	}
	if q.Session != "" { // requests with the same key share a cache
		b = plainjson.AppendString(append(b, `,"prompt_cache_key":`...), remote.FitID(q.Session))
	}
	if q.Calling != model.MayCall && q.HasTools() {
		b = append(b, `,"tool_choice":"none"`...)
	}
	b = q.AppendSampling(b)
	if q.Stream {
		b = append(b, `,"stream":true`...)
	}
	if q.Schema != nil {
		b = plainjson.AppendString(append(b, `,"text":{"format":{"type":"json_schema","name":`...), q.AnswerName())
		b = strconv.AppendBool(append(b, `,"strict":`...), q.Schema.Strict)
		b = append(append(append(b, `,"schema":`...), q.Schema.JSON...), "}}"...)
	}
	return append(b, '}')
}

// An encoder encodes messages for a host and model.
type encoder struct{ q *remote.Query }

// format returns the name of the cached form of messages. It is different for each
// profile, host and model, because reasoning is only sent back to the one that it came from.
func (e encoder) format() string {
	format := "openai-responses " + e.q.As().Name + " " + e.q.Host + " " + e.q.Model
	if e.q.Forget {
		format += " without reasoning"
	}
	return format
}

// message encodes a message as one or more items.
func (e encoder) message(before, m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+128)
	if before != nil {
		b = append(b, ',')
	}
	switch m.Role {
	case model.Assistant:
		return e.appendAnswer(b, m)
	case model.ToolRole:
		return e.appendResult(b, m)
	}
	return append(e.appendContent(append(b, `{"type":"message","role":"user","content":`...), m), '}')
}

func appendText(b []byte, text string) []byte {
	return append(plainjson.AppendString(append(b, `{"type":"input_text","text":`...), text), '}')
}

// appendContent appends the text, the images and the documents of a user message, as a
// list to which the tail can be added.
func (e encoder) appendContent(b []byte, m *model.Message) []byte {
	const open = '['
	b = append(b, open)
	if m.Text != "" || len(m.Images)+len(m.Documents) == 0 {
		b = appendText(b, m.Text)
	}
	comma := func() {
		if b[len(b)-1] != open {
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
	return append(b, ']')
}

func (e encoder) appendDocument(b []byte, d model.Document) []byte {
	if !e.q.FitDocument(d) {
		return appendText(b, remote.Unread(d))
	}
	b = plainjson.AppendString(append(b, `{"type":"input_file","filename":`...), remote.FileName(d))
	b = append(b, `,"file_data":"data:`+model.PDF+`;base64,`...)
	return append(base64.StdEncoding.AppendEncode(b, d.Data), `"}`...)
}

func appendImage(b []byte, image model.Image) []byte {
	mediaType, ok := remote.FitImage(image)
	if !ok {
		return appendText(b, remote.Unseen(image))
	}
	b = append(append(b, `{"type":"input_image","detail":"auto","image_url":"data:`...), mediaType...)
	b = base64.StdEncoding.AppendEncode(append(b, ";base64,"...), image.Data)
	return append(b, `"}`...)
}

func (e encoder) appendResult(b []byte, m *model.Message) []byte {
	b = plainjson.AppendString(append(b, `{"type":"function_call_output","call_id":`...), remote.FitID(m.CallID))
	b = append(b, `,"output":`...)
	if len(m.Images)+len(m.Documents) > 0 {
		b = e.appendContent(b, m)
	} else {
		b = plainjson.AppendString(b, m.Text)
	}
	return append(b, '}')
}

// appendAnswer appends an answer of the model item by item, in the original order if
// that is known.
func (e encoder) appendAnswer(b []byte, m *model.Message) []byte {
	text, calls, first := m.Text, m.Calls, true
	for _, p := range e.parts(m) {
		var said string
		said, text = p.Cut(text)
		if !first {
			b = append(b, ',')
		}
		first = false
		switch {
		case p.Call:
			b = appendCall(b, calls[0], p)
			calls = calls[1:]
		case p.Raw != nil:
			b = append(b, p.Raw...)
		default:
			b = appendSaid(b, said, p)
		}
	}
	return b
}

// parts returns the parts of an answer. An answer without an outline is a text, which
// may be empty, and then its calls.
func (e encoder) parts(m *model.Message) []remote.Part {
	if m.Reasoning != nil && !e.q.Forget {
		if parts := remote.Parts(m.Reasoning.Encrypted, e.q.Host, e.q.Model, m); len(parts) > 0 {
			return parts
		}
	}
	var parts []remote.Part
	if m.Text != "" || len(m.Calls) == 0 {
		parts = append(parts, remote.Part{Text: len(m.Text)})
	}
	for range m.Calls {
		parts = append(parts, remote.Part{Call: true})
	}
	return parts
}

// appendSaid appends a text of the model. It is the provider's own item if its id is
// known, and otherwise a new item with the same content.
func appendSaid(b []byte, text string, p remote.Part) []byte {
	b = append(b, `{"type":"message","role":"assistant"`...)
	if p.Phase != "" {
		b = plainjson.AppendString(append(b, `,"phase":`...), p.Phase)
	}
	b = p.Own.Append(b, ",")
	if p.ID == "" {
		return append(plainjson.AppendString(append(b, `,"content":`...), text), '}')
	}
	b = plainjson.AppendString(append(b, `,"id":`...), p.ID)
	b = plainjson.AppendString(append(b, `,"status":"completed","content":[{"type":"output_text","annotations":[],"text":`...), text)
	return append(b, "}]}"...)
}

func appendCall(b []byte, c model.Call, p remote.Part) []byte {
	b = append(b, `{"type":"function_call"`...)
	if p.ID != "" {
		b = plainjson.AppendString(append(b, `,"id":`...), p.ID)
	}
	b = p.Own.Append(b, ",")
	b = plainjson.AppendString(append(b, `,"call_id":`...), remote.FitID(c.ID))
	b = plainjson.AppendString(append(b, `,"name":`...), remote.FitName(c.Name))
	arguments := string(c.Arguments)
	if arguments == "" {
		arguments = "{}" // the usual form of a call without arguments
	}
	return append(plainjson.AppendString(append(b, `,"arguments":`...), arguments), '}')
}

// noParameters is the schema of a tool without parameters. It also replaces a schema
// that is not valid JSON, which would make the whole request invalid.
const noParameters = `{"type":"object","properties":{}}`

// encodeTools encodes tools. They are not marked as strict, because that restricts what
// their schemas may contain.
func encodeTools(t *model.Tools) []byte {
	b := []byte(`,"tools":`)
	for i, tool := range t.List {
		b = append(b, "[,"[min(i, 1)])
		b = plainjson.AppendString(append(b, `{"type":"function","name":`...), remote.FitName(tool.Name))
		b = plainjson.AppendString(append(b, `,"description":`...), tool.Description)
		b = append(b, `,"strict":false,"parameters":`...)
		if json.Valid(tool.Parameters) {
			b = append(b, tool.Parameters...)
		} else {
			b = append(b, noParameters...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
