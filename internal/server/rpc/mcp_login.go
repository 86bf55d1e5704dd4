package rpc

import (
	"context"
	"errors"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/mcp"
)

// These methods are about logins to MCP servers.
var _ = register(map[string]method{
	api.MCPOAuthLogin:   on((*conn).mcpLogin),
	api.MCPOAuthAnswer:  on((*conn).mcpToken),
	api.MCPOAuthChanged: on((*conn).mcpAuthChanged),
	api.MCPLogin:        on((*conn).mcpUserLogin),
	api.MCPAwaitLogin:   on((*conn).mcpAwaitLogin),
	api.MCPFinishLogin:  on((*conn).mcpFinishLogin),
	api.MCPLogout:       on((*conn).mcpLogout),
})

// mcpLogin begins a login to a server of a session.
func (c *conn) mcpLogin(ctx context.Context, p api.MCPLoginParams) (api.MCPLoginResult, error) {
	var result api.MCPLoginResult
	set, err := c.servers(ctx, p.SessionID)
	if err != nil {
		return result, err
	}
	if set == nil {
		return result, said("MCP host is not available: the session has no MCP servers")
	}
	state, err := set.Get(p.ServerName)
	switch {
	case err != nil:
		return result, said("MCP server %q is not configured", p.ServerName)
	case state.Server.Type == mcp.Stdio:
		return result, said("MCP server %q is not a remote server, and needs no login", p.ServerName)
	}
	result.AuthorizationURL, err = c.server.host.MCP.Login(ctx, p.SessionID, p.ServerName, p.Force)
	return result, noSession(p.SessionID, err)
}

// mcpToken answers a request for a token.
func (c *conn) mcpToken(ctx context.Context, p api.MCPTokenParams) (api.Success, error) {
	if _, err := c.server.host.Status(ctx, p.SessionID); err != nil {
		return api.Success{}, noSession(p.SessionID, err)
	}
	token := p.Result.AccessToken
	switch {
	case p.Result.Kind == "cancelled":
		token = ""
	case p.Result.Kind != "token":
		return api.Success{}, errBadParams{errors.New("result.kind: use token or cancelled")}
	case token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return api.Success{}, errBadParams{errors.New("result.accessToken: it is empty, or has characters that cannot be sent")}
	case p.Result.TokenType != "" && !strings.EqualFold(p.Result.TokenType, "bearer"):
		return api.Success{}, errBadParams{errors.New("result.tokenType: only bearer is supported")}
	}
	return api.Success{Success: c.server.host.MCP.GiveToken(p.RequestID, token)}, nil
}

// mcpAuthChanged tells that servers that want a login may take a connection now.
func (c *conn) mcpAuthChanged(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	_, err := c.servers(ctx, p.SessionID)
	if err == nil {
		c.server.host.MCP.AskAgain(p.SessionID)
	}
	return struct{}{}, err
}

// userServer returns a server that a new session of the client would have.
func (c *conn) userServer(name string) (mcp.Server, *mcp.Logins, error) {
	list, err := c.usualServers(true)
	if err != nil {
		return mcp.Server{}, nil, err
	}
	logins, err := c.server.host.MCP.Logins()
	if err != nil {
		return mcp.Server{}, nil, err
	}
	c.mu.Lock()
	env := c.defaults.Env
	c.mu.Unlock()
	for i := len(list) - 1; i >= 0; i-- { // a later one wins
		if list[i].Name == name {
			s, err := list[i].Expanded(env)
			return s, logins, err
		}
	}
	return mcp.Server{}, nil, said("there is no MCP server %q here", name)
}

// mcpUserLogin begins a login to a server of the user.
func (c *conn) mcpUserLogin(ctx context.Context, p api.MCPUserLoginParams) (api.MCPLoginResult, error) {
	s, logins, err := c.userServer(p.ServerName)
	if err != nil {
		return api.MCPLoginResult{}, err
	}
	at, err := logins.Begin(ctx, s)
	return api.MCPLoginResult{AuthorizationURL: at}, err
}

// mcpAwaitLogin waits until a login is finished or given up.
func (c *conn) mcpAwaitLogin(ctx context.Context, p api.MCPUserLoginParams) (api.MCPLoggedIn, error) {
	s, logins, err := c.userServer(p.ServerName)
	if err != nil {
		return api.MCPLoggedIn{}, err
	}
	in, err := logins.Await(ctx, s)
	return api.MCPLoggedIn{LoggedIn: in}, err
}

// mcpFinishLogin finishes the login that an address belongs to.
func (c *conn) mcpFinishLogin(ctx context.Context, p api.MCPUserLoginParams) (struct{}, error) {
	logins, err := c.server.host.MCP.Logins()
	if err == nil {
		err = logins.Finish(ctx, p.URL)
	}
	return struct{}{}, err
}

// mcpLogout forgets the login to a server of the user.
func (c *conn) mcpLogout(_ context.Context, p api.MCPUserLoginParams) (api.MCPLoggedIn, error) {
	s, logins, err := c.userServer(p.ServerName)
	if err != nil {
		return api.MCPLoggedIn{}, err
	}
	was, err := logins.Logout(s)
	return api.MCPLoggedIn{LoggedIn: was}, err
}
