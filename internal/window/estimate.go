package window

import (
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
)

// The assumptions of estimates. A token is four bytes of ASCII or two bytes of other
// text. The estimate is rather too high than too low, because a provider refuses a
// request that is too large.
const (
	asciiBytes  = 4
	wideBytes   = 2
	sealedBytes = 8 // bytes of opaque or encrypted reasoning for each token
	perMessage  = 4
	perCall     = 12
	perTool     = 12
	perImage    = 1600 // the largest image, according to providers that document it

	// bytesPerPage is how many bytes of a document count as a page. A page counts as an image:
	// providers show models a picture of it, beside its text.
	bytesPerPage = 64 << 10
)

// Tokens estimates the number of tokens of a text. The sum for two texts is never less
// than the number for both joined.
func Tokens(text string) int {
	wide := wideBytesOf(text)
	return (len(text)-wide+asciiBytes-1)/asciiBytes + (wide+wideBytes-1)/wideBytes
}

// wideBytesOf returns how many bytes of a text are not ASCII.
func wideBytesOf(text string) (wide int) {
	for i := range len(text) {
		wide += int(text[i] >> 7)
	}
	return wide
}

// Bytes returns the length of the longest text that certainly has at most the given
// number of tokens.
func Bytes(tokens int) int { return max(0, tokens-1) * wideBytes }

// Head returns the beginning of a text: at most n bytes, without cutting a character.
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

// Of estimates the number of tokens of a message.
func Of(m *model.Message) int {
	n := perMessage + Tokens(m.Text) + perImage*len(m.Images)
	for _, d := range m.Documents {
		n += perImage * (1 + len(d.Data)/bytesPerPage)
	}
	for _, c := range m.Calls {
		n += perCall + Tokens(c.Name) + Tokens(string(c.Arguments))
	}
	if r := m.Reasoning; r != nil {
		n += Tokens(r.Text) + (len(r.Opaque)+len(r.Encrypted))/sealedBytes
	}
	return n
}

// ofTools estimates the number of tokens of the tools.
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

// A tally caches the sizes of the messages in a list that mostly grows at its end, so
// that only new messages are counted.
type tally struct {
	known   []*model.Message
	sums    []int     // sums[i] is the size of known[:i+1]
	letters []letters // letters[i] is what is written in known[:i+1], script by script
}

// follow counts a list. Messages that it shares with the last list are not counted
// again.
func (t *tally) follow(list []*model.Message) {
	same := 0
	for same < min(len(t.known), len(list)) && t.known[same] == list[same] {
		same++
	}
	clear(t.known[same:]) // releases the memory of old messages
	t.known, t.sums, t.letters = append(t.known[:same], list[same:]...), t.sums[:same], t.letters[:same]
	for i := same; i < len(list); i++ {
		t.sums = append(t.sums, t.before(i)+Of(list[i]))
		sum := t.lettersBefore(i)
		sum.addMessage(list[i])
		t.letters = append(t.letters, sum)
	}
}

// lettersBefore returns what is written in the first n messages.
func (t *tally) lettersBefore(n int) letters {
	if n == 0 {
		return letters{}
	}
	return t.letters[n-1]
}

// before returns the size of the first n messages.
func (t *tally) before(n int) int {
	if n == 0 {
		return 0
	}
	return t.sums[n-1]
}

// of returns the size of one message.
func (t *tally) of(i int) int { return t.before(i+1) - t.before(i) }

func (t *tally) total() int { return t.before(len(t.sums)) }
