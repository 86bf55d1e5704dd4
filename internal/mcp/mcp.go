// Package mcp connects sessions to MCP servers: programs that bring tools, resources and
// prompts.
//
//   - One bad server never harms the others: what it prints, how long it takes and how
//     large it gets are bounded, and its state says what is wrong with it.
//   - A server that ends while it is needed is started again, after a pause that grows.
//   - A call ends when the server has been silent for too long, and progress is not silence.
//   - A program whose tools are known is started when it is first used, and ended when nobody
//     has used it for a while.
//   - Nothing is left behind: a server that is closed ends with all its processes.
//   - A program that is busy with a call outlives the engine: the next one goes on with it, and
//     no request is sent to it twice.
//   - What a server says about itself is for display. Nothing is allowed and nothing is
//     repeated because of it.
//
// A [Set] holds the servers of one session. It is safe for concurrent use.
package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// A Server is the configuration of a server, with its secrets.
type Server struct {
	event.MCPServer
	Secret
}

// A Secret is what the configuration of a server may keep secret. It is stored beside the
// log.
type Secret struct {
	Env     map[string]string `json:"env,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	ClientSecret string `json:"clientSecret,omitempty"` // of a client that was registered by hand

	// Address is the URL if it has a user, a password or a query, any of which may be a key. The
	// log then has it without them. It is empty in a [Server].
	Address string `json:"address,omitempty"`
}

// Apart returns what the log has of a server, and what is kept beside it.
func (s Server) Apart() (event.MCPServer, Secret) {
	if open := model.OpenURL(s.URL); open != s.URL {
		s.Address, s.URL = s.URL, open
	}
	return s.MCPServer, s.Secret
}

// Whole returns the server of which the log and what is beside it have the parts.
func Whole(s event.MCPServer, secret Secret) Server {
	if model.OpenURL(secret.Address) == s.URL {
		s.URL = cmp.Or(secret.Address, s.URL)
	}
	secret.Address = ""
	return Server{s, secret}
}

// The types of servers.
const (
	Stdio = "stdio" // a program that speaks over its standard input and output
	HTTP  = "http"  // streamable HTTP
	SSE   = "sse"   // the older form of HTTP
)

// A Status says whether a server can be used.
type Status string

// The statuses of servers, in the words of the protocol.
const (
	Pending   Status = "pending"    // it is being connected
	Connected Status = "connected"  // it can be used
	Failed    Status = "failed"     // it could not be connected
	NeedsAuth Status = "needs-auth" // it wants a login
	Disabled  Status = "disabled"   // it is not to be used
	Stopped   Status = "stopped"    // it was stopped
)

// These are the times that a server may take, unless its configuration says otherwise.
const (
	connectTime = 60 * time.Second // to connect and to list what it has
	discover    = 2 * time.Second  // to answer server/discover, which older servers do not know
	discoverWeb = 10 * time.Second // the same over HTTP, where it is rarely ignored and the way may be long
	idleTime    = 5 * time.Minute  // for a call without any progress
	longestTime = time.Hour        // for a call with progress
	keptTime    = 10 * time.Minute // for which a program that nobody uses is kept
)

// Idle returns how long a call may take without any progress.
func (s Server) Idle() time.Duration { return orDefault(s.TimeoutMs, idleTime) }

// Longest returns how long a call may take.
func (s Server) Longest() time.Duration {
	return max(orDefault(s.LongestMs, longestTime), s.Idle())
}

// Kept returns how long a program is kept that nobody uses.
func (s Server) Kept() time.Duration { return orDefault(s.IdleMs, keptTime) }

func orDefault(ms int64, usual time.Duration) time.Duration {
	if ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return usual
}

// Uses reports whether a tool of the server is to be offered.
func (s Server) Uses(tool string) bool {
	return s.Tools == nil || slices.Contains(s.Tools, "*") || slices.Contains(s.Tools, tool)
}

// MayRepeat reports whether the configuration says that a tool can be called again without
// harm.
func (s Server) MayRepeat(tool string) bool {
	return slices.Contains(s.Repeatable, "*") || slices.Contains(s.Repeatable, tool)
}

// wire is the configuration of a server in the form of the protocol and of .mcp.json.
type wire struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Cwd     string            `json:"cwd,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Tools   []string          `json:"tools,omitempty"`
	Timeout int64             `json:"timeout,omitempty"` // milliseconds
	Off     bool              `json:"disabled,omitempty"`
	Kind    string            `json:"transport,omitempty"` // another name of type that some programs write

	// These fields are ours.
	Longest    int64    `json:"maxTime,omitempty"`    // milliseconds
	Repeatable []string `json:"repeatable,omitempty"` // tools that can be called again without harm
	Sandbox    string   `json:"sandbox,omitempty"`
	Kept       int64    `json:"idleTime,omitempty"` // milliseconds
	Shared     bool     `json:"shared,omitempty"`
	Sampling   bool     `json:"sampling,omitempty"`
	Source     string   `json:"abideSource,omitempty"`

	// These are about logins.
	ClientID     string `json:"oauthClientId,omitempty"`
	ClientSecret string `json:"oauthClientSecret,omitempty"`
	Document     string `json:"oauthClientMetadataUrl,omitempty"`
	Port         int    `json:"oauthCallbackPort,omitempty"`
}

// Parse reads the configuration of a server in the form of the protocol and of .mcp.json.
func Parse(name string, raw json.RawMessage) (Server, error) {
	var w wire
	if err := json.Unmarshal(raw, &w); err != nil {
		return Server{}, fmt.Errorf("MCP server %q: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if w.Type == "" {
		w.Type = w.Kind
	}
	s := Server{
		MCPServer: event.MCPServer{
			Name: name, Type: w.Type, Command: w.Command, Args: w.Args, Dir: w.Cwd, URL: w.URL,
			Tools: w.Tools, TimeoutMs: w.Timeout, Disabled: w.Off,
			LongestMs: w.Longest, Repeatable: w.Repeatable, Sandbox: w.Sandbox, IdleMs: w.Kept, Shared: w.Shared, Sampling: w.Sampling, Source: w.Source,
			OAuth: event.MCPOAuth{ClientID: w.ClientID, Document: w.Document, Port: w.Port},
		},
		Secret: Secret{Env: w.Env, Headers: w.Headers, ClientSecret: w.ClientSecret},
	}
	return s, s.complete()
}

// ParseAll reads several configurations, by name.
func ParseAll(raw json.RawMessage) ([]Server, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("want an object with a server for each name")
	}
	var list []Server
	for name, one := range all {
		s, err := Parse(name, one)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Check returns an error if a server cannot be configured like this.
func (s Server) Check() error { return s.complete() }

// complete fills in the type of a server and checks the rest.
func (s *Server) complete() error {
	switch s.Type {
	case "", "local":
		if s.Type = Stdio; s.Command == "" && s.URL != "" {
			s.Type = HTTP
		}
	case "streamable-http", "streamable_http", "streamableHttp":
		s.Type = HTTP
	}
	switch {
	case s.Name == "" || len(s.Name) > maxServerName || strings.ContainsFunc(s.Name, notPrintable) || strings.Contains(s.Name, "/"):
		return fmt.Errorf("MCP server %q: a name has 1 to %d characters that can be printed, and no slash", s.Name, maxServerName)
	case s.Type != Stdio && s.Type != HTTP && s.Type != SSE:
		return fmt.Errorf("MCP server %q: the type %q is unknown; use stdio, http or sse", s.Name, s.Type)
	case s.Type == Stdio && s.Command == "":
		return fmt.Errorf("MCP server %q: the command is missing", s.Name)
	case s.Type != Stdio && s.URL == "":
		return fmt.Errorf("MCP server %q: the url is missing", s.Name)
	case s.TimeoutMs < 0 || s.LongestMs < 0 || s.IdleMs < 0:
		return fmt.Errorf("MCP server %q: a time cannot be negative", s.Name)
	case s.Shared && s.Sampling:
		return fmt.Errorf("MCP server %q: a shared server cannot ask the model, because nothing says which session it asks for; use shared or sampling, and not both", s.Name)
	case s.OAuth.Port < 0 || s.OAuth.Port > 65535:
		return fmt.Errorf("MCP server %q: %d is no port", s.Name, s.OAuth.Port)
	case s.OAuth.Document != "" && !strings.HasPrefix(s.OAuth.Document, "https://"):
		return fmt.Errorf("MCP server %q: the address of the description of the client does not begin with https://", s.Name)
	}
	switch s.Sandbox {
	case "", SandboxNone, SandboxWorkspace, SandboxSealed:
		return nil
	}
	return fmt.Errorf("MCP server %q: the sandbox %q is unknown; use none, workspace or sealed", s.Name, s.Sandbox)
}

// maxServerName is the maximum length of the name of a server, in bytes.
const maxServerName = 128

func notPrintable(c rune) bool { return c < ' ' || c == 0x7f }

// Raw returns the configuration in the form of the protocol.
func (s Server) Raw() json.RawMessage {
	b, err := json.Marshal(wire{
		Type: s.Type, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Dir, URL: s.URL,
		Headers: s.Headers, Tools: s.Tools, Timeout: s.TimeoutMs, Off: s.Disabled,
		Longest: s.LongestMs, Repeatable: s.Repeatable, Sandbox: s.Sandbox, Kept: s.IdleMs, Shared: s.Shared, Sampling: s.Sampling, Source: s.Source,
		ClientID: s.OAuth.ClientID, ClientSecret: s.ClientSecret, Document: s.OAuth.Document, Port: s.OAuth.Port,
	})
	if err != nil { // texts and numbers
		panic(err)
	}
	return b
}

// address returns the address of a server over HTTP.
func (s Server) address() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil { // which has the url in it, and that may have a key
		return nil, errors.New("the url cannot be read: write /, ?, # and @ in its user or password as %2F, %3F, %23 and %40")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		open, _, _ := strings.Cut(s.URL, "?")
		return nil, fmt.Errorf("the url %s does not begin with http:// or https:// and a host", open[strings.LastIndexByte(open, '@')+1:])
	}
	return u, nil
}

// The sandboxes of a server.
const (
	SandboxNone      = "none"
	SandboxWorkspace = "workspace"
	SandboxSealed    = "sealed"
)
