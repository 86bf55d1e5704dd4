package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Add, list and test MCP servers",
		Long: `MCP servers bring tools to agents. They are those of [mcp.servers] in the
configuration, of .mcp.json in a project that you trust, and those that you add here.`,
		Example: "  abide mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  abide mcp add docs --url https://example.org/mcp --header 'Authorization=Bearer ${TOKEN}'\n  abide mcp test files",
		Args:    arguments(0, 0, "a command: add, list, test, login, logout, logs or remove"),
	}
	c.AddCommand(a.mcpAddCommand(), a.mcpListCommand(), a.mcpTestCommand(), a.mcpLoginCommand(), a.mcpLogoutCommand(), a.mcpLogsCommand(), a.mcpRemoveCommand())
	return c
}

func (a *app) mcpAddCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "add NAME [flags] [-- COMMAND ARG...]",
		Short: "Add an MCP server",
		Long: `Add an MCP server to those that your sessions have: a program, or an address with
--url. ${NAME} in an argument, a variable or a header is replaced by the environment
variable of that name when the server is started, and ${NAME:-VALUE} by VALUE if it is
empty, so that no secret need be stored.`,
		Example: "  abide mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  abide mcp add docs --url https://example.org/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'",
		Args:    arguments(1, 1000, "a NAME, and a COMMAND or --url"),
	}
	flags := c.Flags()
	address := flags.String("url", "", "address `URL` of a server over HTTP")
	kind := flags.String("type", "", "stdio, http or sse (default: stdio for a command, http for a URL)")
	env := flags.StringArray("env", nil, "environment variable `NAME=VALUE` of the program")
	headers := flags.StringArray("header", nil, "header `NAME=VALUE` of every request")
	cwd := flags.String("cwd", "", "working directory `DIR` of the program (default: that of the session)")
	tools := flags.StringSlice("tools", nil, "names of the only `TOOLS` to offer (default: all)")
	confined := flags.String("sandbox", "", "none, workspace or sealed (default: none)")
	sampling := flags.Bool("sampling", false, "let the server ask the model of the session; you are asked each time")
	clientID := flags.String("oauth-client-id", "", "`ID` of the client that you have registered for logins (default: one is registered)")
	clientSecret := flags.String("oauth-client-secret", "", "`SECRET` of that client; better ${NAME}")
	document := flags.String("oauth-client-metadata", "", "`URL` of the description of the client for logins")
	port := flags.Int("oauth-callback-port", 0, "`PORT` on which the answer to a login is taken (default: any)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		s := mcp.Server{MCPServer: event.MCPServer{Name: args[0], Type: *kind, URL: *address, Tools: *tools, Sandbox: *confined, Sampling: *sampling}}
		s.OAuth, s.ClientSecret = event.MCPOAuth{ClientID: *clientID, Document: *document, Port: *port}, *clientSecret
		if *cwd != "" {
			dir, err := filepath.Abs(*cwd)
			if err != nil {
				return configError(err)
			}
			s.Dir = dir
		}
		if len(args) > 1 {
			s.Command, s.Args = args[1], args[2:]
		}
		if s.Command != "" && s.URL != "" {
			return usagef("--url: there is a command too; give one of them")
		}
		var err error
		if s.Env, err = assignments("--env", *env); err != nil {
			return err
		}
		if s.Headers, err = assignments("--header", *headers); err != nil {
			return err
		}
		if err := s.Check(); err != nil {
			return usagef("%w", err)
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			if err := c.AddMCPServer(cmd.Context(), api.MCPConfigParams{Name: s.Name, Config: s.Raw()}); err != nil {
				return err
			}
			a.out.printf("%s was added; try it with: abide mcp test %s\n", plain(s.Name), plain(s.Name))
			return nil
		})
	}
	return c
}

// assignments reads the values of a flag that is NAME=VALUE.
func assignments(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(list))
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("%s: %q is not NAME=VALUE", flag, text)
		}
		all[name] = value
	}
	return all, nil
}

func (a *app) mcpListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list [SESSION]",
		Short: "List MCP servers",
		Long: `List the MCP servers that a new session here has, with what was last known of them, or those
of a session with their state.`,
		Example: "  abide mcp list\n  abide mcp list 01a1dd5e-3a4c",
		Args:    arguments(0, 1, "at most one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			if len(args) == 1 {
				return a.listSessionServers(cmd.Context(), c, args[0], *asJSON)
			}
			found, err := c.DiscoverMCP(cmd.Context())
			if err != nil {
				return err
			}
			logs, err := a.mcpLogs()
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(discovered(found.Servers, logs))
			}
			t := &table{head: []string{"NAME", "TYPE", "FROM", "STATE", "LAST"}}
			for _, s := range found.Servers {
				state := "enabled"
				if !s.Enabled {
					state = "disabled"
				}
				last, _ := logs.Last(s.Name)
				t.add(plain(s.Name), s.Type, s.Source, state, plain(lastState(s.Name, last)))
			}
			if len(t.rows) == 0 {
				a.err.printf("there are no MCP servers; add one with: abide mcp add\n")
				return nil
			}
			return a.print(t)
		})
	}
	return c
}

// mcpLogs returns the logs of MCP servers.
func (a *app) mcpLogs() (*mcp.Logs, error) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	return mcp.OpenLogs(filepath.Join(dir, "mcp-logs")), err
}

// A knownServer is an MCP server that a new session has, with what was last known of it.
type knownServer struct {
	api.MCPDiscovered
	Last *mcp.LastState `json:"last,omitempty"` // nil if it never ran
}

func discovered(servers []api.MCPDiscovered, logs *mcp.Logs) []knownServer {
	list := []knownServer{}
	for _, s := range servers {
		known := knownServer{MCPDiscovered: s}
		if last, ok := logs.Last(s.Name); ok {
			known.Last = &last
		}
		list = append(list, known)
	}
	return list
}

// lastState says what was last known of a server.
func lastState(name string, s mcp.LastState) string {
	switch {
	case s.Status == mcp.NeedsAuth:
		return "wants a login: abide mcp login " + name
	case s.Error != "":
		return fmt.Sprintf("%s: %s; see abide mcp logs %s", s.Status, s.Error, name)
	}
	return string(s.Status)
}

// listSessionServers lists the servers of a session. They are connected if they are not yet.
func (a *app) listSessionServers(ctx context.Context, c *client.Client, name string, asJSON bool) error {
	info, err := find(ctx, c, name)
	if err != nil {
		return err
	}
	list, err := awaitServers(ctx, c, info.SessionID)
	if err != nil {
		return err
	}
	if asJSON {
		return a.out.json(list)
	}
	t := &table{head: []string{"NAME", "TYPE", "STATE", "ERROR"}}
	for _, s := range list {
		t.add(plain(s.Name), s.Transport, s.Status, plain(s.Error))
	}
	if len(t.rows) == 0 {
		a.err.printf("the session has no MCP servers\n")
		return nil
	}
	return a.print(t)
}

// The pause between two looks at servers that are being connected.
const serverPause = 100 * time.Millisecond

// awaitServers returns the servers of a session when every one was tried.
func awaitServers(ctx context.Context, c *client.Client, id event.SessionID) ([]event.MCPServerState, error) {
	for {
		result, err := c.MCPServers(ctx, id)
		if err != nil {
			return nil, err
		}
		if result.Host == nil || len(result.Host.PendingConnections) == 0 {
			return result.Servers, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(serverPause):
		}
	}
}

func (a *app) mcpTestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to an MCP server and list its tools",
		Long: `Start an MCP server as a session in this directory would, list its tools, and end
it. The exit code is 1 if it does not work.`,
		Example: "  abide mcp test files",
		Args:    arguments(1, 1, "one NAME"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error { return a.testServer(cmd.Context(), c, args[0]) })
	}
	return c
}

// testServer connects to a server in a session of its own, which is deleted afterwards.
func (a *app) testServer(ctx context.Context, c *client.Client, name string) (err error) {
	opened, err := c.Create(ctx, api.OpenParams{})
	if err != nil {
		return err
	}
	defer func() {
		if _, failed := c.Delete(context.WithoutCancel(ctx), opened.SessionID); err == nil {
			err = failed
		}
	}()
	list, err := awaitServers(ctx, c, opened.SessionID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(s event.MCPServerState) bool { return s.Name == name && s.Status == string(mcp.Connected) }) {
		if err := c.StartMCPServer(ctx, opened.SessionID, name); err != nil { // its tools may be known without it
			return err
		}
		if list, err = awaitServers(ctx, c, opened.SessionID); err != nil {
			return err
		}
	}
	for _, s := range list {
		if s.Name != name {
			continue
		}
		if s.Status != string(mcp.Connected) {
			return fmt.Errorf("the MCP server %s does not work (%s): %s; see: abide mcp logs %s", plain(name), s.Status, plain(s.Error), plain(name))
		}
		tools, err := c.MCPTools(ctx, opened.SessionID, name)
		if err != nil {
			return err
		}
		t := &table{head: []string{"TOOL", "DESCRIPTION"}}
		for _, v := range tools.Tools {
			t.add(plain(v.Name), firstLine(v.Description))
		}
		a.err.printf("%s works; tools: %d\n", plain(name), len(tools.Tools))
		return a.print(t)
	}
	return usagef("there is no MCP server %s here; list them with: abide mcp list", plain(name))
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return plain(line)
}

func (a *app) mcpLogsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of an MCP server",
		Long: `Print what an MCP server has written to standard error and told as log messages, in all
sessions, each line with its time and session.`,
		Example: "  abide mcp logs files",
		Args:    arguments(1, 1, "one NAME"),
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		logs, err := a.mcpLogs()
		if err != nil {
			return err
		}
		var text strings.Builder
		if err := logs.Read(args[0], &text); err != nil {
			return usagef("%w", err)
		}
		for line := range strings.Lines(text.String()) {
			a.out.printf("%s\n", plain(strings.TrimSuffix(line, "\n")))
		}
		return nil
	}
	return c
}

func (a *app) mcpRemoveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an MCP server",
		Long: `Remove an MCP server that was added with "abide mcp add". Sessions that have it keep it
until they are resumed.`,
		Example: "  abide mcp remove files",
		Args:    arguments(1, 1, "one NAME"),
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			if err := c.RemoveMCPServer(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.out.printf("%s was removed\n", plain(args[0]))
			return nil
		})
	}
	return c
}

// examineMCP checks what was last known of the servers that the user has configured or added.
// None is started.
func (a *app) examineMCP(c config.Config, add note) {
	dir, err := dataFolder(a.home, "ABIDE_HOME")
	if err != nil {
		return // it was reported
	}
	all, err := mcp.OpenStore(filepath.Join(dir, "mcp.json")).All()
	if err != nil {
		add("MCP servers", bad, "%v", err)
	}
	names := slices.Sorted(maps.Keys(all))
	for name := range c.MCP.Servers {
		if _, added := all[name]; !added {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	logs := mcp.OpenLogs(filepath.Join(dir, "mcp-logs"))
	for _, name := range names {
		last, ok := logs.Last(name)
		switch {
		case !ok:
			add("MCP server", good, "%s: it has not run yet; try it with: abide mcp test %s", name, name)
		case last.Status == mcp.Connected:
			add("MCP server", good, "%s: connected on %s", name, last.Time.Local().Format(time.DateTime))
		default:
			add("MCP server", doubt, "%s: %s", name, lastState(name, last))
		}
	}
}

// asksSampling reports whether the question is whether an MCP server may ask the model.
func (q question) asksSampling() bool { return q.Form != nil && q.Form.Sampling }

// samplingAlways is the answer that lets the server ask the model for the rest of the session.
const samplingAlways = "always"

// mcpDefaults returns the MCP servers of the configuration and of the project, in the form
// of the protocol; nil if there are none.
func (a *app) mcpDefaults(c config.Config) (json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	project, err := a.projectServers()
	if err != nil {
		return nil, err
	}
	for _, s := range project {
		s.Source = mcp.SourceProject
		all[s.Name] = s.Raw()
	}
	for name, s := range c.MCP.Servers {
		server := mcp.Server{
			MCPServer: event.MCPServer{
				Name: name, Type: s.Type, Command: s.Command, Args: s.Args, Dir: s.Cwd, URL: s.URL, Tools: s.Tools, Repeatable: s.Repeatable,
				TimeoutMs: s.Timeout.Value().Milliseconds(), LongestMs: s.MaxTime.Value().Milliseconds(), IdleMs: s.Idle.Value().Milliseconds(),
				Sandbox: s.Sandbox, Shared: s.Shared, Sampling: s.Sampling, Disabled: s.Disabled, Source: mcp.SourceUser,
				OAuth: event.MCPOAuth{ClientID: s.OAuth.ClientID, Document: s.OAuth.ClientMetadata, Port: s.OAuth.CallbackPort},
			},
			Secret: mcp.Secret{Env: s.Env, Headers: s.Headers, ClientSecret: s.OAuth.ClientSecret},
		}
		if err := server.Check(); err != nil {
			return nil, configError(fmt.Errorf("mcp.servers.%s in the configuration: %w", plain(name), err))
		}
		all[name] = server.Raw()
	}
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all)
}
