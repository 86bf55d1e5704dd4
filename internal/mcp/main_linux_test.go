//lint:file-ignore SA1019 The server of the tests asks for roots and the model, as servers of today do.

package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverVariable is an environment variable that makes the test program an MCP server.
const serverVariable = "ABIDE_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(engineVariable); text != "" {
		if err := runEngine(text); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	switch os.Getenv(serverVariable) {
	case "":
		os.Exit(m.Run())
	case "talkative":
		fmt.Println("Welcome to the server!")
		fmt.Fprintln(os.Stderr, "said on standard error")
		fmt.Println(`{"this is": "no message"}`)
		fmt.Println(`{"jsonrpc": "2.0", "id": `)
	case "noisy":
		for range 5000 {
			fmt.Println("noise")
		}
	case "old":
		serveOld()
		return
	case "older":
		serveOlder()
		return
	case "nosy":
		serveNosy("elicitation/create", `{"message":"which one?","requestedSchema":{"type":"object","properties":{}}}`)
		return
	case "tireless":
		serveTireless()
		return
	case "wide":
		serveWide()
		return
	case "greedy":
		serveNosy("sampling/createMessage", `{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"more"}}]}`)
		return
	case "mute":
		bufio.NewReader(os.Stdin).ReadString(0) // returns when the input is closed
		return
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot find the database")
		os.Exit(3)
	}
	if err := testServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type nothing struct{}

// sampleOrder is what the tool sample asks the model.
const sampleOrder = `{"systemPrompt":"be brief","maxTokens":1000000,"stopSequences":["STOP"],"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`

// testServer returns a server with tools for the tests.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	type echo struct {
		Text string `json:"text"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says the text."}, func(_ context.Context, _ *sdk.CallToolRequest, in echo) (*sdk.CallToolResult, any, error) {
		return say(in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env"}, func(_ context.Context, _ *sdk.CallToolRequest, in echo) (*sdk.CallToolResult, any, error) {
		dir, _ := os.Getwd()
		return say(os.Getenv(in.Text) + " in " + dir), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		os.Exit(1)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("it does not work today")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ nothing) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "pid"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		return say(fmt.Sprint(os.Getpid())), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "work"}, func(_ context.Context, _ *sdk.CallToolRequest, in work) (*sdk.CallToolResult, any, error) {
		text, err := in.do()
		return say(text), nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "child"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		c := exec.Command("sleep", "100000")
		err := c.Start()
		return say(fmt.Sprint(c.Process.Pid)), nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
		sdk.AddTool(s, &sdk.Tool{Name: "grown"}, func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, any, error) {
			return say("new"), nil, nil
		})
		return say("ok"), nil, nil
	})
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: &jsonschema.Schema{Type: "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult)
		if !ok {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Message: "which colour?", RequestedSchema: &jsonschema.Schema{
				Type: "object", Properties: map[string]*jsonschema.Schema{"colour": {Type: "string"}},
			}}}}, nil
		}
		return say(fmt.Sprint(answer.Action, " ", answer.Content["colour"])), nil
	})
	s.AddTool(&sdk.Tool{Name: "roots", InputSchema: &jsonschema.Schema{Type: "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		found, ok := r.Params.InputResponses["r"].(*sdk.ListRootsResult)
		if !ok {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"r": &sdk.ListRootsParams{}}}, nil
		}
		return say(found.Roots[0].URI), nil
	})
	s.AddTool(&sdk.Tool{Name: "sample", InputSchema: &jsonschema.Schema{Type: "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, ok := r.Params.InputResponses["m"].(*sdk.CreateMessageWithToolsResult)
		if !ok {
			var p sdk.CreateMessageParams
			if err := json.Unmarshal([]byte(sampleOrder), &p); err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"m": &p}}, nil
		}
		return say(answer.Model + " " + answer.Content[0].(*sdk.TextContent).Text + " " + answer.StopReason), nil
	})
	s.AddTool(&sdk.Tool{Name: "picture", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a dot"}, &sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "structured", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"answer": 42}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Say hello."}}}}, nil
	})
	s.AddResource(&sdk.Resource{Name: "note", URI: "test://note"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "test://note", Text: "remember"}}}, nil
	})
	return s
}

func say(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// work is a tool that counts its calls in a file, and waits in the middle.
type work struct {
	Effects string `json:"effects"` // file that gets a line for each call
	Begun   string `json:"begun"`   // FIFO that is written to when the effect is there
	Go      string `json:"go"`      // FIFO that is read before the result; none if empty
	Pad     string `json:"pad"`     // makes the call long
}

func (w work) do() (string, error) {
	f, err := os.OpenFile(w.Effects, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(f, "effect")
	if err := f.Close(); err != nil {
		return "", err
	}
	if w.Begun != "" {
		if err := os.WriteFile(w.Begun, []byte("begun"), 0); err != nil {
			return "", err
		}
	}
	if w.Go == "" {
		return "done", nil
	}
	text, err := os.ReadFile(w.Go)
	return "done " + string(text), err
}

// serveOlder serves as servers before 2026-07-28 do: it refuses a second handshake, does one
// thing at a time, and asks a person with a request of its own.
func serveOlder() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 8<<20)
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string `json:"name"`
			Arguments work   `json:"arguments"`
		} `json:"params"`
		Result struct {
			Content    map[string]any `json:"content"`
			Model      string         `json:"model"`
			StopReason string         `json:"stopReason"`
		} `json:"result"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	answer := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	said := func(id json.RawMessage, text string) {
		answer(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
	}
	greeted := false
	var asking json.RawMessage
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			fmt.Fprintln(os.Stderr, "no message:", in.Text())
			os.Exit(4)
		}
		switch {
		case m.Method == "initialize":
			if greeted {
				os.Exit(5)
			}
			greeted = true
			answer(m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"older","version":"1"}}`)
		case m.Method == "tools/list":
			answer(m.ID, `{"tools":[{"name":"work","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"sample","inputSchema":{"type":"object"}},{"name":"pid","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call" && m.Params.Name == "pid":
			said(m.ID, fmt.Sprint(os.Getpid()))
		case m.Method == "tools/call" && m.Params.Name == "ask":
			asking = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}}`)
		case m.Method == "tools/call" && m.Params.Name == "sample":
			asking = m.ID
			fmt.Println(`{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":` + sampleOrder + `}`)
		case m.Method == "" && string(m.ID) == "8":
			if asking == nil {
				os.Exit(6) // nobody has asked, or a second answer
			}
			said(asking, cmp.Or(m.Error.Message, fmt.Sprint(m.Result.Model, " ", m.Result.Content["text"], " ", m.Result.StopReason)))
			asking = nil
		case m.Method == "tools/call" && m.Params.Name == "odd":
			answer(m.ID, `{"content":"nothing that a result has"}`)
		case m.Method == "tools/call" && m.Params.Name == "flood":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,`, m.ID)
			line := []byte(strings.Repeat("e", 1<<20-1) + "\n")
			for range 80 {
				os.Stderr.Write(line)
			}
			fmt.Println(`"result":{"content":[{"type":"text","text":"dry"}]}}`)
		case m.Method == "tools/call":
			text, err := m.Params.Arguments.do()
			said(m.ID, fmt.Sprint(text, err))
		case m.Method == "" && string(m.ID) == "7":
			if asking == nil {
				os.Exit(6) // nobody has asked, or a second answer
			}
			said(asking, fmt.Sprint(m.Result.Content["colour"]))
			asking = nil
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", m.ID)
		}
	}
}

// serveOld serves like an old server that ignores what it does not know.
func serveOld() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"old-tool","inputSchema":{"type":"object"}}]}`
		}
		if result != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
}

// serveNosy serves like a server before 2026-07-28 that asks 24 questions at once for a call, and
// answers it when 8 were refused.
func serveNosy(method, params string) {
	var call json.RawMessage
	refused := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"nosy","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"pester","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			call = m.ID
			for i := range 24 {
				fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", 100+i, method, params)
			}
		case "":
			if m.Error != nil {
				refused++
			}
			if refused == 8 && call != nil {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"refused %d"}]}}`+"\n", call, refused)
				call = nil
			}
		}
		if result != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
}

// serveTireless serves like a server that puts one question after the other for a call until one
// is refused, and answers the call with the number of the others.
func serveTireless() {
	var call json.RawMessage
	asked := 0
	ask := func() {
		fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"which one?","requestedSchema":{"type":"object","properties":{}}}}`+"\n", 100+asked)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		result := ""
		switch {
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tireless","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"pester","inputSchema":{"type":"object"}}]}`
		case m.Method == "tools/call":
			call, asked = m.ID, 0 // the ids of the questions are the same for each call
			ask()
		case m.Method == "" && m.Error == nil:
			asked++
			ask()
		case m.Method == "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%d"}]}}`+"\n", call, asked)
		}
		if result != "" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
}

// serveWide serves a tool with a schema of 1 MB, and then 400 of 60 kB.
func serveWide() {
	s := sdk.NewServer(&sdk.Implementation{Name: "wide", Version: "1"}, &sdk.ServerOptions{PageSize: 50})
	for i := range 401 {
		size := 60_000
		if i == 0 {
			size = 1_000_000
		}
		s.AddTool(&sdk.Tool{
			Name: fmt.Sprintf("tool%03d", i), InputSchema: &jsonschema.Schema{Type: "object", Description: strings.Repeat("d", size)}, OutputSchema: &jsonschema.Schema{Type: "object"},
		}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return say("well"), nil })
	}
	_ = s.Run(context.Background(), &sdk.StdioTransport{}) // it ends with its input
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("it never came: %s", what)
		}
	}
}

func hasTool(s State, name string) bool {
	for _, t := range s.Tools {
		if strings.EqualFold(t.Name, name) {
			return true
		}
	}
	return false
}

// readSample reads what a server asks the model.
func readSample(t *testing.T, text string) *sdk.CreateMessageWithToolsParams {
	t.Helper()
	var p sdk.CreateMessageWithToolsParams
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
