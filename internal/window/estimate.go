package window

import (
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// What is assumed where nobody counts. A token is four bytes of ASCII or two
// bytes of anything else: too many rather than too few, because a request that
// is larger than it looked is refused.
const (
	asciiBytes  = 4
	wideBytes   = 2
	sealedBytes = 8 // of reasoning that only the provider reads
	perMessage  = 4
	perCall     = 12
	perTool     = 12
	perImage    = 1600 // the largest picture, for those that tell
)

// Tokens estimates how many tokens a text has. Two texts have at least as many
// as both joined.
func Tokens(text string) int {
	wide := 0
	for i := range len(text) {
		wide += int(text[i] >> 7)
	}
	return (len(text)-wide+asciiBytes-1)/asciiBytes + (wide+wideBytes-1)/wideBytes
}

// Bytes is how long a text may be that is sure to have at most so many tokens.
func Bytes(tokens int) int { return max(0, tokens-1) * wideBytes }

// Head is the beginning of a text: at most n bytes, and whole characters.
func Head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	n = max(0, n)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Of estimates how many tokens a message has.
func Of(m *model.Message) int {
	n := perMessage + Tokens(m.Text) + perImage*len(m.Images)
	for _, c := range m.Calls {
		n += perCall + Tokens(c.Name) + Tokens(string(c.Arguments))
	}
	if r := m.Reasoning; r != nil {
		n += Tokens(r.Text) + (len(r.Opaque)+len(r.Encrypted))/sealedBytes
	}
	return n
}

// ofTools estimates how many tokens the tools have.
func ofTools(t *model.Tools) int {
	if t == nil {
		return 0
	}
	n := 0
	for _, t := range t.List {
		n += perTool + Tokens(t.Name) + Tokens(t.Description) + Tokens(string(t.Parameters))
	}
	return n
}

// A tally knows the sizes of a list that mostly grows at its end, so that only
// what is new is counted.
type tally struct {
	known []*model.Message
	sums  []int // sums[i] is the size of known[:i+1]
}

// follow takes in a list. What it has in common with the last one is not
// counted again.
func (t *tally) follow(list []*model.Message) {
	same := 0
	for same < min(len(t.known), len(list)) && t.known[same] == list[same] {
		same++
	}
	clear(t.known[same:]) // what is gone is not held
	t.known, t.sums = append(t.known[:same], list[same:]...), t.sums[:same]
	for i := same; i < len(list); i++ {
		t.sums = append(t.sums, t.before(i)+Of(list[i]))
	}
}

// before is the size of the first n messages.
func (t *tally) before(n int) int {
	if n == 0 {
		return 0
	}
	return t.sums[n-1]
}

// of is the size of one message.
func (t *tally) of(i int) int { return t.before(i+1) - t.before(i) }

func (t *tally) total() int { return t.before(len(t.sums)) }
