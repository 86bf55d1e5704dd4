package files

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/workspace"
)

// answer returns the result as text.
func (c *grepCall) answer(found *workspace.Found) string {
	switch {
	case found.Count == 0:
		return "No matches found."
	case c.mode == modeContent:
		return c.content(found)
	}
	return c.paths(found)
}

// content returns the matching lines: one by one, or grouped by file if there are many.
func (c *grepCall) content(found *workspace.Found) string {
	if c.limit > 0 {
		out, shown := c.plain(found, int64(c.limit))
		if shown < found.Count {
			out += fmt.Sprintf("\n\n[The first %d of %d matches in %d file(s).]", shown, found.Count, found.Puts)
		}
		return out
	}
	if found.Count <= maxMatches {
		if out, shown := c.plain(found, found.Count); shown == found.Count {
			return out
		}
	}
	return compact(found, layout{
		head: fmt.Sprintf("grep content: %d matches across %d file(s) under %s", found.Count, found.Puts, rootNames(c.roots)),
		unit: "match(es)", group: "file", groups: "files",
		name: func(g *workspace.Group) string { return plainName(c.below(g.Name)) },
		show: func(it workspace.Item) string { return c.numbered(it, ": ", "- ") },
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
func (c *grepCall) numbered(it workspace.Item, match, context string) string {
	mark := match
	if it.Context {
		mark = context
	}
	if !c.numbers {
		return it.Text
	}
	return fmt.Sprintf("%d%s%s", it.Number, mark, it.Text)
}

// plain returns the first matches line by line, and how many they are.
func (c *grepCall) plain(found *workspace.Found, most int64) (string, int64) {
	var p boundedText
	shown, last := int64(0), int64(0)
	for _, g := range found.Groups {
		for i, it := range g.Items {
			if shown == most && it.Counts {
				return p.String(), shown
			}
			if c.before+c.after > 0 && p.lines > 0 && (i == 0 || it.Number > last+1) && !p.line("--") {
				return p.String(), shown
			}
			if last = it.Number; !p.line("%s", c.line(g.Name, it)) {
				return p.String(), shown
			}
			if it.Counts {
				shown++
			}
		}
	}
	return p.String(), shown
}

// line returns a line with the name of its file.
func (c *grepCall) line(file string, it workspace.Item) string {
	mark := ":"
	if it.Context {
		mark = "-"
	}
	return plainName(file) + mark + c.numbered(it, ":", "-")
}

// paths returns the found files, with their counts if requested.
func (c *grepCall) paths(found *workspace.Found) string {
	counts := c.mode == modeCount
	if most := int64(c.limit); most > 0 && most < found.Count {
		out, _ := plainPaths(found, c.limit, counts)
		shown := strings.Count(out, "\n") + 1
		return out + fmt.Sprintf("\n\n[The first %d of %d file(s).]", shown, found.Count)
	}
	if found.Count <= maxPlain || c.limit > 0 {
		if out, ok := plainPaths(found, max(maxPlain, c.limit), counts); ok {
			return out
		}
	}
	return compact(found, layout{
		head: fmt.Sprintf("grep %s: %d file(s) under %s; grouped by directory", c.mode, found.Count, rootNames(c.roots)),
		unit: "file(s)", group: "directory", groups: "directories",
		name: func(g *workspace.Group) string { return plainName(g.Name) },
		show: func(it workspace.Item) string { return itemPath(it, "", counts) },
	})
}
