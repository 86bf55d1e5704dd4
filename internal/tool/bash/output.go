package bash

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/process"
)

// An excerpt is the text that is shown for a part of an output.
type excerpt struct {
	text    string
	next    int64  // offset after the part
	omitted int64  // number of bytes that are not shown
	total   int64  // number of bytes of the part
	stdout  string // standard output of the part, if apart is true
	stderr  string // standard error of the part, if apart is true
	apart   bool   // true if the part is short enough to show the streams separately too
}

// truncated returns how much is omitted, or nil if nothing is.
func (e excerpt) truncated() *process.TruncationInfo {
	if e.omitted == 0 {
		return nil
	}
	return &process.TruncationInfo{
		OriginalBytes: int(e.total), RetainedBytes: len(e.text), OmittedBytes: int(e.omitted), Strategy: "head_tail",
	}
}

// maxApart is the maximum length of an output whose streams are also shown separately.
const maxApart = 8 << 10

// excerpt returns the output of a process between two offsets: all of it, or the
// beginning and the end.
func (c *Commands) excerpt(ctx context.Context, p process.Info, from, to int64) (excerpt, error) {
	e := excerpt{next: to, total: max(0, to-from)}
	if e.total == 0 {
		return e, nil
	}
	head, err := c.part(ctx, p, from, min(to, from+process.MaxHeadBytes))
	if err != nil {
		return e, err
	}
	tail, err := c.part(ctx, p, max(head.end, to-process.MaxTailBytes), to)
	if err != nil {
		return e, err
	}
	if !p.State.Ended() {
		e.next -= int64(tail.trimPart(head))
		e.total = e.next - from
	}
	e.apart = e.total <= maxApart
	if e.apart {
		e.stdout, e.stderr = clean(append(head.stdout, tail.stdout...)), clean(append(head.stderr, tail.stderr...))
	}
	e.join(head, tail, p.TTY)
	return e, nil
}

// join sets the text to the beginning and the end, with a note of what is omitted.
func (e *excerpt) join(head, tail *part, terminal bool) {
	shown := int64(len(head.data) + len(tail.data))
	if e.omitted = e.total - shown; e.omitted == 0 {
		data := append(head.data, tail.data...)
		if terminal {
			data = []byte(alternate.ReplaceAllString(string(data), ""))
		}
		text, cut := fit(data, process.MaxHeadBytes+process.MaxTailBytes, false)
		e.text, e.omitted = text, int64(cut)
		return
	}
	begin, end := wholeEnd(head.data), wholeStart(tail.data)
	first, cutFirst := fit(begin, process.MaxHeadBytes, false)
	last, cutLast := fit(end, process.MaxTailBytes, true)
	e.omitted = e.total - int64(len(begin)+len(end)-cutFirst-cutLast)
	e.text = fmt.Sprintf("%s\n\n... [omitted %d bytes] ...\n\n%s", first, e.omitted, last)
}

// A part is the output between two offsets, without bytes that were not kept.
type part struct {
	data   []byte
	stdout []byte
	stderr []byte
	end    int64
}

// part reads the output between two offsets.
func (c *Commands) part(ctx context.Context, p process.Info, from, to int64) (*part, error) {
	all := &part{end: from}
	for all.end < to {
		chunk, err := c.Processes.Read(ctx, p.Owner, p.ID, process.ReadRequest{Offset: all.end, Until: to})
		if err != nil {
			return nil, err
		}
		all.add(chunk)
		if chunk.Next <= all.end {
			break
		}
		all.end = chunk.Next
	}
	return all, nil
}

func (a *part) add(chunk process.Chunk) {
	a.data = append(a.data, chunk.Data...)
	rest := chunk.Data
	for _, run := range chunk.Runs {
		n := min(run.Len, len(rest))
		if run.Stream == process.Stderr {
			a.stderr = append(a.stderr, rest[:n]...)
		} else {
			a.stdout = append(a.stdout, rest[:n]...)
		}
		rest = rest[n:]
	}
}

// trimPart removes an incomplete character at the end, whose rest is not printed yet,
// and returns how many bytes it removed.
func (a *part) trimPart(before *part) int {
	last := a
	if len(a.data) == 0 {
		last = before
	}
	whole := wholeEnd(last.data)
	left := len(last.data) - len(whole)
	last.data = whole
	return left
}

// wholeEnd removes an incomplete character at the end.
func wholeEnd(b []byte) []byte {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if start := b[len(b)-n:]; utf8.RuneStart(start[0]) {
			if utf8.FullRune(start) {
				return b
			}
			return b[:len(b)-n]
		}
	}
	return b
}

// wholeStart removes an incomplete character at the start.
func wholeStart(b []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); n++ {
		b = b[1:]
	}
	return b
}

// fit returns the cleaned text of as many bytes as result in at most most bytes of
// text, from the beginning or from the end. It also returns how many bytes it left
// out, including those cut from long lines.
func fit(raw []byte, most int, end bool) (string, int) {
	keep := raw
	for {
		text, cut := cleanLines(keep)
		if len(text) <= most {
			return text, cut + len(raw) - len(keep)
		}
		n := min(len(keep)-1, len(keep)*most/len(text))
		if end {
			keep = keep[len(keep)-n:]
		} else {
			keep = keep[:n]
		}
	}
}

// clean converts output of a command to plain text.
func clean(raw []byte) string {
	text, _ := cleanLines(raw)
	return text
}

// escapes matches terminal control sequences, also an incomplete one at the end.
var escapes = lazyregexp.New(`\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[PX^_][^\x1b]*(?:\x1b\\|$)|[ -/]*(?:[0-~]|$))`)

// alternate matches what a program has drawn on the alternate screen of a terminal and has
// removed again, as an editor or a pager does when it ends.
var alternate = lazyregexp.New(`(?s)\x1b\[\?(?:1049|1047|47)h.*?\x1b\[\?(?:1049|1047|47)l`)

// cleanLines is clean, and also returns how many bytes of long lines it left out.
func cleanLines(raw []byte) (string, int) {
	text := escapes.ReplaceAllString(strings.ToValidUTF8(string(raw), "\uFFFD"), "")
	var b strings.Builder
	b.Grow(len(text))
	cut := 0
	for line := range strings.Lines(text) {
		body, ending := strings.TrimSuffix(line, "\n"), ""
		if len(body) < len(line) {
			ending = "\n"
		}
		shown, n := cutLine(strings.Map(visible, overwritten(body)))
		cut += n
		b.WriteString(shown + ending)
	}
	return b.String(), cut
}

// overwritten returns what a terminal shows of a line that a command writes several
// times, like a progress bar: the last version.
func overwritten(line string) string {
	line = strings.TrimRight(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// visible removes control characters.
func visible(r rune) rune {
	switch {
	case r == 0:
		return utf8.RuneError
	case r < ' ' && r != '\t' && r != '\n' || r == 0x7f:
		return -1
	}
	return r
}

// cutLine shortens a line that is too long by omitting its middle, so that its end is
// visible, and returns how many bytes it left out.
func cutLine(line string) (string, int) {
	const most = process.MaxLineLength
	if len(line) <= most {
		return line, 0
	}
	room := most - len(" ... [] ... ") - len("omitted  bytes") - len("9223372036854775807")
	first := strings.ToValidUTF8(line[:room*3/4], "")
	last := strings.ToValidUTF8(line[len(line)-room/4:], "")
	n := len(line) - len(first) - len(last)
	return fmt.Sprintf("%s ... [omitted %d bytes] ... %s", first, n, last), n
}
