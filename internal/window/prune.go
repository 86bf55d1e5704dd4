package window

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A Pruning says what may be left out of a request.
type Pruning struct {
	Protect int // tokens of the newest messages, which are left alone
	Every   int // tokens that one more step has to save; nothing is pruned if zero
}

// PruningFor is how requests of at most limit tokens are pruned. Each step loses
// what the provider has cached of everything behind it, so there are only a few
// of them before the session is compacted anyway.
func PruningFor(limit int) Pruning {
	return Pruning{Protect: max(8000, limit/4), Every: max(4096, limit/10)}
}

// What is left of something that was pruned.
const (
	stubHead   = 200 // bytes of its beginning
	stubTokens = 160 // at most
	leastSaved = 256 // tokens; less is not worth a hole
)

// A Pruner leaves old output of tools out of requests. The history stays as it
// is.
//
// What it leaves out follows from the history alone: old output is gone through
// from the beginning and left out in steps, each of which saves at least what
// the Pruning wants. A step never changes again, so the beginning of a request
// stays the same, byte for byte, until the next step is worth it.
type Pruner struct {
	tally tally
	stubs map[*model.Message]*model.Message
}

// Prune returns the list with old output left out, and how many tokens that
// saves. The list itself is returned if there is nothing to leave out.
func (p *Pruner) Prune(list []*model.Message, how Pruning) (pruned []*model.Message, saved int) {
	p.tally.follow(list)
	out := p.choose(list, how)
	if len(out) == 0 {
		p.stubs = nil
		return list, 0
	}
	pruned = append(pruned, list...)
	stubs := make(map[*model.Message]*model.Message, len(out))
	for _, i := range out {
		stub := p.stubs[list[i]]
		if stub == nil {
			stub = stubOf(list[i])
		}
		stubs[list[i]], pruned[i] = stub, stub
		saved += p.tally.of(i) - Of(stub)
	}
	p.stubs = stubs
	return pruned, saved
}

// choose returns which messages are left out: those of all whole steps.
func (p *Pruner) choose(list []*model.Message, how Pruning) (out []int) {
	if how.Every <= 0 {
		return nil
	}
	end := p.protected(list, how.Protect)
	step, won := 0, 0
	for i := range end {
		if gain := p.gain(list, i); gain > 0 {
			out = append(out, i)
			won += gain
		}
		if won >= how.Every {
			step, won = len(out), 0
		}
	}
	return out[:step]
}

// protected is where the messages begin that are left alone: the newest ones, and
// whatever came after the newest answer, because the model has not seen it yet.
func (p *Pruner) protected(list []*model.Message, tokens int) int {
	end := len(list)
	for end > 0 && p.tally.total()-p.tally.before(end-1) <= tokens {
		end--
	}
	for i := len(list) - 1; i >= 0 && list[i].Role != model.Assistant; i-- {
		end = min(end, i)
	}
	return end
}

// gain is what leaving a message out is sure to save; zero if it has to stay.
func (p *Pruner) gain(list []*model.Message, i int) int {
	gain := p.tally.of(i) - stubTokens
	if list[i].CallID == "" || gain < leastSaved {
		return 0
	}
	return gain
}

// stubOf is what the model sees of something that was left out: how it began.
func stubOf(m *model.Message) *model.Message {
	text := Head(m.Text, stubHead)
	left := fmt.Sprintf("[The rest of this old output was left out to save room: %d bytes", len(m.Text)-len(text))
	if len(m.Images) > 0 {
		left += fmt.Sprintf(" and %d pictures", len(m.Images))
	}
	return &model.Message{
		Role: m.Role, CallID: m.CallID, Failed: m.Failed,
		Text: strings.TrimRight(text, "\n") + "\n" + left + ". If you need it, make the call again.]",
	}
}
