package files

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/abide-run/abide/internal/workspace/text"
)

const (
	maxDiff    = 64 << 10 // maximum bytes of a diff
	maxCompare = 1 << 20  // maximum bytes that are compared
	nearby     = 3        // lines of context around a change
)

// Diff returns the change of a file in the format of git, for people; old is nil for a
// new file.
func Diff(path string, old, now []byte) string { return diff(path, old, now) }

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
	if len(before)+len(after) > maxCompare {
		return fmt.Sprintf("--- %s\n+++ %s\n[%d bytes become %d bytes]\n", from, to, len(before), len(after))
	}
	u, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), nearby)
	if err != nil {
		return err.Error()
	}
	for _, h := range u.Hunks {
		lines := bytes.Count(old[:start], []byte{'\n'})
		h.FromLine += lines
		h.ToLine += lines
	}
	return clip(u.String())
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

// clip cuts a diff that is too long at the end of a line.
func clip(s string) string {
	if len(s) <= maxDiff {
		return s
	}
	shown := s[:strings.LastIndexByte(s[:maxDiff], '\n')+1]
	if shown == "" {
		shown = text.Cut(s, maxDiff) + "\n"
	}
	return shown + fmt.Sprintf("[%d more lines]\n", strings.Count(s[len(shown):], "\n"))
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
