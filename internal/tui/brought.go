package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/text"
)

// brought are the commands that skills, MCP servers and other clients bring to a session.
type brought struct {
	list    []api.CommandInfo
	readAt  time.Time // when the list was read; zero if it was not, or is not what it was
	reading bool
	changed bool // true if the commands have changed since it began to be read
}

// broughtTime is how long a list of commands counts as new.
const broughtTime = 10 * time.Second

// bring reads the commands that others bring, if the list is old, and offers them when it is
// there. Without a list none are offered.
func (c *chat) bring() tea.Cmd {
	b := &c.brought
	if b.reading || c.session.ID == "" || !b.readAt.IsZero() && c.now().Sub(b.readAt) < broughtTime {
		return nil
	}
	b.reading = true
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		list, err := c.opts.Client.Commands(ctx, id)
		return func() tea.Cmd {
			b.reading = false
			if b.changed {
				b.changed = false
				return c.bring()
			}
			if id != c.session.ID || err != nil {
				return nil
			}
			b.list, b.readAt = list, c.now()
			if p, ok := c.overlay.(*pager); ok && p.title == helpTitle {
				p.body = c.help()
				p.fit(p.width)
			}
			if word := c.editor.Word(); c.offersCommands(word) {
				c.complete.found = c.matchingCommands(word)
				c.complete.at = min(c.complete.at, max(0, len(c.complete.found)-1))
			}
			return nil
		}, nil
	})
}

// broughtChanged takes in that others bring other commands now.
func (c *chat) broughtChanged() tea.Cmd {
	b := &c.brought
	b.readAt, b.changed = time.Time{}, b.reading
	if !c.offersCommands(c.editor.Word()) {
		return nil
	}
	return c.bring()
}

// about says what a command that others bring is for.
func about(info api.CommandInfo) string {
	said := cmp.Or(text.OneLine(info.Description), "no description")
	if info.Input != nil && info.Input.Hint != "" {
		said += ": /" + info.Name + " " + info.Input.Hint
	}
	switch {
	case info.Kind != api.CommandSkill:
		return said
	case strings.Contains(info.Name, ":"): // SERVER:PROMPT
		return said + " (prompt)"
	}
	return said + " (skill)"
}

// invoke carries out a command that is none of the chat: one that a skill, an MCP server or
// another client brings. What was typed comes back if there is no such command.
func (c *chat) invoke(name, rest, said string) tea.Cmd {
	id := c.session.ID
	return c.do(func(ctx context.Context) (func() tea.Cmd, error) {
		list, err := c.opts.Client.Commands(ctx, id)
		if err == nil && !slices.ContainsFunc(list, func(info api.CommandInfo) bool { return info.Name == name }) {
			return func() tea.Cmd {
				c.giveBack(said)
				c.notify("/" + name + " is no command: /help lists them; to send it to the model, begin with a blank or another word")
				return c.tick()
			}, nil
		}
		var r api.InvokeResult
		if err == nil {
			r, err = c.opts.Client.InvokeCommand(ctx, api.InvokeParams{SessionID: id, Name: name, Input: rest, Key: event.NewID()})
		}
		return func() tea.Cmd {
			if err != nil {
				c.giveBack(said)
				c.fail(err)
				return c.tick()
			}
			return c.invoked(id, name, r)
		}, nil
	})
}

// giveBack puts what was typed back into an empty editor.
func (c *chat) giveBack(said string) {
	if c.editor.Empty() {
		c.editor.Set(said)
	}
}

// invoked takes in what came of a command.
func (c *chat) invoked(id event.SessionID, name string, r api.InvokeResult) tea.Cmd {
	switch {
	case id != c.session.ID:
		return nil
	case r.Kind == api.InvokedPrompt:
		return c.submit(r.Prompt, false)
	case r.Text != "":
		return c.page(newPager(name, text.Lines(text.Clean(r.Text), text.Style{})))
	}
	c.notify("/" + name + " was carried out")
	return c.tick()
}
