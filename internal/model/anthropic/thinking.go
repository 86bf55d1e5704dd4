package anthropic

import (
	"strconv"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// thinking is what a model is told about thinking.
type thinking struct {
	limit  int    // of the reply, thoughts included
	budget int    // tokens to think with; 0 if it is not told by tokens
	adapt  bool   // think as much as seems right
	effort string // how much that is; "" for the model's own measure
}

// leastBudget is the smallest budget that the wire allows.
const leastBudget = 1024

// budgets are the tokens for each effort. An effort that is not in it means the
// most.
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

// budget leaves at least half of the reply for what is not thought.
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

// interrupted reports whether the model is in the middle of work that was begun
// without thoughts that could be shown to it. It must go on without any then.
func interrupted(q *remote.Query) bool {
	i := lastAnswer(q.Messages)
	if i < 0 || len(q.Messages[i].Calls) == 0 {
		return false
	}
	thought := q.Messages[i].Reasoning
	return q.Forget || thought == nil || !remote.CameFrom(thought.Opaque, q.Host, q.Model)
}

// kept returns the parts of an answer that came from where the request goes.
func kept(q *remote.Query, m *model.Message) []remote.Part {
	if m.Reasoning == nil || q.Forget {
		return nil
	}
	return remote.Parts(m.Reasoning.Opaque, q.Host, q.Model, m)
}

func (t thinking) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(t.limit), 10)
	switch {
	case t.budget > 0:
		b = strconv.AppendInt(append(b, `,"thinking":{"type":"enabled","budget_tokens":`...), int64(t.budget), 10)
		b = append(b, '}')
	case t.adapt: // people are shown what they would otherwise wait for in silence
		b = append(b, `,"thinking":{"type":"adaptive","display":"summarized"}`...)
	}
	if t.effort != "" {
		b = plainjson.AppendString(append(b, `,"output_config":{"effort":`...), t.effort)
		b = append(b, '}')
	}
	return b
}
