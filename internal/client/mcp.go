package client

import (
	"context"
	"encoding/json"

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

// StartMCPServer connects an MCP server of a session that is not connected.
func (c *Client) StartMCPServer(ctx context.Context, id event.SessionID, server string) error {
	return c.rpc.Call(ctx, api.MCPStartServer, api.MCPServerParams{SessionID: id, ServerName: server}, nil)
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

// LoginMCP begins a login to an MCP server of the user, and returns the address that a
// person opens.
func (c *Client) LoginMCP(ctx context.Context, server string) (api.MCPLoginResult, error) {
	return call[api.MCPLoginResult](ctx, c, api.MCPLogin, api.MCPUserLoginParams{ServerName: server})
}

// AwaitMCPLogin waits until a login is finished or given up.
func (c *Client) AwaitMCPLogin(ctx context.Context, server string) (api.MCPLoggedIn, error) {
	return call[api.MCPLoggedIn](ctx, c, api.MCPAwaitLogin, api.MCPUserLoginParams{ServerName: server})
}

// FinishMCPLogin finishes a login with the address to which the browser was sent.
func (c *Client) FinishMCPLogin(ctx context.Context, url string) error {
	return c.rpc.Call(ctx, api.MCPFinishLogin, api.MCPUserLoginParams{URL: url}, nil)
}

// LogoutMCP forgets the login to an MCP server of the user, and tells whether there was one.
func (c *Client) LogoutMCP(ctx context.Context, server string) (api.MCPLoggedIn, error) {
	return call[api.MCPLoggedIn](ctx, c, api.MCPLogout, api.MCPUserLoginParams{ServerName: server})
}

// MCPResources lists the first resources of an MCP server of a session, in the form of MCP.
func (c *Client) MCPResources(ctx context.Context, id event.SessionID, server string) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, api.MCPResourcesList, api.MCPResourceParams{SessionID: id, ServerName: server})
}

// ReadMCPResource reads a resource of an MCP server of a session, in the form of MCP.
func (c *Client) ReadMCPResource(ctx context.Context, id event.SessionID, server, uri string) (json.RawMessage, error) {
	return call[json.RawMessage](ctx, c, api.MCPResourcesRead, api.MCPResourceParams{SessionID: id, ServerName: server, URI: uri})
}

// MCPPrompts lists the prompts of an MCP server of a session.
func (c *Client) MCPPrompts(ctx context.Context, id event.SessionID, server string) (api.MCPPromptsResult, error) {
	return call[api.MCPPromptsResult](ctx, c, api.MCPPromptsList, api.MCPPromptParams{SessionID: id, ServerName: server})
}

// MCPPrompt returns a prompt of an MCP server of a session, in the form of MCP.
func (c *Client) MCPPrompt(ctx context.Context, id event.SessionID, p api.MCPPromptParams) (json.RawMessage, error) {
	p.SessionID = id
	return call[json.RawMessage](ctx, c, api.MCPPromptGet, p)
}
