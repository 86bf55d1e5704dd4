package approval

import (
	"cmp"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// A Coverage is what a lasting approval covers, in the form of the protocol.
type Coverage struct {
	Kind     string    `json:"kind"`
	Commands *[]string `json:"commandIdentifiers,omitempty"`
	ToolName string    `json:"toolName,omitempty"`

	ServerName string `json:"serverName,omitempty"` // MCP server; its ToolName is empty for all tools
}

// commands is the Kind of a Coverage of shell commands.
const commands = "commands"

// Whole reports whether the coverage has all fields that typed clients require.
func (c Coverage) Whole() bool {
	switch c.Kind {
	case "":
		return false
	case commands:
		return c.Commands != nil
	case CustomTool:
		return c.ToolName != ""
	case MCP:
		return c.ServerName != ""
	}
	return true
}

// Completed returns the coverage with its missing fields set from the request that was
// approved: its grants and its tool.
func (c Coverage) Completed(grants []event.Grant, tool string) Coverage {
	c.Kind = cmp.Or(c.Kind, kindOf(grants))
	switch {
	case c.Kind == commands && c.Commands == nil:
		names := []string{}
		for _, g := range grants {
			if name := cmp.Or(g.Subject, strings.Join(g.Prefix, " "), g.Command); name != "" {
				names = append(names, name)
			}
		}
		c.Commands = &names
	case c.Kind == CustomTool:
		c.ToolName = cmp.Or(c.ToolName, tool)
	case c.Kind == MCP:
		return c.ofMCP(grants)
	}
	return c
}

// kindOf returns the kind of a coverage for grants. URLs have no kind of their own,
// because a tool opens them.
func kindOf(grants []event.Grant) string {
	if len(grants) == 0 {
		return CustomTool
	}
	switch kind := grants[0].Kind; kind {
	case Shell:
		return commands
	case Read, Write, MCP:
		return kind
	}
	return CustomTool
}
