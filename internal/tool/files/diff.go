package files

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/abide-run/abide/internal/workspace/text"
)

const (
	maxDiff    = 64 << 10 // maximum bytes of a diff in a result
	maxAsked   = 1 << 20  // maximum bytes of a diff in a question; an event with it stays well below what clients take
	maxCompare = 1 << 20  // maximum bytes that are compared; of larger parts all lines are removed and added
	maxLine    = 2 << 10  // bytes of a line that are shown if the diff is too long
	nearby     = 3        // lines of context around a change
)

// Diff returns the change of a file in the format of git, for a question to people; old is
// nil for a new file. If it cannot be shown whole, omitted says what is not shown.
func Diff(path string, old, now []byte) (shown, omitted string) {
	return clip(diff(path, old, now), maxAsked)
}

// resultDiff returns the change of a file in the format of git, for a result.
func resultDiff(path string, old, now []byte) string {
	shown, _ := clip(diff(path, old, now), maxDiff)
	return shown
}

// diff returns the change of a file in the format of git; old is nil for a new file.
func diff(path string, old, now []byte) string {
	head := fmt.Sprintf("\ndiff --git a%s b%s\n", path, path)
	from := "a" + path
	if old == nil {
		head += "create file mode 100644\nindex 0000000..0000000\n"
		from = "a/dev/null"
	} else {
		head += "index 0000000..0000000 100644\n"
	}
	return head + changes(from, "b"+path, old, now)
}

// changes returns the unified diff of two texts. It compares only the part between their
// common beginning and end, so that the time depends on the change and not on the file.
func changes(from, to string, old, now []byte) string {
	start, end := common(old, now)
	before, after := text.Valid(old[start:len(old)-end]), text.Valid(now[start:len(now)-end])
	edits := []udiff.Edit{{Start: 0, End: len(before), New: after}}
	if len(before)+len(after) <= maxCompare {
		edits = udiff.Lines(before, after)
	}
	u, err := udiff.ToUnifiedDiff(from, to, before, edits, nearby)
	if err != nil {
		return err.Error()
	}
	for _, h := range u.Hunks {
		lines := bytes.Count(old[:start], []byte{'\n'})
		h.FromLine += lines
		h.ToLine += lines
	}
	return u.String()
}

// common returns the length of the common beginning and of the common end of two texts,
// without the lines of context around the difference.
func common(a, b []byte) (start, end int) {
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	start = lineBack(a[:start], nearby+1)
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	rest := a[len(a)-end:]
	for range nearby + 1 {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return start, 0
		}
		rest = rest[i+1:]
	}
	return start, len(rest)
}

// lineBack returns the start of the line that is the given number of lines before the
// end.
func lineBack(b []byte, lines int) int {
	at := len(b)
	for range lines {
		if at = bytes.LastIndexByte(b[:at], '\n'); at < 0 {
			return 0
		}
	}
	return at + 1
}

// clip cuts a diff that is longer than most bytes: first the middle of long lines, and if
// that is not enough, lines in the middle of the diff. What stands at the end stays, and
// omitted says how much is not shown; it is empty if that is nothing.
func clip(s string, most int) (shown, omitted string) {
	if len(s) <= most {
		return s, ""
	}
	var lines []string
	total, cut := 0, 0
	for line := range strings.Lines(s) {
		short, left := clipLine(line)
		lines, total, cut = append(lines, short), total+len(short), cut+left
	}
	first, last, gone := 0, len(lines), 0
	if total > most {
		for size := 0; size+len(lines[first]) <= most/2; first++ {
			size += len(lines[first])
		}
		for size := 0; size+len(lines[last-1]) <= most/2; last-- {
			size += len(lines[last-1])
		}
		for _, line := range lines[first:last] {
			gone += len(line)
		}
	}
	omitted = fmt.Sprintf("%d lines and %d bytes of the change are not shown", last-first, cut+gone)
	if first == last || gone == 0 {
		return strings.Join(lines, ""), fmt.Sprintf("%d bytes in the middle of long lines of the change are not shown", cut)
	}
	return strings.Join(lines[:first], "") + fmt.Sprintf("[%d lines with %d bytes are not shown]\n", last-first, gone) + strings.Join(lines[last:], ""), omitted
}

// clipLine cuts the middle of a long line, and returns how many bytes it has left out.
func clipLine(line string) (short string, left int) {
	if len(line) <= maxLine {
		return line, 0
	}
	head := text.Cut(line, maxLine/2)
	tail := strings.ToValidUTF8(line[len(line)-maxLine/2:], "")
	left = len(line) - len(head) - len(tail)
	return fmt.Sprintf("%s[%d bytes are not shown]%s", head, left, tail), left
}

// unchanged returns lines of a file as a diff without changes.
func unchanged(path string, first int64, shown string) string {
	if len(shown) > maxDiff || shown == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	return fmt.Sprintf("\ndiff --git a%s b%s\nindex 0000000..0000000 100644\n--- a%s\n+++ b%s\n@@ -%d,%d +%d,%d @@\n %s\n",
		path, path, path, path, first, len(lines), first, len(lines), strings.Join(lines, "\n "))
}
