package sdk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

// adapterFor names the variable with the path of abide, if this program is to be the
// client of the suite of the MCP project.
const adapterFor = "ABIDE_MCP_ADAPTER"

// An adapter is a person who uses abide with one MCP server: they add it, let the model call
// its tools, answer its questions, and log in with a browser.
type adapter struct {
	abide, home string
	env         []string
	ctx         context.Context
	session     string // the session that has begun; empty at first
}

// suiteServer is the name of the server.
const suiteServer = "suite"

// adapt plays a scenario of the suite with the server at an address. The suite sees what
// was sent, and decides whether that was right.
func adapt(abide, address string) error {
	home, err := os.MkdirTemp("", "abide-mcp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	a := &adapter{abide: abide, home: home, ctx: ctx}
	a.env = []string{"ABIDE_HOME=" + home, "COPILOT_HOME=" + home, "HOME=" + home, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	rules := "[permissions]\nallow = [\"mcp(" + suiteServer + "/*)\"]\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(rules), 0o600); err != nil {
		return err
	}
	engine, err := a.serve()
	if err != nil {
		return err
	}
	defer engine()
	var about struct {
		ClientID     string     `json:"client_id"`
		ClientSecret string     `json:"client_secret"`
		ToolCalls    []toolCall `json:"toolCalls"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &about); err != nil {
			return err
		}
	}
	args := []string{"mcp", "add", suiteServer, "--url", address, "--oauth-client-metadata", "https://conformance-test.local/client-metadata.json"}
	if about.ClientID != "" {
		args = append(args, "--oauth-client-id", about.ClientID)
	}
	if about.ClientSecret != "" {
		args = append(args, "--oauth-client-secret", about.ClientSecret)
	}
	if _, err := a.run(args...); err != nil {
		return err
	}
	return a.play(os.Getenv("MCP_CONFORMANCE_SCENARIO"), about.ToolCalls)
}

// A toolCall is a call that the suite asks for.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (a *adapter) play(scenario string, calls []toolCall) error {
	switch scenario {
	case "tools_call":
		return a.call("add_numbers", `{"a":5,"b":3}`)
	case "sse-retry":
		return a.call("test_reconnection", "{}")
	case "elicitation-sep1034-client-defaults":
		return a.withProgram(func(c *client.Client) error { return a.fillIn(c, "test_client_elicitation_defaults") })
	case "sep-2322-client-request-state":
		return errors.Join(a.call("test_mrtr_echo_state", "{}"), a.call("test_mrtr_no_state", "{}"), a.call("test_mrtr_unrelated", "{}"), a.call("test_mrtr_no_result_type", "{}"))
	case "http-custom-headers":
		for _, c := range calls {
			if err := a.call(c.Name, string(c.Arguments)); err != nil {
				return err
			}
		}
		return nil
	case "http-invalid-tool-headers":
		return a.callAll(`{"region":"us-west1"}`)
	case "json-schema-2020-12-preservation":
		return a.echoSchema()
	case "http-standard-headers":
		return a.useAll()
	}
	if strings.HasPrefix(scenario, "auth/") {
		return a.logInAndCall()
	}
	_, err := a.prompt("Reply with exactly: OK")
	return err
}

// logInAndCall lets the model call a tool, and logs in as often as the server wants.
func (a *adapter) logInAndCall() error {
	const tool = "test-tool"
	var answer string
	for range 3 {
		err := a.logIn()
		if err != nil {
			err = a.logIn() // as people do who are told that it did not work
		}
		if err != nil {
			return err
		}
		if answer, err = a.use(tool, "{}"); err != nil {
			return err
		}
		offered, err := a.offered()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(offered, func(t event.MCPTool) bool { return t.Tool == tool }) && !strings.Contains(answer, "wants a login") {
			return nil
		}
	}
	return fmt.Errorf("it still wants a login: %s", answer)
}

// logIn logs in as a person whose browser is on another machine.
func (a *adapter) logIn() error {
	cmd := a.command("mcp", "login", suiteServer)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return err
	}
	shown, _ := io.ReadAll(io.LimitReader(oneLine{out}, 1<<20))
	if at := strings.TrimSpace(string(shown)); at != "" {
		sent, err := browse(a.ctx, at)
		if err != nil {
			sent = at // the person pastes something else
		}
		fmt.Fprintln(in, sent)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("abide mcp login: %w: %s", err, &said)
	}
	return nil
}

// oneLine reads up to the end of a line.
type oneLine struct{ io.Reader }

func (r oneLine) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:1])
	if n == 1 && b[0] == '\n' {
		return 0, io.EOF
	}
	return n, err
}

// browse opens an address, and returns the one to which the browser is sent.
func browse(ctx context.Context, at string) (string, error) {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(q)
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	to := answer.Header.Get("Location")
	if to == "" {
		return "", fmt.Errorf("the page answers with status %d", answer.StatusCode)
	}
	return to, nil
}

// call lets the model call a tool of the server. A tool that fails is the server's matter.
func (a *adapter) call(tool, args string) error {
	_, err := a.use(tool, args)
	return err
}

// use lets the model call a tool of the server, answers the questions that the server has,
// and returns the last answer of the model.
func (a *adapter) use(tool, args string) (string, error) {
	name := suiteServer + "-" + tool
	offered, err := a.offered()
	if err != nil {
		return "", err
	}
	for _, t := range offered {
		if t.Tool == tool {
			name = t.Name
		}
	}
	return a.prompt("Use " + name + " with " + args)
}

// prompt sends a prompt, and returns the answer.
func (a *adapter) prompt(text string) (string, error) {
	args := []string{"run", "--json", text}
	if a.session != "" {
		args = []string{"run", "--json", "--resume", a.session, text}
	}
	out, err := a.run(args...)
	for range 5 {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 5 { // 5: a question is open
			break
		}
		if out, err = a.answer(); err != nil && exit == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	var result struct {
		Session string `json:"session_id"`
		Result  string `json:"result"`
	}
	if json.Unmarshal([]byte(out), &result) == nil {
		a.session = cmp.Or(result.Session, a.session)
		return result.Result, nil
	}
	return out, nil
}

// answer answers the open question: what can be confirmed is, and everything else is left to
// its default.
func (a *adapter) answer() (string, error) {
	out, err := a.run("questions", "--json")
	if err != nil {
		return "", err
	}
	var open []struct {
		Session string `json:"session_id"`
		Request string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(out), &open); err != nil || len(open) == 0 {
		return "", fmt.Errorf("there is no question: %s", out)
	}
	a.session = open[0].Session
	content := "{}"
	if strings.Contains(out, `"confirmed"`) {
		content = `{"confirmed":true}`
	}
	return a.run("answer", "--json", open[0].Session, open[0].Request, content)
}

// offered returns the tools that the model is offered.
func (a *adapter) offered() ([]event.MCPTool, error) {
	if a.session == "" {
		if _, err := a.prompt("Reply with exactly: OK"); err != nil {
			return nil, err
		}
	}
	out, err := a.run("sessions", "export", a.session)
	if err != nil {
		return nil, err
	}
	var last event.MCPOfferedData
	for line := range strings.Lines(out) {
		var e struct {
			Type event.Type      `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == event.MCPOffered {
			if err := json.Unmarshal(e.Data, &last); err != nil {
				return nil, err
			}
		}
	}
	return last.Tools, nil
}

// callAll calls every tool that is offered.
func (a *adapter) callAll(args string) error {
	tools, err := a.offered()
	for _, t := range tools {
		err = errors.Join(err, a.call(t.Tool, args))
	}
	return err
}

// echoSchema sends the parameters of a tool back as the model is shown them.
func (a *adapter) echoSchema() error {
	tools, err := a.offered()
	if err != nil {
		return err
	}
	for _, t := range tools {
		if t.Tool == "json_schema_2020_12_tool" {
			return a.call("json_schema_echo", `{"schema":`+string(t.Parameters)+`}`)
		}
	}
	return errors.New("the tool is not offered")
}

// useAll uses a tool, a resource and a prompt of the server.
func (a *adapter) useAll() error {
	tools, err := a.offered()
	if err != nil || len(tools) == 0 {
		return cmp.Or(err, errors.New("no tool is offered"))
	}
	if err := a.call(tools[0].Tool, "{}"); err != nil {
		return err
	}
	return a.withProgram(a.readAll)
}

// withProgram calls f with a client of the protocol.
func (a *adapter) withProgram(f func(*client.Client) error) error {
	cmd := a.command("--headless", "--stdio")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c := client.New(pipes{out, in}, client.Options{})
	if _, err = c.Connect(a.ctx, ""); err == nil {
		err = f(c)
	}
	c.Close()
	in.Close()
	return errors.Join(err, cmd.Wait())
}

// fillIn calls a tool that asks a person something, and fills in the form.
func (a *adapter) fillIn(c *client.Client, tool string) error {
	opened, err := c.Create(a.ctx, api.OpenParams{RequestElicitation: true, RequestPermission: true, OpenMore: api.OpenMore{Discover: true}})
	if err != nil {
		return err
	}
	a.session = string(opened.SessionID)
	if _, err := c.Send(a.ctx, api.SendParams{SessionID: opened.SessionID, Prompt: "Use " + suiteServer + "-" + tool + " with {}"}); err != nil {
		return err
	}
	for a.ctx.Err() == nil {
		out, err := a.run("questions", "--json")
		if err != nil {
			return err
		}
		if strings.Contains(out, a.session) {
			_, err := a.answer()
			return err
		}
	}
	return a.ctx.Err()
}

// readAll reads the first resource and the first prompt, as a client of the protocol.
func (a *adapter) readAll(c *client.Client) error {
	opened, err := c.Create(a.ctx, api.OpenParams{OpenMore: api.OpenMore{Discover: true}})
	if err != nil {
		return err
	}
	raw, err := c.MCPResources(a.ctx, opened.SessionID, suiteServer)
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
	if _, err := c.ReadMCPResource(a.ctx, opened.SessionID, suiteServer, list.Resources[0].URI); err != nil {
		return err
	}
	prompts, err := c.MCPPrompts(a.ctx, opened.SessionID, suiteServer)
	if err != nil || len(prompts.Prompts) == 0 {
		return cmp.Or(err, errors.New("there are no prompts"))
	}
	var p struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(prompts.Prompts[0], &p); err != nil {
		return err
	}
	_, err = c.MCPPrompt(a.ctx, opened.SessionID, api.MCPPromptParams{ServerName: suiteServer, Name: p.Name})
	return err
}

// pipes are the two ends of a process.
type pipes struct {
	io.Reader
	io.WriteCloser
}

func (a *adapter) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(a.ctx, a.abide, args...)
	cmd.Env, cmd.Dir = a.env, a.home
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command of abide, and returns what it prints.
func (a *adapter) run(args ...string) (string, error) {
	cmd := a.command(args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("abide %s: %w: %s", strings.Join(args, " "), err, &said)
	}
	return out.String(), nil
}

// serve starts the engine, so that questions of servers stay open between commands. The
// returned function ends it.
func (a *adapter) serve() (func(), error) {
	cmd := a.command("serve", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	first, _ := io.ReadAll(io.LimitReader(oneLine{out}, 1<<16)) // it is ready when it says what it serves
	if len(first) == 0 {
		return nil, fmt.Errorf("abide serve did not start: %w", cmd.Wait())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(os.Stderr, out)
	}()
	return func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-drained
		_ = cmd.Wait()
	}, nil
}
