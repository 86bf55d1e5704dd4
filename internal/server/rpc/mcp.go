package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/session"
)

// These methods are about MCP servers.
var _ = register(map[string]method{
	api.MCPList:             on((*conn).mcpList),
	api.MCPListTools:        on((*conn).mcpTools),
	api.MCPEnable:           on((*conn).mcpEnable),
	api.MCPDisable:          on((*conn).mcpDisable),
	api.MCPStartServer:      on((*conn).mcpStart),
	api.MCPStopServer:       on((*conn).mcpStop),
	api.MCPRestartServer:    on((*conn).mcpRestart),
	api.MCPReload:           on((*conn).mcpReload),
	api.MCPIsServerRunning:  on((*conn).mcpRunning),
	api.MCPSetEnvValueMode:  on((*conn).mcpEnvMode),
	api.MCPExecuteSampling:  on((*conn).mcpSampling),
	api.MCPCancelSampling:   on((*conn).mcpCancelSampling),
	api.MCPAppsCallTool:     on((*conn).mcpAppCall),
	api.MCPResourcesList:    on((*conn).mcpResources),
	api.MCPResourceTemplate: on((*conn).mcpTemplates),
	api.MCPResourcesRead:    on((*conn).mcpResource),
	api.MCPPromptsList:      on((*conn).mcpPrompts),
	api.MCPPromptGet:        on((*conn).mcpPrompt),
	api.MCPConfigList:       on((*conn).mcpConfigList),
	api.MCPConfigAdd:        on((*conn).mcpConfigAdd),
	api.MCPConfigUpdate:     on((*conn).mcpConfigUpdate),
	api.MCPConfigRemove:     on((*conn).mcpConfigRemove),
	api.MCPConfigEnable:     on((*conn).mcpConfigEnable),
	api.MCPConfigDisable:    on((*conn).mcpConfigDisable),
	api.MCPConfigReload:     on((*conn).mcpConfigReload),
	api.MCPDiscover:         on((*conn).mcpDiscover),
})

// mcpSpec takes the MCP servers of a session: those of the user's configuration, of the
// project and of the client, of which a later one wins over an earlier one of the same name.
func (c *conn) mcpSpec(s *session.Spec, p api.OpenMore) error {
	list, err := c.usualServers(p.Discover)
	if err != nil {
		return err
	}
	if given(p.MCPServers) {
		own, err := mcp.ParseAll(p.MCPServers)
		if err != nil {
			return errBadParams{fmt.Errorf("mcpServers: %w", err)}
		}
		for i := range own {
			own[i].Source, own[i].Literal = mcp.SourceSession, p.EnvValueMode == "direct"
			if own[i].Type != mcp.Stdio && own[i].OAuth.Document == "" {
				own[i].OAuth.Document = p.AuthDocument
			}
		}
		list = append(list, own...)
	}
	s.OwnMCP = given(p.MCPServers)
	s.Config.MCP.Disabled = p.DisabledMCPServers
	s.MCP = make(map[string]mcp.Secret)
	for _, v := range list {
		s.Config.MCP.Servers = slices.DeleteFunc(s.Config.MCP.Servers, func(before event.MCPServer) bool { return before.Name == v.Name })
		server, secret := v.Apart()
		s.Config.MCP.Servers = append(s.Config.MCP.Servers, server)
		s.MCP[v.Name] = secret
	}
	slices.SortFunc(s.Config.MCP.Servers, func(a, b event.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	if len(s.MCP) == 0 {
		s.MCP = nil
	}
	return nil
}

// usualServers returns the servers that a session has without being told so: those that the
// user has added, and those of the configuration of the client's process. A program that
// starts sessions has to ask for them.
func (c *conn) usualServers(discover bool) ([]mcp.Server, error) {
	c.mu.Lock()
	defaults := c.defaults
	c.mu.Unlock()
	if c.server.opts.MCP == nil || defaults.Programmed && !discover {
		return nil, nil
	}
	list, err := c.addedServers()
	if err != nil || !given(defaults.MCP) {
		return list, err
	}
	configured, err := mcp.ParseAll(defaults.MCP)
	for i := range configured {
		configured[i].Source = cmp.Or(configured[i].Source, mcp.SourceUser)
	}
	return append(list, configured...), err
}

// addedServers returns the servers that the user has added. One that cannot be read is left
// out: it must not keep sessions from being opened.
func (c *conn) addedServers() ([]mcp.Server, error) {
	all, err := c.server.opts.MCP.All()
	if err != nil {
		return nil, err
	}
	var list []mcp.Server
	for name, raw := range all {
		s, err := mcp.Parse(name, raw)
		if err != nil {
			c.server.log.Warn("an MCP server that was added cannot be used", "err", err)
			continue
		}
		s.Source = mcp.SourceUser
		list = append(list, s)
	}
	return list, nil
}

// servers returns the MCP servers of a session; nil if it has none.
func (c *conn) servers(ctx context.Context, id event.SessionID) (*mcp.Set, error) {
	set, err := c.server.host.MCP.Set(ctx, id)
	return set, noSession(id, err)
}

// connected returns the MCP servers of a session that is to use one of them.
func (c *conn) connected(ctx context.Context, id event.SessionID, server string) (*mcp.Set, error) {
	set, err := c.servers(ctx, id)
	if err == nil && set == nil {
		err = said("MCP server %q is not connected: the session has no MCP servers", server)
	}
	return set, err
}

func (c *conn) mcpList(ctx context.Context, p api.SessionParams) (api.MCPListResult, error) {
	result := api.MCPListResult{Servers: []event.MCPServerState{}}
	set, err := c.servers(ctx, p.SessionID)
	if err != nil || set == nil {
		return result, err
	}
	now := time.Now().UnixMilli()
	host := &api.MCPHost{
		Clients: []string{}, DisabledServers: []string{}, FailedServers: map[string]api.MCPFailure{}, FilteredServers: []string{}, Enabled: true,
		NeedsAuthServers: map[string]api.MCPTimestamp{}, PendingConnections: []string{},
	}
	for _, s := range set.List() {
		result.Servers = append(result.Servers, s.Public())
		switch name := s.Server.Name; s.Status {
		case mcp.Connected:
			host.Clients = append(host.Clients, name)
		case mcp.Disabled:
			host.DisabledServers = append(host.DisabledServers, name)
		case mcp.Failed:
			host.FailedServers[name] = api.MCPFailure{Message: s.Error, Timestamp: now}
		case mcp.NeedsAuth:
			host.NeedsAuthServers[name] = api.MCPTimestamp{Timestamp: now}
		case mcp.Pending:
			host.PendingConnections = append(host.PendingConnections, name)
		}
	}
	result.Host = host
	return result, nil
}

func (c *conn) mcpTools(ctx context.Context, p api.MCPServerParams) (api.MCPToolsResult, error) {
	result := api.MCPToolsResult{Tools: []api.MCPToolInfo{}}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return result, err
	}
	state, err := set.Get(p.ServerName)
	if err != nil {
		return result, err
	}
	if state.Status != mcp.Connected {
		return result, &mcp.Unavailable{Server: p.ServerName, Status: state.Status, Reason: state.Error}
	}
	for _, t := range state.Tools {
		result.Tools = append(result.Tools, api.MCPToolInfo{Name: t.Name, Description: t.Description})
	}
	return result, nil
}

func (c *conn) mcpEnable(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	return struct{}{}, noSession(p.SessionID, c.server.host.MCP.Enable(ctx, p.SessionID, p.ServerName, true))
}

func (c *conn) mcpDisable(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	return struct{}{}, noSession(p.SessionID, c.server.host.MCP.Enable(ctx, p.SessionID, p.ServerName, false))
}

func (c *conn) mcpStart(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	if given(p.Config) {
		return struct{}{}, c.mcpConfigure(ctx, p)
	}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err == nil {
		err = set.Start(p.ServerName)
	}
	return struct{}{}, err
}

func (c *conn) mcpStop(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err == nil {
		err = set.Stop(p.ServerName, mcp.Stopped)
	}
	return struct{}{}, err
}

func (c *conn) mcpRestart(ctx context.Context, p api.MCPServerParams) (struct{}, error) {
	if given(p.Config) {
		return struct{}{}, c.mcpConfigure(ctx, p)
	}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err == nil {
		err = set.Restart(p.ServerName)
	}
	return struct{}{}, err
}

// mcpConfigure gives a session a server, or another configuration of one.
func (c *conn) mcpConfigure(ctx context.Context, p api.MCPServerParams) error {
	s, err := mcp.Parse(p.ServerName, p.Config)
	if err != nil {
		return errBadParams{fmt.Errorf("config: %w", err)}
	}
	s.Source, s.Literal = mcp.SourceSession, true
	return noSession(p.SessionID, c.server.host.MCP.Configure(ctx, p.SessionID, s))
}

// mcpReload connects every server of a session anew.
func (c *conn) mcpReload(ctx context.Context, p api.SessionParams) (struct{}, error) {
	set, err := c.servers(ctx, p.SessionID)
	if err != nil {
		return struct{}{}, err
	}
	if set == nil {
		return struct{}{}, said("MCP config reload not available: the session has no MCP servers")
	}
	for _, s := range set.List() {
		if s.Status != mcp.Disabled && s.Status != mcp.Stopped {
			err = errors.Join(err, set.Restart(s.Server.Name))
		}
	}
	return struct{}{}, err
}

func (c *conn) mcpRunning(ctx context.Context, p api.MCPServerParams) (api.MCPRunning, error) {
	set, err := c.servers(ctx, p.SessionID)
	if err != nil || set == nil {
		return api.MCPRunning{}, err
	}
	state, err := set.Get(p.ServerName)
	return api.MCPRunning{Running: err == nil && state.Status == mcp.Connected}, nil
}

// mcpEnvMode accepts how the values of variables are to be read from now on. Servers that a
// client names later say so themselves.
func (c *conn) mcpEnvMode(ctx context.Context, p api.MCPEnvModeParams) (api.MCPEnvMode, error) {
	if p.Mode != "direct" && p.Mode != "indirect" {
		return api.MCPEnvMode{}, errBadParams{errors.New("mode: use direct or indirect")}
	}
	_, err := c.servers(ctx, p.SessionID)
	return api.MCPEnvMode{Mode: p.Mode}, err
}

// mcpAppCall calls a tool for a page that the client shows, which belongs to the same server.
func (c *conn) mcpAppCall(ctx context.Context, p api.MCPAppCallParams) (*sdk.CallToolResult, error) {
	switch {
	case p.ServerName == "" || p.ToolName == "":
		return nil, errBadParams{errors.New("serverName and toolName: they are missing")}
	case p.OriginServerName != p.ServerName:
		return nil, errBadParams{fmt.Errorf("originServerName: a page of the server %q cannot call tools of the server %q", p.OriginServerName, p.ServerName)}
	}
	if _, err := c.connected(ctx, p.SessionID, p.ServerName); err != nil {
		return nil, err
	}
	result, err := c.server.host.MCP.CallForPage(ctx, p.SessionID, p.Key, mcp.Request{Server: p.ServerName, Tool: p.ToolName, Arguments: p.Arguments})
	return result, noSession(p.SessionID, err)
}

// mcpSampling tells that clients do not ask the model for servers: the engine does, if the
// configuration of the server says so.
func (c *conn) mcpSampling(ctx context.Context, p api.MCPSamplingParams) (api.MCPSamplingResult, error) {
	_, err := c.servers(ctx, p.SessionID)
	return api.MCPSamplingResult{Action: "failure", Error: "clients do not ask the model for MCP servers: abide does that itself if the configuration of the server has sampling = true"}, err
}

func (c *conn) mcpCancelSampling(ctx context.Context, p api.MCPSamplingParams) (api.MCPCancelled, error) {
	_, err := c.servers(ctx, p.SessionID)
	return api.MCPCancelled{}, err
}

func (c *conn) mcpResources(ctx context.Context, p api.MCPResourceParams) (*sdk.ListResourcesResult, error) {
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return nil, err
	}
	return set.Resources(ctx, p.ServerName, p.Cursor)
}

func (c *conn) mcpTemplates(ctx context.Context, p api.MCPResourceParams) (*sdk.ListResourceTemplatesResult, error) {
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return nil, err
	}
	return set.Templates(ctx, p.ServerName, p.Cursor)
}

func (c *conn) mcpResource(ctx context.Context, p api.MCPResourceParams) (*sdk.ReadResourceResult, error) {
	if p.URI == "" {
		return nil, missing("uri")
	}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return nil, err
	}
	return set.ReadResource(ctx, p.ServerName, p.URI)
}

func (c *conn) mcpPrompts(ctx context.Context, p api.MCPPromptParams) (api.MCPPromptsResult, error) {
	result := api.MCPPromptsResult{Prompts: []json.RawMessage{}}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return result, err
	}
	list, err := set.Prompts(ctx, p.ServerName)
	for _, one := range list {
		text, failed := json.Marshal(one)
		err = errors.Join(err, failed)
		result.Prompts = append(result.Prompts, text)
	}
	return result, err
}

func (c *conn) mcpPrompt(ctx context.Context, p api.MCPPromptParams) (*sdk.GetPromptResult, error) {
	if p.Name == "" {
		return nil, missing("name")
	}
	set, err := c.connected(ctx, p.SessionID, p.ServerName)
	if err != nil {
		return nil, err
	}
	return set.Prompt(ctx, p.ServerName, p.Name, p.Arguments)
}

// errNoStore means that the servers of the user are not kept.
var errNoStore = errors.New("MCP servers cannot be configured here")

func (c *conn) mcpConfigList(context.Context, struct{}) (api.MCPConfigResult, error) {
	if c.server.opts.MCP == nil {
		return api.MCPConfigResult{Servers: map[string]json.RawMessage{}}, nil
	}
	all, err := c.server.opts.MCP.All()
	return api.MCPConfigResult{Servers: all}, err
}

// changeStore changes the servers of the user.
func (c *conn) changeStore(change func(*mcp.Store) error) (struct{}, error) {
	if c.server.opts.MCP == nil {
		return struct{}{}, errNoStore
	}
	return struct{}{}, change(c.server.opts.MCP)
}

func (c *conn) mcpConfigAdd(_ context.Context, p api.MCPConfigParams) (struct{}, error) {
	return c.changeStore(func(s *mcp.Store) error { return s.Add(p.Name, p.Config) })
}

func (c *conn) mcpConfigUpdate(_ context.Context, p api.MCPConfigParams) (struct{}, error) {
	return c.changeStore(func(s *mcp.Store) error { return s.Update(p.Name, p.Config) })
}

func (c *conn) mcpConfigRemove(_ context.Context, p api.MCPConfigParams) (struct{}, error) {
	return c.changeStore(func(s *mcp.Store) error { return s.Remove(p.Name) })
}

func (c *conn) mcpConfigEnable(_ context.Context, p api.MCPConfigParams) (struct{}, error) {
	return c.changeStore(func(s *mcp.Store) error { return s.Enable(p.Names, true) })
}

func (c *conn) mcpConfigDisable(_ context.Context, p api.MCPConfigParams) (struct{}, error) {
	return c.changeStore(func(s *mcp.Store) error { return s.Enable(p.Names, false) })
}

// mcpConfigReload has nothing to do: the file is read whenever a session is opened.
func (c *conn) mcpConfigReload(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }

// mcpDiscover lists the servers that a new session would have.
func (c *conn) mcpDiscover(_ context.Context, _ api.MCPDiscoverParams) (api.MCPDiscoverResult, error) {
	result := api.MCPDiscoverResult{Servers: []api.MCPDiscovered{}}
	list, err := c.usualServers(true)
	for _, s := range list {
		result.Servers = append(result.Servers, api.MCPDiscovered{Name: s.Name, Type: s.Type, Source: s.Source, Enabled: !s.Disabled})
	}
	return result, err
}
