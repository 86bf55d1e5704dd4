package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// MCP servers.

// MCPServers lists the MCP servers of a session.
func (c *Client) MCPServers(ctx context.Context, id event.SessionID) (api.MCPListResult, error) {
	return call[api.MCPListResult](ctx, c, api.MCPList, api.SessionParams{SessionID: id})
}

// MCPTools lists the tools of an MCP server of a session.
func (c *Client) MCPTools(ctx context.Context, id event.SessionID, server string) (api.MCPToolsResult, error) {
	return call[api.MCPToolsResult](ctx, c, api.MCPListTools, api.MCPServerParams{SessionID: id, ServerName: server})
}

// DiscoverMCP lists the MCP servers that a new session has.
func (c *Client) DiscoverMCP(ctx context.Context) (api.MCPDiscoverResult, error) {
	return call[api.MCPDiscoverResult](ctx, c, api.MCPDiscover, api.MCPDiscoverParams{})
}

// AddMCPServer adds an MCP server to those of the user.
func (c *Client) AddMCPServer(ctx context.Context, p api.MCPConfigParams) error {
	return c.rpc.Call(ctx, api.MCPConfigAdd, p, nil)
}

// RemoveMCPServer removes an MCP server from those of the user.
func (c *Client) RemoveMCPServer(ctx context.Context, name string) error {
	return c.rpc.Call(ctx, api.MCPConfigRemove, api.MCPConfigParams{Name: name}, nil)
}
