// Package mcp has the tools of MCP servers, and the tool mcp_search, with which a model finds
// them if there are too many to be offered.
//
// A call is always asked about unless a rule or a grant allows it, and is never repeated
// unless the configuration says that it can be. What a server claims of its tools changes
// neither.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// Servers calls the MCP servers of sessions.
type Servers interface {
	// CallTool calls a tool of a server of a session. A failure is a result.
	CallTool(ctx context.Context, call tool.Call, t event.MCPTool) (tool.Result, error)
}

// New returns the tools.
func New(servers Servers) []tool.Tool { return []tool.Tool{family{servers}, search{}} }

// A holder is a session that has tools of MCP servers.
type holder interface {
	MCPTools() []event.MCPTool          // those that the model may call
	MCPTool(name string) *event.MCPTool // the one of that name, also if the model has not found it
	DeferredMCPTools() []event.MCPTool  // those among which the model has to search
}

// A family stands for the tools of all servers of a session.
type family struct{ servers Servers }

// familyName is the name of the family, which is no name of a tool: no server has an empty
// name.
const familyName = "mcp-"

func (family) Spec() tool.Spec { return tool.Spec{Name: familyName} }

func (family) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (family) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Fail("This is no tool: call a tool of an MCP server by its own name."), nil
}

// Members implements tool.Family.
func (f family) Members(s tool.State) []tool.Tool {
	h, ok := s.(holder)
	if !ok {
		return nil
	}
	var list []tool.Tool
	for _, t := range h.MCPTools() {
		list = append(list, serverTool{f.servers, t})
	}
	return list
}

// Member implements tool.Family.
func (f family) Member(s tool.State, name string) tool.Tool {
	if h, ok := s.(holder); ok {
		if t := h.MCPTool(name); t != nil {
			return serverTool{f.servers, *t}
		}
	}
	return nil
}

// A serverTool is a tool of a server.
type serverTool struct {
	servers Servers
	tool    event.MCPTool
}

// Spec returns the description of the tool. A call that was begun and has no result is run
// again under its key: a server that goes on gives its result, and otherwise it may have
// happened. It is made again only if the configuration says that the tool can be called again
// without harm.
func (t serverTool) Spec() tool.Spec {
	spec := tool.Spec{Name: t.tool.Name, Description: t.tool.Description, Parameters: t.tool.Parameters, Source: "mcp", Replay: tool.Keyed}
	if t.tool.Repeatable {
		spec.Replay = tool.Pure
	}
	return spec
}

// Permission returns the permission request in the form of the protocol.
func (t serverTool) Permission(_ context.Context, call tool.Call) (*approval.Request, error) {
	type request struct {
		Kind       string          `json:"kind"`
		ToolCallID string          `json:"toolCallId"`
		ServerName string          `json:"serverName"`
		ToolName   string          `json:"toolName"`
		ToolTitle  string          `json:"toolTitle"`
		Args       json.RawMessage `json:"args"`
		ReadOnly   *bool           `json:"readOnly,omitempty"`
	}
	ask := request{approval.MCP, call.ID, t.tool.Server, t.tool.Name, t.tool.Title, call.Arguments, &t.tool.ReadOnly}
	prompt := ask
	prompt.ToolName, prompt.ReadOnly = t.tool.Tool, nil
	asked, err := json.Marshal(ask)
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", t.tool.Name, err)
	}
	shown, err := json.Marshal(prompt)
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", t.tool.Name, err)
	}
	return approval.MCPRequest(t.tool.Server, t.tool.Tool, asked, shown), nil
}

func (t serverTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	return t.servers.CallTool(ctx, call, t.tool)
}
