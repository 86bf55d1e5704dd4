package markdown

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/tui/text"
)

// Diff returns the lines of a unified diff, without the heads of files. The words that
// differ between a removed line and the line that takes its place are marked. The text
// must be clean.
func Diff(diff string) []text.Line {
	var lines []text.Line
	var removed, added []string
	flush := func() {
		lines = append(lines, changed(removed, added)...)
		removed, added = nil, nil
	}
	var in hunk
	for line := range strings.SplitSeq(strings.Trim(diff, "\n"), "\n") {
		inside := in.has(line)
		switch {
		case !inside && isHead(line):
			flush()
		case strings.HasPrefix(line, "-"):
			if len(added) > 0 {
				flush()
			}
			removed = append(removed, line)
		case strings.HasPrefix(line, "+"):
			added = append(added, line)
		case strings.HasPrefix(line, "@@"):
			flush()
			lines = append(lines, text.Styled(line, text.Style{Colour: text.Cyan}))
		default:
			flush()
			lines = append(lines, text.Styled(line, text.Style{Faint: true}))
		}
	}
	flush()
	return lines
}

// A hunk counts the lines of the old and of the new file that a hunk still has.
type hunk struct{ old, new int }

// has reports whether a line is in the hunk, and goes on to the next. The head of a hunk begins
// another one.
func (h *hunk) has(line string) bool {
	if strings.HasPrefix(line, "@@ ") {
		*h = hunk{}
		if fields := strings.Fields(line); len(fields) > 2 {
			*h = hunk{length(fields[1]), length(fields[2])}
		}
		return false
	}
	if h.old <= 0 && h.new <= 0 || strings.HasPrefix(line, "diff ") { // no line of a hunk begins so
		*h = hunk{}
		return false
	}
	if strings.HasPrefix(line, "\\") { // it says that the line before has no newline
		return true
	}
	if !strings.HasPrefix(line, "+") {
		h.old--
	}
	if !strings.HasPrefix(line, "-") {
		h.new--
	}
	return true
}

// length returns the length in FIRST,LENGTH. One that is missing is 1.
func length(place string) int {
	_, text, given := strings.Cut(place, ",")
	if !given {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// isHead reports whether a line outside of hunks is part of the head of a file in a diff.
func isHead(line string) bool {
	for _, start := range []string{"diff --git ", "index ", "create file mode ", "--- a", "+++ b"} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// changed returns the lines of a change. If as many lines were added as removed, each is
// compared with its counterpart.
func changed(removed, added []string) []text.Line {
	minus, plus := text.Style{Colour: text.Red}, text.Style{Colour: text.Green}
	var lines, new []text.Line
	for i, old := range removed {
		if len(removed) != len(added) {
			lines = append(lines, text.Styled(old, minus))
			continue
		}
		from, to := differing(old[1:], added[i][1:])
		lines = append(lines, marked(old, from[0]+1, from[1]+1, minus))
		new = append(new, marked(added[i], to[0]+1, to[1]+1, plus))
	}
	if len(removed) != len(added) {
		for _, line := range added {
			new = append(new, text.Styled(line, plus))
		}
	}
	return append(lines, new...)
}

// marked returns a line of which a part is marked, unless that is all of it.
func marked(line string, from, to int, style text.Style) text.Line {
	if from >= to || from <= 1 && to == len(line) {
		return text.Styled(line, style)
	}
	strong := style
	strong.Reverse = true
	return text.Line{{Text: line[:from], Style: style}, {Text: line[from:to], Style: strong}, {Text: line[to:], Style: style}}
}

// differing returns the parts of two lines that differ, from the beginning of a word to the
// end of one.
func differing(a, b string) (inA, inB [2]int) {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	start = wordStart(a, start)
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	end = len(a) - wordEnd(a, len(a)-end)
	return [2]int{start, len(a) - end}, [2]int{start, len(b) - end}
}

// wordStart returns the beginning of the word that a position is in.
func wordStart(s string, at int) int {
	for at > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:at])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != utf8.RuneError {
			return at
		}
		at -= n
	}
	return 0
}

// wordEnd returns the end of the word that a position is in.
func wordEnd(s string, at int) int {
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != utf8.RuneError {
			return at
		}
		at += n
	}
	return len(s)
}
