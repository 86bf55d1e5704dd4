package approval

import (
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// MCP is the kind of requests to call tools of MCP servers. Rules about them name the
// server and the tool as the server calls it: "mcp(github/create_issue)", "mcp(github/*)".
// A star matches any text. No server has a slash in its name.
const MCP = "mcp"

// MCPSampling is the kind of requests of MCP servers to ask the model. Rules about them name
// the server: "mcp-sampling(github)".
const MCPSampling = "mcp-sampling"

// SamplingRequest returns the request of an MCP server to ask the model.
func SamplingRequest(server string) *Request {
	return &Request{Kind: MCPSampling, Subjects: []string{server}, Details: []string{server}}
}

// MCPRequest returns the request for a call of a tool of an MCP server.
func MCPRequest(server, tool string, ask, prompt json.RawMessage) *Request {
	name := server + "/" + tool
	return &Request{Kind: MCP, Subjects: []string{name}, Details: []string{name}, Ask: ask, Prompt: prompt}
}

// coversMCP reports whether a grant covers a tool: it is for that tool, or for all tools of
// its server.
func coversMCP(g event.Grant, subject string) bool {
	server, _, _ := strings.Cut(subject, "/")
	return g.Kind == MCP && g.Subject != "" && (g.Subject == subject || g.Subject == server)
}

// mcpOffers returns the offers for a tool of an MCP server.
func (r *Request) mcpOffers() []event.Offer {
	name := r.Subjects[0]
	server, tool, _ := strings.Cut(name, "/")
	return []event.Offer{
		{ID: event.OfferTool, Label: "any call of " + tool + " of the MCP server " + server, Grants: []event.Grant{{Kind: MCP, Subject: name}}},
		{ID: event.OfferServer, Label: "any call of the MCP server " + server, Grants: []event.Grant{{Kind: MCP, Subject: server}}},
	}
}

// ofMCP completes a coverage from the grant for a tool or a server.
func (c Coverage) ofMCP(grants []event.Grant) Coverage {
	if len(grants) > 0 && c.ServerName == "" {
		server, tool, _ := strings.Cut(grants[0].Subject, "/")
		c.ServerName, c.ToolName = server, tool
	}
	return c
}
