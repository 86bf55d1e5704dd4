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

// fragments returns the body of a request in pieces. History and tools are the
// kept ones; what is made anew stands around them. The newest words come last.
func fragments(q *remote.Query) [][]byte {
	parts := make([][]byte, 0, 128)
	parts = append(parts, plainjson.AppendString([]byte(`{"model":`), q.Model))
	if q.Tools != nil && len(q.Tools.List) > 0 {
		parts = append(parts, q.Tools.Wire("openai-responses", encodeTools))
	}
	parts = append(parts, beginning(q.System))
	e := encoder{q}
	parts = model.AppendWire(parts, nil, q.Messages, e.format(), e.message)
	parts = appendTail(parts, q)
	return append(parts, options(q))
}

// beginning opens the list of items.
func beginning(system string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+64)
	if system != "" {
		b = plainjson.AppendString(append(b, `,"instructions":`...), system)
	}
	return append(b, `,"input":[`...)
}

// appendTail puts the volatile state where it spoils no cache: into the last
// message if that is the user's, else into a message of its own.
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

// options says how to answer. Nothing is stored; so reasoning has to be given
// away, which only models that reason can do.
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
	if q.Session != "" { // requests with the same key find each other's caches
		b = plainjson.AppendString(append(b, `,"prompt_cache_key":`...), remote.FitID(q.Session))
	}
	if q.Stream {
		b = append(b, `,"stream":true`...)
	}
	return append(b, '}')
}

// An encoder writes messages for where they go.
type encoder struct{ q *remote.Query }

// format names the form that messages keep. It is one for each host and model,
// because reasoning only goes back to those.
func (e encoder) format() string {
	format := "openai-responses " + e.q.Host + " " + e.q.Model
	if e.q.Forget {
		format += " without reasoning"
	}
	return format
}

// message writes a message as one item or more.
func (e encoder) message(before, m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+128)
	if before != nil {
		b = append(b, ',')
	}
	switch m.Role {
	case model.Assistant:
		return e.appendAnswer(b, m)
	case model.ToolRole:
		return appendResult(b, m)
	}
	return append(appendContent(append(b, `{"type":"message","role":"user","content":`...), m), '}')
}

func appendText(b []byte, text string) []byte {
	return append(plainjson.AppendString(append(b, `{"type":"input_text","text":`...), text), '}')
}

// appendContent writes what a user says and shows, as a list to which the tail
// can be added.
func appendContent(b []byte, m *model.Message) []byte {
	b = append(b, '[')
	if m.Text != "" || len(m.Images) == 0 {
		b = appendText(b, m.Text)
	}
	for i, image := range m.Images {
		if i > 0 || m.Text != "" {
			b = append(b, ',')
		}
		b = appendImage(b, image)
	}
	return append(b, ']')
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

func appendResult(b []byte, m *model.Message) []byte {
	b = plainjson.AppendString(append(b, `{"type":"function_call_output","call_id":`...), remote.FitID(m.CallID))
	b = append(b, `,"output":`...)
	if len(m.Images) > 0 {
		b = appendContent(b, m)
	} else {
		b = plainjson.AppendString(b, m.Text)
	}
	return append(b, '}')
}

// appendAnswer writes what the model said, item by item in the order in which
// they came if that is known.
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
			b = appendCall(b, calls[0], p.ID)
			calls = calls[1:]
		case p.Raw != nil:
			b = append(b, p.Raw...)
		default:
			b = appendSaid(b, said, p)
		}
	}
	return b
}

// parts returns the order of an answer. One of which nothing is known is a text,
// even an empty one, and calls.
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

// appendSaid writes a text of the model. With its name it is the provider's own
// item, without it is only like one.
func appendSaid(b []byte, text string, p remote.Part) []byte {
	b = append(b, `{"type":"message","role":"assistant"`...)
	if p.Phase != "" {
		b = plainjson.AppendString(append(b, `,"phase":`...), p.Phase)
	}
	if p.ID == "" {
		return append(plainjson.AppendString(append(b, `,"content":`...), text), '}')
	}
	b = plainjson.AppendString(append(b, `,"id":`...), p.ID)
	b = plainjson.AppendString(append(b, `,"status":"completed","content":[{"type":"output_text","annotations":[],"text":`...), text)
	return append(b, "}]}"...)
}

func appendCall(b []byte, c model.Call, id string) []byte {
	b = append(b, `{"type":"function_call"`...)
	if id != "" {
		b = plainjson.AppendString(append(b, `,"id":`...), id)
	}
	b = plainjson.AppendString(append(b, `,"call_id":`...), remote.FitID(c.ID))
	b = plainjson.AppendString(append(b, `,"name":`...), remote.FitName(c.Name))
	arguments := string(c.Arguments)
	if arguments == "" {
		arguments = "{}" // what providers make of a call without any
	}
	return append(plainjson.AppendString(append(b, `,"arguments":`...), arguments), '}')
}

// noParameters is the schema of a tool that takes none. It also stands in for a
// schema that is no JSON, which would spoil the whole request.
const noParameters = `{"type":"object","properties":{}}`

// encodeTools writes tools. They are not strict: that is a promise about their
// schemas which only their authors could make.
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
