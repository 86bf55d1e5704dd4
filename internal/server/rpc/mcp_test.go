package rpc_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/session"
)

// webServer starts an MCP server over HTTP, and returns its address and the number of calls.
func webServer(t *testing.T) (url string, calls *int) {
	t.Helper()
	calls = new(int)
	s := sdk.NewServer(&sdk.Implementation{Name: "web", Version: "1"}, nil)
	add := func(name string, visibility ...any) {
		tool := &sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		if visibility != nil {
			tool.Meta = sdk.Meta{"ui": map[string]any{"visibility": visibility}}
		}
		s.AddTool(tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			*calls++
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + string(r.Params.Arguments)}}}, nil
		})
	}
	add("look")
	add("page", "app")
	add("think", "model")
	add("harm")
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	return web.URL, calls
}

// A client that shows a page of a server makes calls for it, each once, and rules that deny hold.
func TestAPageCallsToolsOfItsServer(t *testing.T) {
	url, calls := webServer(t)
	p := newTestServerWith(t, session.Options{MCP: &mcp.Options{}}).open(api.SessionCreate, object{
		"mcpServers": object{"web": object{"type": "http", "url": url}},
	})
	p.must(api.PermissionsConfigure, object{"sessionId": "s", "rules": object{"approved": []object{}, "denied": []object{{"kind": "mcp", "argument": "web/harm"}}}}, nil)
	call := func(origin, tool, key string) object {
		return object{"sessionId": "s", "originServerName": origin, "serverName": "web", "toolName": tool, "arguments": object{"a": 1}, "abideKey": key}
	}
	for i, tool := range []string{"look", "page"} {
		var result struct{ Content []struct{ Text string } }
		p.must(api.MCPAppsCallTool, call("web", tool, tool), &result)
		if len(result.Content) != 1 || result.Content[0].Text != tool+`{"a":1}` || *calls != i+1 {
			t.Errorf("%s: %+v after %d calls", tool, result, *calls)
		}
	}
	for name, c := range map[string]struct{ origin, tool, key, want string }{
		"of another server": {"other", "look", "", "cannot call tools"},
		"without a page":    {"", "look", "", "cannot call tools"},
		"for the model":     {"web", "think", "", "offers its pages no tool"},
		"that is not there": {"web", "nothing", "", "offers its pages no tool"},
		"that is denied":    {"web", "harm", "", "deny"},
		"made before":       {"web", "look", "look", "may have happened"},
	} {
		if fault := p.refused(api.MCPAppsCallTool, call(c.origin, c.tool, c.key)); !strings.Contains(fault.Message, c.want) {
			t.Errorf("a call %s: %v", name, fault)
		}
	}
	if *calls != 2 {
		t.Errorf("the server got %d calls", *calls)
	}
}
