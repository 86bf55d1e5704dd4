package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

// The servers that people try first.
var npmServers = []string{
	"@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31", "@modelcontextprotocol/server-memory@2026.8.31",
}

// installServers installs the servers in a folder, or skips the test.
func installServers(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("MCP servers are not installed in short tests")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		skipOrFail(t, "npm is not installed")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", append([]string{"install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"}, npmServers...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		skipOrFail(t, fmt.Sprintf("npm cannot install %s, is the registry within reach? %v\n%s", strings.Join(npmServers, ", "), err, out))
	}
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol")
}

// newNPMUser returns a person who has the servers, and whose engine runs.
func newNPMUser(t *testing.T) *adapter {
	t.Helper()
	servers := installServers(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // the engine has to end in its own way, so that its servers end with it
	t.Cleanup(cancel)
	a := &adapter{abide: abide, home: home, ctx: ctx}
	a.env = []string{"ABIDE_HOME=" + filepath.Join(home, "data"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	node := func(server string) string { return filepath.Join(servers, server, "dist", "index.js") }
	rules := fmt.Sprintf(`
[permissions]
allow = ["mcp(everything/*)", "mcp(files/*)", "mcp(memory/*)"]
[mcp.servers.everything]
command = "node"
args = [%q]
timeout = "3s"
[mcp.servers.files]
command = "node"
args = [%q, "."]
[mcp.servers.memory]
command = "node"
args = [%q]
env = { MEMORY_FILE_PATH = %q }
`, node("server-everything"), node("server-filesystem"), node("server-memory"), filepath.Join(home, "memory.jsonl"))
	if err := os.MkdirAll(filepath.Join(home, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "data", "config.toml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	engine, err := a.serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine)
	return a
}

// must returns the answer of the model to a prompt, which contains a text.
func (a *adapter) must(t *testing.T, prompt, want string) {
	t.Helper()
	got, err := a.prompt(prompt)
	if err != nil || !strings.Contains(got, want) {
		t.Errorf("%s: %q, %v; want %q", prompt, got, err, want)
	}
}

// The servers of the MCP project are used as a person uses them.
func TestServersOfTheMCPProject(t *testing.T) {
	t.Parallel()
	a := newNPMUser(t)
	if err := os.WriteFile(filepath.Join(a.home, "note.txt"), []byte("remember the milk"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.must(t, `Use everything-echo with {"message":"hello"}`, "hello")
	a.must(t, `Use files-read_text_file with {"path":"note.txt"}`, "remember the milk")
	a.must(t, `Use files-read_text_file with {"path":"/etc/passwd"}`, "denied")
	a.must(t, `Use memory-create_entities with {"entities":[{"name":"milk","entityType":"thing","observations":["white"]}]}`, "milk")
	a.must(t, `Use memory-search_nodes with {"query":"white"}`, "milk")
	a.must(t, `Use everything-trigger-long-running-operation with {"duration":5,"steps":10}`, "completed") // each step is progress
	a.must(t, `Use everything-get-roots-list with {}`, "file://"+a.home)                                   // a tool that it adds when it knows that there are roots
	if err := a.withProgram(func(c *client.Client) error { return errors.Join(a.readEverything(t, c), a.fillInName(t, c)) }); err != nil {
		t.Error(err)
	}
	if out, err := a.run("run", "--attach", "@everything:demo://resource/static/document/features.md", "Which file is attached?"); err != nil {
		t.Errorf("a resource as an attachment: %s, %v", out, err)
	}
}

// readEverything reads resources and prompts, and waits for a list that changes.
func (a *adapter) readEverything(t *testing.T, c *client.Client) error {
	const server = "everything"
	opened, err := c.Create(a.ctx, api.OpenParams{RequestPermission: true, OpenMore: api.OpenMore{Discover: true}})
	if err != nil {
		return err
	}
	id := opened.SessionID
	raw, err := c.MCPResources(a.ctx, id, server)
	if err != nil {
		return err
	}
	var list struct {
		Resources []struct {
			URI string `json:"uri"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list.Resources) == 0 {
		return fmt.Errorf("resources: %s", raw)
	}
	if _, err := c.ReadMCPResource(a.ctx, id, server, list.Resources[0].URI); err != nil {
		return err
	}
	commands, err := c.Commands(a.ctx, id)
	if err != nil {
		return err
	}
	prompts := make(map[string]api.CommandInfo)
	for _, command := range commands {
		prompts[command.Name] = command
	}
	if prompts["everything:simple-prompt"].Kind != "skill" || prompts["everything:args-prompt"].Input == nil || !prompts["everything:args-prompt"].Input.Required {
		t.Errorf("the commands: %+v", commands)
	}
	made, err := c.InvokeCommand(a.ctx, api.InvokeParams{SessionID: id, Name: "everything:args-prompt", Input: "Paris state=Texas"})
	if err != nil || made.Kind != "agent-prompt" || !strings.Contains(made.Prompt, "Paris") || !strings.Contains(made.Prompt, "Texas") {
		t.Errorf("a prompt as a command: %+v, %v", made, err)
	}
	return nil
}

// fillInName calls a tool that asks a person something, and answers from another program.
func (a *adapter) fillInName(t *testing.T, c *client.Client) error {
	opened, err := c.Create(a.ctx, api.OpenParams{RequestElicitation: true, RequestPermission: true, OpenMore: api.OpenMore{Discover: true}})
	if err != nil {
		return err
	}
	a.session = string(opened.SessionID)
	if _, err := c.Send(a.ctx, api.SendParams{SessionID: opened.SessionID, Prompt: "Use everything-trigger-elicitation-request with {}"}); err != nil {
		return err
	}
	for {
		out, err := a.run("questions", "--json")
		if err != nil {
			return err
		}
		var open []struct {
			Session string `json:"session_id"`
			Request string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(out), &open); err != nil {
			return err
		}
		for _, q := range open {
			if q.Session == a.session {
				out, err := a.run("answer", q.Session, q.Request, `{"name":"Ada Lovelace"}`)
				if !strings.Contains(out, "Ada Lovelace") {
					t.Errorf("what the server was told: %s", out)
				}
				return err
			}
		}
	}
}
