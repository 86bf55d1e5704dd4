package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// The measurements of MCP servers.
const (
	mcpName      = "mcp: servers over stdio"
	mcpServers   = 20  // number of servers of a session
	mcpTools     = 50  // number of tools of a server
	mcpSessions  = 15  // number of sessions that are begun, with servers and without
	mcpCalls     = 100 // number of calls
	mcpMarkerEnv = "ABIDE_BENCH_MCP"
)

// mcpProcess makes this program an MCP server, if the environment says so.
func mcpProcess() {
	if os.Getenv(mcpMarkerEnv) == "" {
		return
	}
	type arguments struct {
		Path  string   `json:"path" jsonschema:"the path of what is looked at, which starts at the working directory"`
		Names []string `json:"names,omitempty" jsonschema:"the names of the only things that are wanted"`
		Depth int      `json:"depth,omitempty" jsonschema:"how deep the search goes, and all if it is zero"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	for i := range mcpTools {
		about := fmt.Sprintf("Does thing number %d, as well as it can be done, and says what came of it. %s", i, strings.Repeat("There is more to say. ", 8))
		sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprintf("tool_%02d", i), Description: about}, func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
		})
	}
	_ = s.Run(context.Background(), &sdk.StdioTransport{}) // it ends with its input
	os.Exit(0)
}

// measureMCP measures what MCP servers cost the built program.
func measureMCP(at place, only, abide string) (err error) {
	defer stopping(&err)
	if abide == "" || !strings.Contains(mcpName, only) {
		return nil
	}
	dir := got(os.MkdirTemp(at.dir, "mcp-"))
	home := filepath.Join(dir, "home")
	must(os.MkdirAll(home, 0o700))
	must(os.WriteFile(filepath.Join(home, "config.toml"), []byte("[permissions]\nallow = [\"mcp(one/*)\"]\n"), 0o600))
	p := got(binary{abide, dir}.start("home"))
	defer p.stop()
	c := dialMCP(p.port)
	defer c.Close()
	defer func() { // servers outlive an engine that is killed
		c.Close()
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
		for begin := time.Now(); len(benchServers()) > 0 && time.Since(begin) < 10*time.Second; {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	fmt.Printf("\n%s: %d servers with %d tools each\n", mcpName, mcpServers, mcpTools)
	all, one := mcpConfiguration(mcpServers), mcpConfiguration(1)
	c.starts(all)
	c.memory(p, all)
	c.calls(one)
	return nil
}

// mcpConfiguration returns the configuration of some servers, which are this program.
func mcpConfiguration(n int) json.RawMessage {
	self := got(os.Executable())
	all := make(map[string]any)
	for i := range n {
		name := fmt.Sprintf("s%02d", i)
		if n == 1 {
			name = "one"
		}
		all[name] = map[string]any{"command": self, "args": []string{name}, "env": map[string]string{mcpMarkerEnv: "1"}}
	}
	return got(json.Marshal(all))
}

// An mcpCaller is a client that notes when events come.
type mcpCaller struct {
	*jsonrpc.Conn
	n      int
	events chan timedEvent
}

type timedEvent struct {
	kind event.Type
	at   time.Time
}

func dialMCP(port string) *mcpCaller {
	c := &mcpCaller{events: make(chan timedEvent, 1000)}
	c.Conn = jsonrpc.New(got(net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))), jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle)})
	go c.Run(context.Background()) // ends with the connection
	c.must(api.Connect, api.ConnectParams{Token: token}, nil)
	return c
}

func (c *mcpCaller) must(method string, params, result any) {
	must(c.Call(context.Background(), method, params, result))
}

func (c *mcpCaller) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	now := time.Now()
	for _, kind := range []event.Type{event.ToolStart, event.ToolComplete, event.SessionIdle} {
		if req.Method == api.SessionEvent && bytes.Contains(req.Params, []byte(`"type":"`+string(kind)+`"`)) {
			c.events <- timedEvent{kind, now}
		}
	}
	return nil, nil
}

// await waits for an event.
func (c *mcpCaller) await(kind event.Type) time.Time {
	for e := range c.events {
		if e.kind == kind {
			return e.at
		}
	}
	panic("unreachable")
}

// session opens a session, and returns how long that took, and the first turn.
func (c *mcpCaller) session(servers json.RawMessage) (id event.SessionID, create, turn time.Duration) {
	c.n++
	id = event.SessionID(fmt.Sprintf("mcp-%d", c.n))
	begin := time.Now()
	c.must(api.SessionCreate, api.OpenParams{SessionID: id, RequestPermission: true, OpenMore: api.OpenMore{MCPServers: servers}}, nil)
	created := time.Now()
	c.must(api.SessionSend, api.SendParams{SessionID: id, Prompt: "Reply with exactly: " + answer}, nil)
	return id, created.Sub(begin), c.await(event.SessionIdle).Sub(created)
}

// starts measures the beginning of sessions: the first one with servers of which nothing is
// known, and then with and without servers by turns.
func (c *mcpCaller) starts(servers json.RawMessage) {
	_, create, turn := c.session(servers)
	fmt.Printf("first session, nothing is known of the servers: create %v, first turn %v\n", create.Round(time.Microsecond), turn.Round(time.Millisecond))
	var with, without, turnWith, turnWithout []time.Duration
	for range mcpSessions {
		_, create, turn := c.session(servers)
		with, turnWith = append(with, create), append(turnWith, turn)
		_, create, turn = c.session(nil)
		without, turnWithout = append(without, create), append(turnWithout, turn)
	}
	t := compare.NewTable(os.Stdout, "start of a session, middle", "with ms", "without ms", "difference ms")
	t.Row("create", ms(with), ms(without), fmt.Sprintf("%.2f", (median(with)-median(without)).Seconds()*1e3))
	t.Row("first turn", ms(turnWith), ms(turnWithout), fmt.Sprintf("%.2f", (median(turnWith)-median(turnWithout)).Seconds()*1e3))
	t.Print()
}

// memory measures the memory of servers that run and have nothing to do.
func (c *mcpCaller) memory(p *child, servers json.RawMessage) {
	id, _, _ := c.session(servers)
	before, keepersBefore, _ := c.sum(p)
	for i := range mcpServers {
		c.must(api.MCPStartServer, api.MCPServerParams{SessionID: id, ServerName: fmt.Sprintf("s%02d", i)}, nil)
	}
	for {
		var list api.MCPListResult
		c.must(api.MCPList, api.SessionParams{SessionID: id}, &list)
		if list.Host != nil && len(list.Host.Clients) == mcpServers {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	after, keepers, own := c.sum(p)
	fmt.Printf("memory of each of %d idle servers: %.2f MiB of the engine, %.2f MiB of its keeper, beside %.2f MiB of its own\n", mcpServers,
		float64(after-before)/mcpServers/(1<<20), float64(keepers-keepersBefore)/mcpServers/(1<<20), float64(own)/mcpServers/(1<<20))
}

// sum returns the proportional memory of the engine, of all keepers and of all servers.
func (c *mcpCaller) sum(p *child) (engine, keepers, servers int64) {
	engine = got(p.memory())
	self := got(os.Executable())
	all := got(filepath.Glob("/proc/[0-9]*"))
	for _, proc := range all {
		line, _ := os.ReadFile(proc + "/cmdline") // it may have ended
		env, _ := os.ReadFile(proc + "/environ")  // the same
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(proc), "%d", &pid); err != nil || pid == os.Getpid() {
			continue
		}
		pss, err := memory(pid, "smaps_rollup", "Pss")
		switch {
		case err != nil:
		case bytes.HasPrefix(line, []byte("abide-keeper\x00")) && got(parent(pid)) != 0 && keeps(proc, p):
			keepers += pss
		case bytes.HasPrefix(line, []byte(self)) && bytes.Contains(env, []byte(mcpMarkerEnv)):
			servers += pss
		}
	}
	return engine, keepers, servers
}

// benchServers returns the processes of the servers, which are this program.
func benchServers() (pids []string) {
	self := got(os.Executable())
	for _, proc := range got(filepath.Glob("/proc/[0-9]*")) {
		line, _ := os.ReadFile(proc + "/cmdline") // it may have ended
		env, _ := os.ReadFile(proc + "/environ")  // the same
		if bytes.HasPrefix(line, []byte(self)) && bytes.Contains(env, []byte(mcpMarkerEnv+"=")) {
			pids = append(pids, proc)
		}
	}
	return pids
}

// keeps reports whether a keeper belongs to the engine: it has a file of its data folder open.
func keeps(proc string, p *child) bool {
	home := ""
	for _, v := range p.cmd.Env {
		if at, ok := strings.CutPrefix(v, "ABIDE_HOME="); ok {
			home = at
		}
	}
	open, _ := filepath.Glob(proc + "/fd/*") // the pattern is valid
	return slices.ContainsFunc(open, func(fd string) bool {
		to, _ := os.Readlink(fd) // it may be closed by now
		return strings.HasPrefix(to, home+"/")
	})
}

// calls measures calls, from the moment when their start is stored until their result is, beside
// the same calls through the SDK alone.
func (c *mcpCaller) calls(servers json.RawMessage) {
	id, _, _ := c.session(servers)
	var ours, bare []time.Duration
	ctx := context.Background()
	cmd := exec.Command(got(os.Executable()))
	cmd.Env = append(os.Environ(), mcpMarkerEnv+"=1")
	conn := got(sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil))
	defer conn.Close()
	for i := range mcpCalls + 5 {
		c.must(api.SessionSend, api.SendParams{SessionID: id, Prompt: `Use one-tool_01 with {"path":"a"}`}, nil)
		begin := c.await(event.ToolStart)
		end := c.await(event.ToolComplete)
		c.await(event.SessionIdle)
		called := time.Now()
		got(conn.CallTool(ctx, &sdk.CallToolParams{Name: "tool_01", Arguments: map[string]any{"path": "a"}}))
		if took := time.Since(called); i >= 5 { // the first ones start the server
			ours, bare = append(ours, end.Sub(begin)), append(bare, took)
		}
	}
	t := compare.NewTable(os.Stdout, "call, from start stored to result stored", "ours ms", "bare ms", "more ms (5)")
	t.Row("middle", ms(ours), ms(bare), fmt.Sprintf("%.2f", (median(ours)-median(bare)).Seconds()*1e3)) // ours and bare are sorted then
	last := len(ours) * 95 / 100
	t.Row("95 of 100", ms(ours[last:last+1]), ms(bare[last:last+1]), fmt.Sprintf("%.2f", (ours[last]-bare[last]).Seconds()*1e3))
	t.Print()
}
