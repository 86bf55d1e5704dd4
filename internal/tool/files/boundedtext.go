package files

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/workspace"
)

// A boundedText is a text of limited length that is written line by line.
type boundedText struct {
	b     strings.Builder
	lines int
	full  bool
}

// line adds a line if it fits, and reports whether it did.
func (p *boundedText) line(format string, args ...any) bool {
	line := fmt.Sprintf(format, args...)
	if p.full = p.full || p.b.Len()+len(line) >= maxShown; p.full {
		return false
	}
	if p.lines > 0 {
		p.b.WriteByte('\n')
	}
	p.b.WriteString(line)
	p.lines++
	return true
}

// note adds a remark, even if the text is full.
func (p *boundedText) note(format string, args ...any) {
	if p.lines > 0 {
		p.b.WriteString("\n\n")
	}
	fmt.Fprintf(&p.b, format, args...)
	p.lines++
}

func (p *boundedText) String() string { return p.b.String() }

// perGroup is the maximum number of items of a group that are shown in a compact text.
const perGroup = 24

// A layout describes the compact text of results.
type layout struct {
	head          string // heading: what was found where
	unit          string // word for an item
	group, groups string // word for a group, and its plural
	name          func(g *workspace.Group) string
	show          func(it workspace.Item) string
}

// compact returns the results as text, group by group.
func compact(s *workspace.Found, l layout) string {
	var p boundedText
	p.line("[%s]", l.head)
	told := int64(0)
	for i := range s.Groups {
		g := &s.Groups[i]
		if !p.line("\n%s (%d %s):", l.name(g), g.Count, l.unit) {
			break
		}
		p.items(g, l)
		told += g.Count
	}
	if rest := s.Count - told; rest > 0 {
		p.note("... %d more %s omitted in other %s", rest, l.unit, l.groups)
	}
	return p.String()
}

// items adds the first items of a group, and how many more there are.
func (p *boundedText) items(g *workspace.Group, l layout) {
	shown := int64(0)
	for _, it := range g.Items {
		if shown == perGroup && it.Counts || !p.line("  %s", l.show(it)) {
			break
		}
		if it.Counts {
			shown++
		}
	}
	if rest := g.Count - shown; rest > 0 {
		fmt.Fprintf(&p.b, "\n  ... %d more %s omitted in this %s", rest, l.unit, l.group)
	}
}
