package tui

import (
	"context"
	"path"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/tui/text"
)

// A completion offers what a word may be the beginning of.
type completion struct {
	word    string // word that is completed
	found   []offer
	at      int
	files   []string // all files; nil if they were not read
	reading bool
}

// An offer is one way to complete a word.
type offer struct{ word, about string }

func (p *completion) open() bool { return len(p.found) > 0 }

func (p *completion) close() { p.found, p.at, p.files = nil, 0, nil }

// completions offers commands and files for the word at the cursor.
func (c *chat) completions() tea.Cmd {
	word := c.editor.Word()
	c.complete.word, c.complete.at = word, 0
	switch {
	case c.offersCommands(word):
		c.complete.found = c.matchingCommands(word)
		return c.bring()
	case strings.HasPrefix(word, "@"):
		return c.completeFile()
	default:
		c.complete.close()
	}
	return nil
}

// offersCommands reports whether the word at the cursor may become a command.
func (c *chat) offersCommands(word string) bool {
	return strings.HasPrefix(word, "/") && strings.HasPrefix(c.editor.Text(), word) && !strings.Contains(word[1:], "/")
}

// matchingCommands returns the commands that a word may mean.
func (c *chat) matchingCommands(word string) []offer {
	var found []offer
	for _, cmd := range c.slashCommands() {
		if name := "/" + cmd.name; strings.HasPrefix(name, word) && name != word {
			found = append(found, offer{name, cmd.about})
		}
	}
	for _, info := range c.brought.list {
		if name := "/" + info.Name; strings.HasPrefix(name, word) && name != word {
			found = append(found, offer{name, about(info)})
		}
	}
	return found
}

// completeFile offers files. They are read when the first is asked for.
func (c *chat) completeFile() tea.Cmd {
	if c.complete.files != nil {
		c.complete.found = matchingFiles(c.complete.files, c.complete.word[1:])
		return nil
	}
	c.complete.found = nil
	if c.complete.reading {
		return nil
	}
	c.complete.reading = true
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		files, err := c.opts.Files(ctx)
		return func() tea.Cmd {
			c.complete.reading = false
			c.complete.files = append([]string{}, files...)
			if strings.HasPrefix(c.editor.Word(), "@") {
				return c.completions()
			}
			return nil
		}, err
	})
}

// maxFound is the number of files that are offered.
const maxFound = 50

// matchingFiles returns the files whose names contain a text, those whose own name begins
// with it first.
func matchingFiles(files []string, part string) []offer {
	part = strings.ToLower(part)
	rank := func(file string) int {
		lower := strings.ToLower(file)
		switch {
		case lower == part:
			return 4 // it is complete
		case strings.HasPrefix(path.Base(lower), part):
			return 0
		case strings.HasPrefix(lower, part):
			return 1
		case strings.Contains(lower, part):
			return 2
		}
		return 3
	}
	var found []string
	for _, f := range files {
		if rank(f) < 3 {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		if d := strings.Count(a, "/") - strings.Count(b, "/"); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var offers []offer
	for _, f := range found[:min(len(found), maxFound)] {
		offers = append(offers, offer{word: "@" + f})
	}
	return offers
}

// completionKey handles a key while something is offered. It reports false for keys that
// are for the editor.
func (c *chat) completionKey(name string) (tea.Cmd, bool) {
	p := &c.complete
	switch name {
	case "up", "ctrl+p":
		p.at = (p.at + len(p.found) - 1) % len(p.found)
	case "down", "ctrl+n":
		p.at = (p.at + 1) % len(p.found)
	case "tab":
		c.accept()
	case "enter":
		if p.at == 0 && c.isCommand(p.word) {
			return nil, false // a command that is typed whole is carried out
		}
		c.accept()
	case "esc":
		p.close()
	default:
		return nil, false
	}
	return nil, true
}

// isCommand reports whether a word is the whole name of a command.
func (c *chat) isCommand(word string) bool {
	name, found := strings.CutPrefix(word, "/")
	return found && (slices.ContainsFunc(c.slashCommands(), func(cmd slashCommand) bool { return cmd.name == name }) ||
		slices.ContainsFunc(c.brought.list, func(info api.CommandInfo) bool { return info.Name == name }))
}

// accept takes the offer.
func (c *chat) accept() {
	c.editor.ReplaceWord(c.complete.found[c.complete.at].word + " ")
	c.complete.close()
}

// lines returns what is offered, in at most some rows.
func (p *completion) lines(columns, rows int) []text.Line {
	var lines []text.Line
	from := max(0, min(p.at-rows+1, len(p.found)-rows))
	for i := from; i < min(len(p.found), from+max(rows, 0)); i++ {
		style := text.Style{Faint: true}
		if i == p.at {
			style = text.Style{Colour: text.Cyan}
		}
		line := text.Styled("  "+text.OneLine(p.found[i].word), style)
		if about := p.found[i].about; about != "" {
			line = append(line, text.Span{Text: strings.Repeat(" ", max(1, 16-text.Width(p.found[i].word))) + text.OneLine(about), Style: text.Style{Faint: true}})
		}
		lines = append(lines, line.Cut(columns))
	}
	return lines
}
