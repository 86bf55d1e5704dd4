package anthropic

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// thinking is the part of a request that is about thinking.
type thinking struct {
	limit  int    // tokens of the reply, including thinking
	budget int    // tokens of thinking; 0 if there is no budget
	adapt  bool   // true if the model decides how much to think
	effort string // effort for that decision; empty for the model's default
}

// leastBudget is the smallest budget that the wire allows.
const leastBudget = 1024

// budgets are the tokens for each effort. Any other effort gets the largest budget.
var budgets = map[string]int{"minimal": 2048, "low": 4096, "medium": 10_240, "high": 24_576}

const mostBudget = 49_152

func thinkingOf(q *remote.Query) thinking {
	can := catalog.Of(q.Request)
	t := thinking{limit: q.MaxOutput}
	if t.limit <= 0 {
		t.limit = can.MaxOutput
	}
	asked := q.ReasoningEffort != "" && q.ReasoningEffort != "none" && (can.Reasoning || !can.Known)
	switch {
	case can.Thinking == model.ThinkAlways || asked && can.Thinking == model.ThinkByEffort:
		t.adapt = true
		if asked {
			t.effort = q.ReasoningEffort
		}
	case asked && !interrupted(q):
		t.budget = budget(q.ReasoningEffort, t.limit)
	}
	return t
}

// budget returns the tokens of thinking for an effort. It leaves at least half of the
// reply for other content.
func budget(effort string, limit int) int {
	n, ok := budgets[effort]
	if !ok {
		n = mostBudget
	}
	if n = min(n, limit/2); n < leastBudget {
		return 0
	}
	return n
}

// interrupted reports whether the model is in the middle of calls whose thinking we
// cannot send back. The provider requires that thinking stays off then.
func interrupted(q *remote.Query) bool {
	i := lastAnswer(q.Messages)
	if i < 0 || len(q.Messages[i].Calls) == 0 {
		return false
	}
	return !slices.ContainsFunc(kept(q, q.Messages[i]), isThought)
}

// isThought reports whether a part of an answer is a block of thinking.
func isThought(p remote.Part) bool {
	var b block
	return p.Raw != nil && json.Unmarshal(p.Raw, &b) == nil && (b.Type == "thinking" || b.Type == "redacted_thinking")
}

// kept returns the parts of an answer if it came from the model that the request is
// for.
func kept(q *remote.Query, m *model.Message) []remote.Part {
	if m.Reasoning == nil || q.Forget {
		return nil
	}
	return remote.Parts(m.Reasoning.Opaque, q.Host, q.Model, m)
}

// on reports whether the model thinks.
func (t thinking) on() bool { return t.budget > 0 || t.adapt }

// append appends the members about thinking, and the schema of the answer unless it is
// nil: one member has the effort and the schema.
func (t thinking) append(b []byte, schema json.RawMessage) []byte {
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(t.limit), 10)
	switch {
	case t.budget > 0:
		b = strconv.AppendInt(append(b, `,"thinking":{"type":"enabled","budget_tokens":`...), int64(t.budget), 10)
		b = append(b, '}')
	case t.adapt: // the summary lets people see that the model is thinking
		b = append(b, `,"thinking":{"type":"adaptive","display":"summarized"}`...)
	}
	if t.effort == "" && schema == nil {
		return b
	}
	b = append(b, `,"output_config":{`...)
	if t.effort != "" {
		b = plainjson.AppendString(append(b, `"effort":`...), t.effort)
	}
	if t.effort != "" && schema != nil {
		b = append(b, ',')
	}
	if schema != nil {
		b = append(append(append(b, `"format":{"type":"json_schema","schema":`...), schema...), '}')
	}
	return append(b, '}')
}
