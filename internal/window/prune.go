package window

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A Pruning says which old results of tools may be shortened in a request.
type Pruning struct {
	Above   int // tokens of all messages up to which nothing is shortened
	Protect int // tokens of the newest messages that are never shortened
	Every   int // tokens that each step has to save; nothing is shortened if zero
}

// PruningFor returns the pruning for requests of at most limit tokens. Each step
// invalidates the provider's cache from the first shortened message on, so there are
// only a few steps before the session is compacted, and none while there is room: what is
// left out may have to be read again.
func PruningFor(limit int) Pruning {
	return Pruning{Above: limit * 3 / 5, Protect: max(8000, limit/4), Every: max(4096, limit/10)}
}

// The size of a shortened result.
const (
	stubHead   = 200 // bytes that are kept of its beginning
	stubTokens = 160 // tokens of the shortened message at most
	leastSaved = 256 // tokens that shortening a message has to save
)

// A Pruner shortens old results of tools in requests. The history itself does not
// change.
//
// The result depends only on the history: once it has more than Pruning.Above tokens, results
// are shortened from the oldest on, in steps that each save at least Pruning.Every tokens,
// until it has no more than that. A step never changes again, so the beginning of a request
// stays the same, byte for byte, until the next step.
type Pruner struct {
	tally tally
	stubs map[*model.Message]*model.Message
}

// likely returns the size that messages probably have. A provider counts about four bytes of
// any script as a token: what Of says of scripts that are not ASCII is for the limit, above
// which a request is refused, and would shorten such a history at half of the size.
func (t *tally) likely() (n int) {
	all := t.lettersBefore(len(t.sums))
	n = t.total()
	for i := ascii + 1; i < Scripts; i++ {
		n -= all[i]/wideBytes - all[i]/asciiBytes
	}
	return n
}

// Prune returns the list with old results shortened, and the number of tokens that
// this saves. It returns the list itself if there is nothing to shorten.
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

// choose returns the indices of the messages to shorten: those of all complete steps.
func (p *Pruner) choose(list []*model.Message, how Pruning) (out []int) {
	if how.Every <= 0 {
		return nil
	}
	need := p.tally.likely() - how.Above
	end := p.protected(list, how.Protect)
	step, won, saved := 0, 0, 0
	for i := 0; i < end && saved < need; i++ {
		if gain := p.gain(list, i); gain > 0 {
			out = append(out, i)
			won += gain
		}
		if won >= how.Every {
			saved += won
			step, won = len(out), 0
		}
	}
	return out[:step]
}

// protected returns the index of the first message that is never shortened. Protected
// are the newest messages, and all after the newest answer, because the model has not
// seen them yet.
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

// gain returns the tokens that shortening a message saves at least, or zero if it must
// not be shortened.
func (p *Pruner) gain(list []*model.Message, i int) int {
	gain := p.tally.of(i) - stubTokens
	if list[i].CallID == "" || gain < leastSaved {
		return 0
	}
	return gain
}

// stubOf returns the shortened form of a message: its beginning and a note.
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
