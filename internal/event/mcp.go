package event

import (
	"encoding/json"
	"slices"
)

// The types of events about MCP servers.
const (
	MCPOffered          Type = "mcp.offered"
	MCPFound            Type = "mcp.found"
	MCPCalled           Type = "mcp.called"
	MCPServersLoaded    Type = "session.mcp_servers_loaded"
	MCPStatusChanged    Type = "session.mcp_server_status_changed"
	MCPToolsChanged     Type = "mcp.tools.list_changed"
	MCPPromptsChanged   Type = "mcp.prompts.list_changed"
	MCPResourcesChanged Type = "mcp.resources.list_changed"
	MCPAuthAsked        Type = "mcp.oauth_required"
	MCPAuthDone         Type = "mcp.oauth_completed"
)

var _ = list(
	Kind{Type: MCPOffered, body: body[MCPOfferedData], Hidden: true, Lasting: true},
	Kind{Type: MCPFound, body: body[MCPFoundData], Hidden: true, Lasting: true},
	Kind{Type: MCPCalled, body: body[MCPCalledData], Hidden: true, Inert: true, Keyed: true},
	Kind{Type: MCPServersLoaded, body: body[MCPServersLoadedData], Sent: true, Silent: true},
	Kind{Type: MCPStatusChanged, body: body[MCPStatusChangedData], Sent: true, Silent: true},
	Kind{Type: MCPToolsChanged, body: body[MCPToolsChangedData], Sent: true, Silent: true},
	Kind{Type: MCPPromptsChanged, body: body[MCPPromptsChangedData], Sent: true, Silent: true},
	Kind{Type: MCPResourcesChanged, body: body[MCPResourcesChangedData], Sent: true, Silent: true},
	Kind{Type: MCPAuthAsked, body: body[MCPAuthAskedData], Sent: true, Silent: true},
	Kind{Type: MCPAuthDone, body: body[MCPAuthDoneData], Sent: true, Silent: true},
)

// An MCPServer is the configuration of an MCP server, without its secrets: those are stored
// beside the log.
type MCPServer struct {
	Name       string   `json:"name"`
	Type       string   `json:"type"` // "stdio", "http" or "sse"
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Dir        string   `json:"cwd,omitempty"` // working directory; that of the session if empty
	URL        string   `json:"url,omitempty"`
	Tools      []string `json:"tools,omitempty"`      // names of the tools to offer; null or "*" for all
	TimeoutMs  int64    `json:"timeoutMs,omitempty"`  // time that a call may take without progress; the default if zero
	LongestMs  int64    `json:"longestMs,omitempty"`  // time that a call may take; the default if zero
	IdleMs     int64    `json:"idleMs,omitempty"`     // time for which a program is kept that nobody uses; the default if zero
	Repeatable []string `json:"repeatable,omitempty"` // names of the tools that can be called again without harm
	Sandbox    string   `json:"sandbox,omitempty"`    // "none", "workspace" or "sealed"; by Source if empty
	Shared     bool     `json:"shared,omitempty"`     // true if sessions with the same configuration use one process
	Sampling   bool     `json:"sampling,omitempty"`   // true if the server may ask the model of the session, when a person or a rule allows it
	Source     string   `json:"source,omitempty"`     // origin of the configuration: "user", "workspace" or "session"
	Disabled   bool     `json:"disabled,omitempty"`
	Literal    bool     `json:"literal,omitempty"` // true if ${NAME} stands for itself
	OAuth      MCPOAuth `json:"oauth,omitzero"`
}

// MCPOAuth says how logins to an MCP server over HTTP are made. Its zero value is usable.
type MCPOAuth struct {
	ClientID string `json:"clientId,omitempty"`          // client that was registered by hand
	Document string `json:"clientMetadataUrl,omitempty"` // address of the description of the client
	Port     int    `json:"callbackPort,omitempty"`      // port on which the answer of the browser is taken; any if zero
}

// MCPRules are the MCP servers of a session.
type MCPRules struct {
	Servers  []MCPServer `json:"servers,omitempty"`
	Disabled []string    `json:"disabled,omitempty"` // names of servers that are not to be used
}

// Enable returns the rules with a server that is to be used, or is not.
func (r MCPRules) Enable(server string, enabled bool) MCPRules {
	r.Disabled = slices.DeleteFunc(slices.Clone(r.Disabled), func(name string) bool { return name == server })
	if !enabled {
		r.Disabled = append(r.Disabled, server)
	}
	r.Servers = slices.Clone(r.Servers)
	for i := range r.Servers {
		if r.Servers[i].Name == server {
			r.Servers[i].Disabled = false // Disabled decides
		}
	}
	return r
}

// With returns the rules with a server, which replaces one of the same name and is to be
// used.
func (r MCPRules) With(server MCPServer) MCPRules {
	r = r.Enable(server.Name, true)
	r.Servers = append(slices.DeleteFunc(r.Servers, func(s MCPServer) bool { return s.Name == server.Name }), server)
	return r
}

// MCPOfferedData is the body of mcp.offered: the tools of all MCP servers of the session,
// from here on.
type MCPOfferedData struct {
	Tools []MCPTool `json:"tools"`
	// Deferred is true if the tools would take too much of the model's window: the model finds
	// them with the tool mcp_search.
	Deferred bool `json:"deferred,omitempty"`
}

// An MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name        string          `json:"name"`                 // name for the model
	Server      string          `json:"mcpServerName"`        // name of the server
	Tool        string          `json:"mcpToolName"`          // name that the server gave the tool
	Title       string          `json:"title,omitempty"`      // title for people
	Description string          `json:"description"`          // description for the model
	Parameters  json.RawMessage `json:"parameters"`           // JSON schema of the arguments
	ReadOnly    bool            `json:"readOnly,omitempty"`   // claim of the server, for display alone
	Repeatable  bool            `json:"repeatable,omitempty"` // true if the configuration says that it can be called again without harm
}

// MCPFoundData is the body of mcp.found: tools that the model has searched for are offered
// to it from here on.
type MCPFoundData struct {
	Names []string `json:"names"` // names of the tools for the model
}

// MCPCalledData is the body of mcp.called: a client is about to call a tool of an MCP server. The
// model hears nothing of it.
type MCPCalledData struct {
	CallID string `json:"callId"`
	Server string `json:"server"`
	Tool   string `json:"tool"`          // name of the tool for the server
	Key    string `json:"key,omitempty"` // idempotency key of the request
}

// MCPServersLoadedData is the body of session.mcp_servers_loaded: every MCP server of the
// session was tried.
type MCPServersLoadedData struct {
	Servers []MCPServerState `json:"servers"`
}

// An MCPServerState says whether an MCP server can be used.
type MCPServerState struct {
	Name      string `json:"name"`
	Status    string `json:"status"` // "pending", "connected", "failed", "needs-auth", "disabled" or "stopped"
	Error     string `json:"error,omitempty"`
	Source    string `json:"source,omitempty"`
	Transport string `json:"transport,omitempty"` // "stdio", "http" or "sse"
}

// MCPStatusChangedData is the body of session.mcp_server_status_changed.
type MCPStatusChangedData struct {
	ServerName string `json:"serverName"`
	Status     string `json:"status"` // one of the statuses of MCPServerState
	Error      string `json:"error,omitempty"`
}

// MCPToolsChangedData is the body of mcp.tools.list_changed: a server has other tools.
type MCPToolsChangedData struct {
	ServerName string `json:"serverName"`
}

// MCPPromptsChangedData is the body of mcp.prompts.list_changed: a server has other prompts.
type MCPPromptsChangedData struct {
	ServerName string `json:"serverName"`
}

// MCPResourcesChangedData is the body of mcp.resources.list_changed: a server has other
// resources.
type MCPResourcesChangedData struct {
	ServerName string `json:"serverName"`
}

// MCPAuthAskedData is the body of mcp.oauth_required: a server wants a token, and a client
// that has said that it gives some is asked for one.
type MCPAuthAskedData struct {
	RequestID  string         `json:"requestId"`
	ServerName string         `json:"serverName"`
	ServerURL  string         `json:"serverUrl"`
	Reason     string         `json:"reason"` // "initial", "refresh", "upscope" or "reauth"
	Challenge  *MCPChallenge  `json:"wwwAuthenticateParams,omitempty"`
	Metadata   string         `json:"resourceMetadata,omitempty"` // how the server describes itself, a JSON object
	Client     *MCPAuthClient `json:"staticClientConfig,omitempty"`
}

// An MCPChallenge is what a server says when it refuses a request for lack of a token.
type MCPChallenge struct {
	Metadata string `json:"resourceMetadataUrl,omitempty"`
	Scope    string `json:"scope,omitempty"`
	Error    string `json:"error,omitempty"`
}

// An MCPAuthClient is a client that was registered by hand.
type MCPAuthClient struct {
	ClientID string `json:"clientId"`
}

// MCPAuthDoneData is the body of mcp.oauth_completed: such a request was answered.
type MCPAuthDoneData struct {
	RequestID string `json:"requestId"`
	Outcome   string `json:"outcome"` // "token" or "cancelled"
}

func (MCPAuthAskedData) Type() Type        { return MCPAuthAsked }
func (MCPAuthDoneData) Type() Type         { return MCPAuthDone }
func (MCPOfferedData) Type() Type          { return MCPOffered }
func (MCPFoundData) Type() Type            { return MCPFound }
func (MCPCalledData) Type() Type           { return MCPCalled }
func (MCPServersLoadedData) Type() Type    { return MCPServersLoaded }
func (MCPStatusChangedData) Type() Type    { return MCPStatusChanged }
func (MCPToolsChangedData) Type() Type     { return MCPToolsChanged }
func (MCPPromptsChangedData) Type() Type   { return MCPPromptsChanged }
func (MCPResourcesChangedData) Type() Type { return MCPResourcesChanged }

// Request returns the key of the request that calls the tool.
func (d MCPCalledData) Request() Request { return Request{Key: d.Key, ID: d.CallID} }
