package compact

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// MinDigest is the fewest tokens that a digest can be told to have.
const MinDigest = 64

// digestLine is how long a line of a digest may be, in bytes.
const digestLine = 240

const (
	digestTitle  = "What happened, oldest first. No model has summarised it: each line is only the beginning of what was said or done.\n"
	digestBefore = "What was known before:\n"
)

// Digest tells what happened without the help of a model, in at most so many
// tokens, if those are at least MinDigest: what was known before, then a line for
// each thing that was said or done. If there is not room for all, the newest ones
// are told and the others counted.
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

// digestLines are the gist of items. What people asked for is not among them: the
// head has it.
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

// outcome says how a call ended.
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

// reduced is what is left of what a call gave.
func reduced(m *model.Message, most int) string {
	text := m.Text
	if len(m.Images) > 0 {
		text += fmt.Sprintf(" (%d pictures left out)", len(m.Images))
	}
	return render.Cut(text, most)
}
