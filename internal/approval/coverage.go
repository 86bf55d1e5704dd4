package approval

import (
	"cmp"

	"github.com/abide-run/abide/internal/event"
)

// A Coverage is what a yes for longer covers, in the protocol's form.
type Coverage struct {
	Kind     string    `json:"kind"`
	Commands *[]string `json:"commandIdentifiers,omitempty"`
	ToolName string    `json:"toolName,omitempty"`
}

// commands is the Kind of a Coverage of commands of the shell.
const commands = "commands"

// Whole reports whether nothing is missing that typed clients require.
func (c Coverage) Whole() bool {
	switch c.Kind {
	case "":
		return false
	case commands:
		return c.Commands != nil
	case CustomTool:
		return c.ToolName != ""
	}
	return true
}

// Completed is the coverage with what is missing: what the question about a call
// of a tool was about.
func (c Coverage) Completed(grants []event.Grant, tool string) Coverage {
	c.Kind = cmp.Or(c.Kind, kindOf(grants))
	switch {
	case c.Kind == commands && c.Commands == nil:
		names := []string{}
		for _, g := range grants {
			if g.Subject != "" {
				names = append(names, g.Subject)
			}
		}
		c.Commands = &names
	case c.Kind == CustomTool:
		c.ToolName = cmp.Or(c.ToolName, tool)
	}
	return c
}

// kindOf is the kind of coverage that grants have. There is none for addresses:
// those are opened by a tool.
func kindOf(grants []event.Grant) string {
	if len(grants) == 0 {
		return CustomTool
	}
	switch kind := grants[0].Kind; kind {
	case Shell:
		return commands
	case Read, Write:
		return kind
	}
	return CustomTool
}
