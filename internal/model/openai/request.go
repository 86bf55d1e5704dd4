package openai

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

// An encoder encodes messages for a provider and a model. A message begins with the comma
// that separates it from the one before, and ends with its content.
type encoder struct{ q *remote.Query }

// format returns the name of the cached form of messages. It is different for each
// profile, host and model, because what a provider added to a message is only sent back to
// the one that it came from.
func (e encoder) format() string {
	format := "openai-chat " + e.q.As().Name + " " + e.q.Host + " " + e.q.Model
	if e.q.Forget {
		format += " without state"
	}
	return format
}

// fragments returns the body of a request in pieces. The pieces of history, tools
// and system prompt are cached; the others are new. The newest text comes last.
func fragments(q *remote.Query) [][]byte {
	req := q.Request
	parts := make([][]byte, 0, 128)
	parts = append(parts, plainjson.AppendString([]byte(`{"model":`), req.Model))
	if q.HasTools() {
		parts = append(parts, req.Tools.Wire("openai-chat", encodeTools))
	}
	if asksByTool(q) {
		parts = appendAnswerTool(parts, q)
	}
	role := q.As().SystemRole
	parts = append(parts, q.Beginning(role, func() []byte { return beginning(role, req.System) }))
	first := len(parts)
	e := encoder{q}
	parts = model.AppendWire(parts, nil, req.Messages, e.format(), e.message)
	if req.System == "" && len(req.Messages) > 0 {
		parts[first] = parts[first][1:] // the first message has no comma before it
	}
	parts = appendTail(parts, q)
	return append(parts, options(q))
}

// beginning returns the start of the body, up to the list of messages.
func beginning(role, system string) []byte {
	b := make([]byte, 0, len(system)+len(system)/16+64)
	b = append(b, `,"messages":[`...)
	if system != "" {
		b = plainjson.AppendString(append(b, `{"role":"`+role+`","content":`...), system)
		b = append(b, '}')
	}
	return b
}

// appendTail adds the volatile tail at the end, where it does not invalidate the cache:
// to the last message if that is the user's, or a result that no message of the user may
// follow, else as a new message.
func appendTail(parts [][]byte, q *remote.Query) [][]byte {
	req := q.Request
	if req.Tail == "" {
		return append(parts, []byte("]"))
	}
	tail := "<system_reminder>" + req.Tail + "</system_reminder>"
	var last *model.Message
	if n := len(req.Messages); n > 0 && (req.Messages[n-1].Role == model.User || req.Messages[n-1].Role == model.ToolRole && !q.As().UserAfterResult(q.Model)) {
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
	if last.Role == model.User && len(last.Images)+len(last.Documents) > 0 {
		part := plainjson.AppendString([]byte(`,{"type":"text","text":`), tail)
		return append(parts, append(part, "}]}]"...))
	}
	if last.Text != "" {
		tail = "\n\n" + tail
	}
	return append(parts, append(plainjson.AppendEscaped(nil, tail), `"}]`...))
}

func options(q *remote.Query) []byte {
	as := q.As()
	b := make([]byte, 0, 128)
	if q.Stream {
		b = append(b, `,"stream":true`...)
		if !as.NoUsageOption {
			b = append(b, `,"stream_options":{"include_usage":true}`...)
		}
	}
	if q.ReasoningEffort != "" {
		b = appendEffort(b, as.Effort, q.ReasoningEffort)
	}
	if q.MaxOutput > 0 {
		limit := as.Limit
		if as.ReasonerLimit != "" && catalog.Of(q.Request).Reasoning {
			limit = as.ReasonerLimit
		}
		b = strconv.AppendInt(append(b, `,"`+limit+`":`...), int64(q.MaxOutput), 10)
	}
	return append(appendCache(appendForm(q.AppendSampling(b), q), q), '}')
}

func appendEffort(b []byte, form profile.Effort, effort string) []byte {
	switch form {
	case profile.EffortFlat:
		return plainjson.AppendString(append(b, `,"reasoning_effort":`...), effort)
	case profile.EffortNested:
		return append(plainjson.AppendString(append(b, `,"reasoning":{"effort":`...), effort), '}')
	}
	return b
}

// appendCache appends what the provider needs to know for its cache. Claude is the model
// that caches nothing unless it is asked to.
func appendCache(b []byte, q *remote.Query) []byte {
	switch as := q.As(); {
	case as.Cache == profile.CacheKey && q.Session != "":
		return plainjson.AppendString(append(b, `,"prompt_cache_key":`...), remote.FitID(q.Session))
	case as.Cache == profile.CacheMark && strings.Contains(strings.ToLower(q.Model), "claude"):
		return append(append(b, `,"cache_control":`...), q.CacheControl()...)
	}
	return b
}

// id returns the id of a call as the provider accepts it. A server that accepts every id
// may store data in it, and gets it back unchanged.
func (e encoder) id(id string) string {
	switch e.q.As().IDs {
	case profile.ShortID:
		return remote.FitIDWithin(longestID, id)
	case profile.NineID:
		return remote.NineID(id)
	}
	return id
}

// name returns the name of a tool as the provider accepts it.
func (e encoder) name(name string) string {
	if e.q.As().IDs == profile.AnyID {
		return name
	}
	return remote.FitName(name)
}

// longestID is the length limit of ids at OpenAI, in bytes.
const longestID = 40

// bridge stands between a result and a message of the user where the provider wants an
// answer of the model there.
const bridge = `,{"role":"assistant","content":"(no answer)"}`

func (e encoder) message(before, m *model.Message) []byte {
	b := make([]byte, 0, len(m.Text)+len(m.Text)/16+64)
	if before != nil && before.Role == model.ToolRole && m.Role == model.User && !e.q.As().UserAfterResult(e.q.Model) {
		b = append(b, bridge...)
	}
	b = plainjson.AppendString(append(b, `,{"role":`...), string(m.Role))
	var s *remote.State
	switch {
	case m.Role == model.ToolRole:
		b = plainjson.AppendString(append(b, `,"tool_call_id":`...), e.id(m.CallID))
	case m.Role == model.Assistant:
		s = e.state(m)
		if len(m.Calls) > 0 {
			b = e.appendCalls(append(b, `,"tool_calls":`...), m.Calls, s)
		}
		b = e.appendState(b, m, s)
	}
	return append(e.appendContent(append(b, `,"content":`...), m, s), '}')
}

func (e encoder) appendContent(b []byte, m *model.Message, s *remote.State) []byte {
	switch {
	case e.inContent(s):
		return appendThought(b, m)
	case m.Text == "" && len(m.Calls) > 0:
		return append(b, "null"...)
	case m.Role == model.User && len(m.Images)+len(m.Documents) > 0:
		return e.appendParts(b, m)
	}
	return plainjson.AppendString(b, m.Text)
}

// appendParts appends the text, the images and the documents of a message as a list, to
// which the tail can be added.
func (e encoder) appendParts(b []byte, m *model.Message) []byte {
	const open = '['
	b = append(b, open)
	if m.Text != "" {
		b = appendText(b, m.Text)
	}
	comma := func() {
		if b[len(b)-1] != open {
			b = append(b, ',')
		}
	}
	for _, image := range m.Images {
		comma()
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = append(plainjson.AppendEscaped(b, image.MediaType), ";base64,"...)
		b = append(base64.StdEncoding.AppendEncode(b, image.Data), `"}}`...)
	}
	for _, d := range m.Documents {
		comma()
		b = e.appendDocument(b, d)
	}
	return append(b, ']')
}

// appendThought appends the reasoning of a message and its text as a list.
func appendThought(b []byte, m *model.Message) []byte {
	b = append(appendText(append(b, `[{"type":"thinking","thinking":[`...), m.Reasoning.Text), "]}"...)
	if m.Text != "" {
		b = appendText(append(b, ','), m.Text)
	}
	return append(b, ']')
}

func appendText(b []byte, text string) []byte {
	return append(plainjson.AppendString(append(b, `{"type":"text","text":`...), text), '}')
}

// appendDocument appends a document in the part that the provider has for it, or words
// about it if there is none.
func (e encoder) appendDocument(b []byte, d model.Document) []byte {
	if !e.q.FitDocument(d) {
		return appendText(b, remote.Unread(d))
	}
	const data = "data:" + model.PDF + ";base64,"
	if e.q.As().ChatDocuments == profile.DocumentURL {
		b = plainjson.AppendString(append(b, `{"type":"document_url","document_name":`...), remote.FileName(d))
		b = append(b, `,"document_url":"`+data...)
		return append(base64.StdEncoding.AppendEncode(b, d.Data), `"}`...)
	}
	b = plainjson.AppendString(append(b, `{"type":"file","file":{"filename":`...), remote.FileName(d))
	b = append(b, `,"file_data":"`+data...)
	return append(base64.StdEncoding.AppendEncode(b, d.Data), `"}}`...)
}

func (e encoder) appendCalls(b []byte, calls []model.Call, s *remote.State) []byte {
	for i, call := range calls {
		b = append(b, "[,"[min(i, 1)])
		b = plainjson.AppendString(append(b, `{"id":`...), e.id(call.ID))
		b = plainjson.AppendString(append(b, `,"type":"function","function":{"name":`...), e.name(call.Name))
		arguments := string(call.Arguments)
		if arguments == "" {
			arguments = "{}" // the usual form of a call without arguments
		}
		b = plainjson.AppendString(append(b, `,"arguments":`...), arguments)
		b = append(e.appendOwn(append(b, '}'), i, s), '}')
	}
	return append(b, ']')
}

// noParameters is the schema of a tool without parameters. It also replaces a schema
// that is not valid JSON, which would make the whole request invalid.
const noParameters = `{"type":"object","properties":{}}`

func encodeTools(t *model.Tools) []byte {
	b := []byte(`,"tools":`)
	for i, tool := range t.List {
		b = appendTool(append(b, "[,"[min(i, 1)]), tool)
	}
	return append(b, ']')
}

func appendTool(b []byte, tool model.Tool) []byte {
	b = plainjson.AppendString(append(b, `{"type":"function","function":{"name":`...), tool.Name)
	b = plainjson.AppendString(append(b, `,"description":`...), tool.Description)
	b = append(b, `,"parameters":`...)
	if json.Valid(tool.Parameters) {
		b = append(b, tool.Parameters...)
	} else {
		b = append(b, noParameters...)
	}
	return append(b, "}}"...)
}
