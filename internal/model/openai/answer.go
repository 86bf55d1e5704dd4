package openai

import (
	"strconv"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

// form returns how the provider is asked for an answer of a certain form.
func form(q *remote.Query) profile.Answer {
	if q.HasTools() {
		return q.As().AnswerBesideTools
	}
	return q.As().Answer
}

// asksByTool reports whether the answer is asked for as the call of a tool.
func asksByTool(q *remote.Query) bool { return q.Schema != nil && form(q) != profile.AnswerByFormat }

// appendAnswerTool adds the tool whose parameters are the answer to the tools, which are
// the last piece if there are any.
func appendAnswerTool(parts [][]byte, q *remote.Query) [][]byte {
	opening := `,"tools":[`
	if n := len(parts) - 1; q.HasTools() {
		parts[n] = parts[n][:len(parts[n])-len("]")]
		opening = ","
	}
	return append(parts, append(appendTool([]byte(opening), q.AnswerTool()), ']'))
}

// appendForm appends the form that the answer must have.
func appendForm(b []byte, q *remote.Query) []byte {
	switch {
	case q.Schema == nil && q.Calling != model.MayCall && q.HasTools():
		return append(b, `,"tool_choice":"none"`...)
	case q.Schema == nil:
		return b
	case form(q) == profile.AnswerByCall:
		return append(b, `,"tool_choice":"required"`...)
	case form(q) == profile.AnswerByTool:
		return b
	}
	b = plainjson.AppendString(append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":`...), q.AnswerName())
	b = strconv.AppendBool(append(b, `,"strict":`...), q.Schema.Strict)
	return append(append(append(b, `,"schema":`...), q.Schema.JSON...), "}}"...)
}
