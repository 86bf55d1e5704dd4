package api

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// The methods about MCP servers.
const (
	MCPList             = "session.mcp.list"
	MCPListTools        = "session.mcp.listTools"
	MCPEnable           = "session.mcp.enable"
	MCPDisable          = "session.mcp.disable"
	MCPStartServer      = "session.mcp.startServer"
	MCPStopServer       = "session.mcp.stopServer"
	MCPRestartServer    = "session.mcp.restartServer"
	MCPReload           = "session.mcp.reload"
	MCPIsServerRunning  = "session.mcp.isServerRunning"
	MCPSetEnvValueMode  = "session.mcp.setEnvValueMode"
	MCPExecuteSampling  = "session.mcp.executeSampling"
	MCPCancelSampling   = "session.mcp.cancelSamplingExecution"
	MCPAppsCallTool     = "session.mcp.apps.callTool"
	MCPResourcesList    = "session.mcp.resources.list"
	MCPResourceTemplate = "session.mcp.resources.listTemplates"
	MCPResourcesRead    = "session.mcp.resources.read"
	MCPPromptsList      = "abide.mcp.prompts"
	MCPPromptGet        = "abide.mcp.prompt"
	MCPOAuthLogin       = "session.mcp.oauth.login"
	MCPConfigList       = "mcp.config.list"
	MCPConfigAdd        = "mcp.config.add"
	MCPConfigUpdate     = "mcp.config.update"
	MCPConfigRemove     = "mcp.config.remove"
	MCPConfigEnable     = "mcp.config.enable"
	MCPConfigDisable    = "mcp.config.disable"
	MCPConfigReload     = "mcp.config.reload"
	MCPDiscover         = "mcp.discover"
	MCPOAuthAnswer      = "session.mcp.oauth.handlePendingRequest"
	MCPOAuthChanged     = "session.mcp.oauth.authenticationStateChanged"
	MCPLogin            = "abide.mcp.login"
	MCPAwaitLogin       = "abide.mcp.awaitLogin"
	MCPFinishLogin      = "abide.mcp.finishLogin"
	MCPLogout           = "abide.mcp.logout"
)

// MCPListResult lists the MCP servers of a session.
type MCPListResult struct {
	Servers []event.MCPServerState `json:"servers"`
	Host    *MCPHost               `json:"host,omitempty"` // nil if the session has no servers
}

// MCPHost lists the names of servers by what can be done with them.
type MCPHost struct {
	Clients            []string                `json:"clients"` // those that are connected
	DisabledServers    []string                `json:"disabledServers"`
	FailedServers      map[string]MCPFailure   `json:"failedServers"`
	FilteredServers    []string                `json:"filteredServers"`
	Enabled            bool                    `json:"mcp3pEnabled"`
	NeedsAuthServers   map[string]MCPTimestamp `json:"needsAuthServers"`
	PendingConnections []string                `json:"pendingConnections"`
}

// An MCPFailure says why a server could not be connected.
type MCPFailure struct {
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
}

// An MCPTimestamp says since when something is so.
type MCPTimestamp struct {
	Timestamp int64 `json:"timestamp"` // milliseconds since 1970
}

// MCPServerParams names a server of a session.
type MCPServerParams struct {
	SessionID  event.SessionID `json:"sessionId"`
	ServerName string          `json:"serverName"`
	Config     json.RawMessage `json:"config,omitempty"` // new configuration of the server; as it is if empty
}

// MCPToolsResult lists the tools of a server.
type MCPToolsResult struct {
	Tools []MCPToolInfo `json:"tools"`
}

// An MCPToolInfo describes a tool of a server.
type MCPToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// MCPRunning says whether a server is connected.
type MCPRunning struct {
	Running bool `json:"running"`
}

// MCPEnvModeParams says how the values of variables are read.
type MCPEnvModeParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Mode      string          `json:"mode"`
}

// MCPEnvMode is the mode that applies.
type MCPEnvMode struct {
	Mode string `json:"mode"`
}

// MCPSamplingParams asks for a model's answer to a request of a server.
type MCPSamplingParams struct {
	SessionID  event.SessionID `json:"sessionId"`
	ServerName string          `json:"serverName"`
	RequestID  string          `json:"requestId"`
}

// MCPSamplingResult is what became of such a request.
type MCPSamplingResult struct {
	Action string `json:"action"`
	Error  string `json:"error,omitempty"`
}

// MCPAppCallParams calls a tool of a server for a page that the same server has brought.
type MCPAppCallParams struct {
	SessionID        event.SessionID `json:"sessionId"`
	OriginServerName string          `json:"originServerName"` // server of the page
	ServerName       string          `json:"serverName"`
	ToolName         string          `json:"toolName"`
	Arguments        json.RawMessage `json:"arguments,omitempty"`
	Key              string          `json:"abideKey,omitempty"`
}

// MCPCancelled says whether there was something to cancel.
type MCPCancelled struct {
	Cancelled bool `json:"cancelled"`
}

// MCPResourceParams asks for resources of a server: a list from a cursor on, or one of them.
type MCPResourceParams struct {
	SessionID  event.SessionID `json:"sessionId"`
	ServerName string          `json:"serverName"`
	Cursor     string          `json:"cursor,omitempty"`
	URI        string          `json:"uri,omitempty"`
}

// MCPPromptParams asks for the prompts of a server, or for one of them.
type MCPPromptParams struct {
	SessionID  event.SessionID   `json:"sessionId"`
	ServerName string            `json:"serverName"`
	Name       string            `json:"name,omitempty"`
	Arguments  map[string]string `json:"arguments,omitempty"`
}

// MCPPromptsResult lists the prompts of a server, in the form of MCP.
type MCPPromptsResult struct {
	Prompts []json.RawMessage `json:"prompts"`
}

// MCPLoginParams names a server that wants a login.
type MCPLoginParams struct {
	SessionID  event.SessionID `json:"sessionId"`
	ServerName string          `json:"serverName"`
	Force      bool            `json:"forceReauth,omitempty"` // true to log in although there is a login
}

// MCPLoginResult is a login that was begun.
type MCPLoginResult struct {
	AuthorizationURL string `json:"authorizationUrl,omitempty"` // address that a person opens; empty if no login is needed
}

// MCPTokenParams answers mcp.oauth_required.
type MCPTokenParams struct {
	SessionID event.SessionID `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Result    MCPTokenResult  `json:"result"`
}

// An MCPTokenResult is a token, or the answer that there is none.
type MCPTokenResult struct {
	Kind        string `json:"kind"` // "token" or "cancelled"
	AccessToken string `json:"accessToken,omitempty"`
	TokenType   string `json:"tokenType,omitempty"`
}

// MCPUserLoginParams names a server of the user, without a session.
type MCPUserLoginParams struct {
	ServerName string `json:"serverName,omitempty"`
	URL        string `json:"url,omitempty"` // address to which the browser was sent
}

// MCPLoggedIn says whether somebody is logged in, or was.
type MCPLoggedIn struct {
	LoggedIn bool `json:"loggedIn"`
}

// MCPConfigParams changes the configuration of the user.
type MCPConfigParams struct {
	Name   string          `json:"name,omitempty"`
	Names  []string        `json:"names,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
}

// MCPConfigResult lists the servers that the user has configured, by name.
type MCPConfigResult struct {
	Servers map[string]json.RawMessage `json:"servers"`
}

// MCPDiscoverParams names a folder.
type MCPDiscoverParams struct {
	WorkingDirectory string `json:"workingDirectory,omitempty"`
}

// MCPDiscoverResult lists the servers that sessions in a folder have.
type MCPDiscoverResult struct {
	Servers []MCPDiscovered `json:"servers"`
}

// An MCPDiscovered is a server that was found.
type MCPDiscovered struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Source  string `json:"source"`
	Enabled bool   `json:"enabled"`
}
