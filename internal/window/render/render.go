// Package render writes a conversation as text of limited length, for a model that
// reads it and does not take part in it.
//
//   - Each message begins with a line that names its author. Further lines are indented,
//     so that the output of a command cannot look like the message of a person.
//   - A note says how many bytes were left out.
//   - The same conversation always gives the same text.
package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// Bounds limit how many bytes are written of each text. Zero means no limit.
type Bounds struct {
	Said      int // texts of people and of the model
	Arguments int // arguments of a call
	Result    int // result of a call
}

// Blocks writes each message as a block that ends with a newline. If at is not nil, each
// block begins with the position of its message in the log.
func Blocks(list []*model.Message, at func(i int) int64, b Bounds) []string {
	blocks := make([]string, len(list))
	names := make(map[string]string) // names of tools, by the ids of their calls
	for i, m := range list {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		number := ""
		if at != nil {
			number = fmt.Sprintf("[%d] ", at(i))
		}
		blocks[i] = b.block(number, m, names[m.CallID])
	}
	return blocks
}

// block writes one message.
func (b Bounds) block(number string, m *model.Message, tool string) string {
	var w strings.Builder
	line := func(who, text string, most int) {
		if most > 0 {
			text = Cut(text, most)
		}
		fmt.Fprintf(&w, "%s%s: %s\n", number, who, indent(text))
	}
	switch {
	case m.Role == model.ToolRole && m.Failed:
		line("failure of "+oneLine(tool), m.Text, b.Result)
	case m.CallID != "":
		line("result of "+oneLine(tool), m.Text+pictures(m), b.Result)
	case m.Role == model.User:
		line("user", m.Text+pictures(m), b.Said)
	case m.Text != "" || len(m.Calls) == 0:
		line("assistant", m.Text, b.Said)
	}
	for _, c := range m.Calls {
		line("assistant calls "+oneLine(c.Name), string(c.Arguments), b.Arguments)
	}
	return w.String()
}

func pictures(m *model.Message) string {
	if len(m.Documents) > 0 && len(m.Images) == 0 {
		return fmt.Sprintf(" (%d documents)", len(m.Documents))
	}
	if len(m.Images) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d pictures)", len(m.Images))
}

// indent indents all lines except the first.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(newlines.Replace(text), "\n"), "\n", "\n  ")
}

// newlines replaces everything that a reader may take for a line break by a line feed.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// oneLine returns a text as one line.
func oneLine(text string) string { return strings.Join(strings.Fields(newlines.Replace(text)), " ") }

// Line returns the beginning of a text as one line of at most n bytes.
func Line(text string, n int) string {
	first := oneLine(window.Head(text, 4*n))
	if len(first) <= n && len(text) <= 4*n {
		return first
	}
	const more = " …"
	if n < len(more) {
		return window.Head(first, n)
	}
	return window.Head(first, n-len(more)) + more
}

// leastNote is the length in bytes below which Cut adds no note.
const leastNote = 64

// Cut shortens a text to at most n bytes. It keeps the beginning and the end, with a note
// between them that says how much was left out.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if n < leastNote {
		return window.Head(text, n)
	}
	const note = "\n[… %d bytes left out …]\n"
	keep := n - len(fmt.Sprintf(note, len(text)))
	head := window.Head(text, keep*2/3)
	tail := text[len(text)-(keep-keep*2/3):]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head + fmt.Sprintf(note, len(text)-len(head)-len(tail)) + tail
}

// continued is the prefix of the second and later pieces of a block that is too long for
// one chunk.
const continued = "  (continued) "

// LeastChunk is the smallest limit of a chunk, in tokens.
const LeastChunk = 64

// Chunks joins blocks into texts of at most the given number of tokens, in order. Nothing
// is left out: a block that is too long is continued in the next chunk.
func Chunks(blocks []string, tokens int) []string {
	tokens = max(tokens, LeastChunk)
	var chunks []string
	var w strings.Builder
	left := tokens
	flush := func() {
		if w.Len() > 0 {
			chunks = append(chunks, w.String())
			w.Reset()
			left = tokens
		}
	}
	for _, block := range blocks {
		if window.Tokens(block) > left {
			flush()
		}
		for window.Tokens(block) > tokens {
			piece := fitting(block, tokens)
			w.WriteString(piece)
			flush()
			block = continued + block[len(piece):]
		}
		w.WriteString(block)
		left -= window.Tokens(block)
	}
	flush()
	return chunks
}

// fitting returns the longest beginning of a block that certainly fits. It ends at a line
// break if there is one in its second half.
func fitting(block string, tokens int) string {
	piece := window.Head(block, window.Bytes(tokens))
	if i := strings.LastIndexByte(piece, '\n'); i >= len(piece)/2 {
		return piece[:i+1]
	}
	return piece
}
