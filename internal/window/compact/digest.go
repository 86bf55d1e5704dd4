package compact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// MinDigest is the smallest limit of a digest, in tokens.
const MinDigest = 64

// digestLine is the length limit of a line of a digest, in bytes.
const digestLine = 240

const (
	digestTitle  = "What happened, oldest first. No model has summarised it: each line is only the beginning of what was said or done.\n"
	digestBefore = "What was known before:\n"
)

// Digest returns a description of the items without the help of a model: the earlier
// summary, then a line for each answer and call. It has at most room tokens, if room is
// at least MinDigest. If not all lines fit, it contains the newest ones and the number of
// the others.
func Digest(before string, items []Item, room int) string {
	left := room - window.Tokens(digestTitle) - window.Tokens(leftOut(1<<40)) - 2
	var w strings.Builder
	if known := left / 2; before != "" && known >= MinDigest {
		text := digestBefore + render.Cut(before, window.Bytes(known-window.Tokens(digestBefore))) + "\n"
		left -= window.Tokens(text)
		w.WriteString(text)
	}
	lines := digestLines(items)
	first := len(lines)
	for first > 0 {
		cost := window.Tokens(lines[first-1])
		if cost > left {
			break
		}
		left -= cost
		first--
	}
	w.WriteString(digestTitle)
	if first > 0 {
		w.WriteString(leftOut(first))
	}
	for _, line := range lines[first:] {
		w.WriteString(line)
	}
	return strings.TrimSuffix(w.String(), "\n")
}

func leftOut(n int) string { return fmt.Sprintf("(%d earlier lines are left out)\n", n) }

// digestLines returns a line for each answer, notice and call. Requests of people are not
// included, because the head contains them.
func digestLines(items []Item) (lines []string) {
	add := func(format string, args ...any) {
		line := render.Line(fmt.Sprintf(format, args...), digestLine)
		lines = append(lines, line+"\n")
	}
	for i, it := range items {
		switch {
		case it.Asked || it.CallID != "":
		case it.Role == model.User:
			add("- notice: %s", window.Head(it.Text, digestLine))
		case it.Text != "":
			add("- answered: %s", window.Head(it.Text, digestLine))
		}
		for _, c := range it.Calls {
			add("- called %s %s %s", c.Name, render.Line(string(c.Arguments), digestLine/2), outcome(items[i+1:], c.ID))
		}
	}
	return lines
}

// outcome describes how a call ended.
func outcome(after []Item, id string) string {
	i := slices.IndexFunc(after, func(it Item) bool { return it.CallID == id })
	switch {
	case i < 0:
		return "(no result)"
	case after[i].Failed:
		return "which failed: " + window.Head(after[i].Text, digestLine)
	}
	return "which gave " + fmt.Sprint(len(after[i].Text)) + " bytes"
}

// reduced returns the shortened text of a result.
func reduced(m *model.Message, most int) string {
	text := m.Text
	if len(m.Images) > 0 {
		text += fmt.Sprintf(" (%d pictures left out)", len(m.Images))
	}
	return render.Cut(text, most)
}
