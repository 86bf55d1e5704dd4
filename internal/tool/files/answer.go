package files

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/workspace/search"
	"github.com/abide-run/abide/internal/workspace/text"
)

// answer returns the result as text.
func (c *grepCall) answer(found *results) string {
	switch {
	case found.count == 0:
		return "No matches found."
	case c.mode == modeContent:
		return c.content(found)
	}
	return c.paths(found)
}

// content returns the matching lines: one by one, or grouped by file if there are many.
func (c *grepCall) content(found *results) string {
	if c.limit > 0 {
		out, shown := c.plain(found, int64(c.limit))
		if shown < found.count {
			out += fmt.Sprintf("\n\n[The first %d of %d matches in %d file(s).]", shown, found.count, found.puts)
		}
		return out
	}
	if found.count <= maxMatches {
		if out, shown := c.plain(found, found.count); shown == found.count {
			return out
		}
	}
	return found.compact(layout{
		head: fmt.Sprintf("grep content: %d matches across %d file(s) under %s", found.count, found.puts, rootNames(c.roots)),
		unit: "match(es)", group: "file", groups: "files",
		name: func(g *group) string { return plainName(c.below(g.name)) },
		show: func(it item) string { return c.numbered(it, ": ", "- ") },
	})
}

// below returns a path relative to the place that was searched, if there was only one.
func (c *grepCall) below(path string) string {
	if len(c.roots) > 1 {
		return path
	}
	return strings.TrimPrefix(path, c.roots[0].prefix())
}

// numbered returns a line, with its number if numbers are requested.
func (c *grepCall) numbered(it item, match, context string) string {
	mark := match
	if it.context {
		mark = context
	}
	if !c.numbers {
		return it.text
	}
	return fmt.Sprintf("%d%s%s", it.number, mark, it.text)
}

// plain returns the first matches line by line, and how many they are.
func (c *grepCall) plain(found *results, most int64) (string, int64) {
	var p boundedText
	shown, last := int64(0), int64(0)
	for _, g := range found.groups {
		for i, it := range g.items {
			if shown == most && it.counts {
				return p.String(), shown
			}
			if c.before+c.after > 0 && p.lines > 0 && (i == 0 || it.number > last+1) && !p.line("--") {
				return p.String(), shown
			}
			if last = it.number; !p.line("%s", c.line(g.name, it)) {
				return p.String(), shown
			}
			if it.counts {
				shown++
			}
		}
	}
	return p.String(), shown
}

// line returns a line with the name of its file.
func (c *grepCall) line(file string, it item) string {
	mark := ":"
	if it.context {
		mark = "-"
	}
	return plainName(file) + mark + c.numbered(it, ":", "-")
}

// maxColumns is the maximum number of bytes of a line that are shown.
const maxColumns = 500

// excerpt returns the part of a line that is shown: the whole line, or the part around
// the match if the line is long.
func (j *grepSearch) excerpt(l search.Line) string {
	line := strings.TrimSuffix(text.Valid(l.Text), "\r")
	if len(line) <= maxColumns {
		return line
	}
	at := 0
	if loc := j.pattern.Find(l.Text); l.Match && loc != nil {
		at = len(text.Valid(l.Text[:loc[0]]))
	}
	start := max(0, min(at-maxColumns/4, len(line)-maxColumns))
	for !utf8.RuneStart(line[start]) {
		start--
	}
	shown := text.Cut(line[start:], maxColumns)
	return cutMark(start) + shown + cutMark(len(line)-start-len(shown))
}

func cutMark(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[… %d bytes …]", n)
}

// paths returns the found files, with their counts if requested.
func (c *grepCall) paths(found *results) string {
	counts := c.mode == modeCount
	if most := int64(c.limit); most > 0 && most < found.count {
		out, _ := found.plainPaths(c.limit, counts)
		shown := strings.Count(out, "\n") + 1
		return out + fmt.Sprintf("\n\n[The first %d of %d file(s).]", shown, found.count)
	}
	if found.count <= maxPlain || c.limit > 0 {
		if out, ok := found.plainPaths(max(maxPlain, c.limit), counts); ok {
			return out
		}
	}
	return found.compact(layout{
		head: fmt.Sprintf("grep %s: %d file(s) under %s; grouped by directory", c.mode, found.count, rootNames(c.roots)),
		unit: "file(s)", group: "directory", groups: "directories",
		name: func(g *group) string { return plainName(g.name) },
		show: func(it item) string { return it.path("", counts) },
	})
}
