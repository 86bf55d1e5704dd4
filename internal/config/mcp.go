package config

import (
	"maps"
	"slices"
	"strings"
)

// MCP is the MCP servers of sessions.
type MCP struct {
	Servers map[string]MCPServer `toml:"servers" doc:"MCP servers, by name."`
}

// MCPServer is an MCP server: a program, or an address.
type MCPServer struct {
	Type    string            `toml:"type" doc:"How the server is spoken with; by default stdio for a command and http for a url." enum:"stdio,http,sse"`
	Command string            `toml:"command" doc:"Program of a server over stdio. In this and the other texts, ${NAME} is the value of an environment variable, and ${NAME:-VALUE} is VALUE if it is empty."`
	Args    []string          `toml:"args" doc:"Arguments of the program."`
	Env     map[string]string `toml:"env" doc:"Environment variables of the program in addition to those that abide was started with."`
	Cwd     string            `toml:"cwd" doc:"Working directory of the program; that of the session if empty."`
	URL     string            `toml:"url" doc:"Address of a server over HTTP."`
	Headers map[string]string `toml:"headers" doc:"Headers of every request; do not put secrets here, but ${NAME}."`

	Tools      []string `toml:"tools" doc:"Names of the only tools to offer; all if empty."`
	Repeatable []string `toml:"repeatable" doc:"Names of tools that can be called twice without harm; a call of another one that was interrupted is never repeated. * is all tools."`
	Timeout    Duration `toml:"timeout" doc:"Longest time of a call without any progress, like 5m, after which it is given up; 5m if empty."`
	MaxTime    Duration `toml:"max_time" doc:"Longest time of a call, like 1h; 1h if empty."`
	Idle       Duration `toml:"idle" doc:"Time without a call after which the program is ended until it is needed again, like 10m; 10m if empty."`
	Sandbox    string   `toml:"sandbox" doc:"How the program is confined: none, workspace (it changes only the working directory, temporary folders and caches) or sealed; none for the servers of this file, workspace for those of a project." enum:"none,workspace,sealed"`
	Shared     bool     `toml:"shared" doc:"One process for all sessions with the same configuration, folder and environment. It cannot ask a person anything, and a call of it does not survive abide."`
	Sampling   bool     `toml:"sampling" doc:"Let the server ask the model of the session, which costs what the model costs. You are asked each time, unless a rule mcp-sampling(NAME) allows it. A shared server cannot."`
	Disabled   bool     `toml:"disabled" doc:"Do not use the server."`

	OAuth MCPOAuth `toml:"oauth" doc:"How logins to a server over HTTP are made, if the server asks for something that abide cannot find out."`
}

// MCPOAuth says how logins to an MCP server are made.
type MCPOAuth struct {
	ClientID       string `toml:"client_id" doc:"Id of the client that was registered for abide by hand; abide registers itself if empty."`
	ClientSecret   string `toml:"client_secret" doc:"Secret of that client; do not put it here, but ${NAME}."`
	ClientMetadata string `toml:"client_metadata_url" doc:"Address of the description of the client, which begins with https://, for servers that take one instead of a registration."`
	CallbackPort   int    `toml:"callback_port" doc:"Port of this machine on which the answer to a login is taken; any if 0."`
}

func (m MCP) check(list []mistake) []mistake {
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		s, at := m.Servers[name], path{"mcp", "servers", name}
		list = duration(list, at.with("timeout"), s.Timeout)
		list = duration(list, at.with("max_time"), s.MaxTime)
		list = duration(list, at.with("idle"), s.Idle)
		switch {
		case name == "" || strings.Contains(name, "/"):
			list = append(list, wrong(at, "it cannot be the name of a server: it is empty or has a slash"))
		case s.OAuth.CallbackPort < 0 || s.OAuth.CallbackPort > 65535:
			list = append(list, wrong(at.with("oauth").with("callback_port"), "it is no port; use 1 to 65535, or 0 for any"))
		case s.Command != "" && s.URL != "":
			list = append(list, wrong(at.with("url"), "there is a command too; use one of them"))
		}
	}
	return list
}
