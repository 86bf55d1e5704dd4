package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model/remote"
)

// enforced returns the schema of the answer if the provider and the model enforce it, and
// nil otherwise. They only enforce strict schemas.
func enforced(q *remote.Query) json.RawMessage {
	if q.Schema == nil || !q.Schema.Strict || !q.As().Enforces || isOld(q.Model) {
		return nil
	}
	return q.Schema.JSON
}

// old are the beginnings of the names of models that enforce no schema.
var old = []string{"claude-2", "claude-3", "claude-instant", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2"}

func isOld(name string) bool {
	return slices.ContainsFunc(old, func(start string) bool { return strings.HasPrefix(strings.ToLower(name), start) })
}

// asksByTool reports whether the answer is asked for as the call of a tool.
func asksByTool(q *remote.Query) bool { return q.Schema != nil && enforced(q) == nil }

// appendAnswerTool adds the tool whose parameters are the answer after the other tools,
// so that what the provider has cached of those stays valid.
func appendAnswerTool(parts [][]byte, q *remote.Query) [][]byte {
	opening := `,"tools":[`
	if n := len(parts) - 1; q.HasTools() {
		parts[n] = parts[n][:len(parts[n])-len("]")]
		opening = ","
	}
	return append(parts, append(appendTool([]byte(opening), q.AnswerTool()), "}]"...))
}
