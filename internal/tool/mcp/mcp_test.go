package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// stateWith returns the state of a session whose servers have tools.
func stateWith(deferred bool, tools ...event.MCPTool) *turn.State {
	s := turn.New("s1")
	s.MCP.Tools, s.MCP.Deferred = tools, deferred
	return s
}

func toolNamed(server, name, says string) event.MCPTool {
	return event.MCPTool{Name: server + "-" + name, Server: server, Tool: name, Title: name, Description: says, Parameters: json.RawMessage(`{"type":"object"}`)}
}

var issues = []event.MCPTool{
	toolNamed("git", "create_issue", "Opens an issue."),
	toolNamed("git", "list_issues", "Lists issues of a repository."),
	toolNamed("git", "fork", "Copies a repository."),
	toolNamed("weather", "forecast", "Says how the weather will be, also for an issue of a newspaper."),
}

// searchFor returns the names of the tools that a search finds.
func searchFor(t *testing.T, tools []event.MCPTool, args string) []string {
	t.Helper()
	r, err := search{}.Run(t.Context(), tool.Call{Arguments: json.RawMessage(args), State: stateWith(true, tools...)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Record) == 0 {
		return nil
	}
	found := r.Record[0].(event.MCPFoundData).Names
	for _, name := range found {
		if !strings.Contains(r.Text, name) {
			t.Errorf("the result does not name %s: %s", name, r.Text)
		}
	}
	return found
}

func TestASearchFindsWhatFitsBest(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{`{"query":"create issue"}`, []string{"git-create_issue", "git-list_issues", "weather-forecast"}},
		{`{"query":"REPOSITORY"}`, []string{"git-list_issues", "git-fork"}},
		{`{"query":"issue","server":"Weather"}`, []string{"weather-forecast"}},
		{`{"query":"","server":"weather"}`, []string{"weather-forecast"}},
		{`{"query":"zebra"}`, nil},
		{`{"query":"issue","server":"nobody"}`, nil},
	} {
		if got := searchFor(t, issues, c.args); !slices.Equal(got, c.want) {
			t.Errorf("%s finds %q, want %q", c.args, got, c.want)
		}
	}
}

func TestASearchIsBounded(t *testing.T) {
	var many []event.MCPTool
	for i := range 10_000 {
		many = append(many, toolNamed("big", fmt.Sprint("tool_", i), "Does something."))
	}
	if got := searchFor(t, many, `{"query":"tool"}`); len(got) != maxFound || got[0] != "big-tool_0" {
		t.Errorf("of 10,000 tools it finds %q", got)
	}
}

func TestToolsAreOfferedOrSearchedFor(t *testing.T) {
	all := stateWith(false, issues...)
	if _, offered := (search{}).Offer(all); offered {
		t.Error("a search is offered although all tools are")
	}
	if n := len((family{}).Members(all)); n != len(issues) {
		t.Errorf("%d of %d tools are offered", n, len(issues))
	}
	few := stateWith(true, issues...)
	spec, offered := search{}.Offer(few)
	if !offered || !strings.Contains(spec.Description, `- "git" with 3 tools`) || !strings.Contains(spec.Description, `- "weather" with 1 tools`) {
		t.Errorf("the search: %v, %s", offered, spec.Description)
	}
	if n := len((family{}).Members(few)); n != 0 {
		t.Errorf("%d tools are offered before they are found", n)
	}
	if (family{}).Member(few, "git-fork") == nil { // a model that knows the name
		t.Error("a tool that was not found cannot be called")
	}
	if (family{}).Member(few, "git-spoon") != nil {
		t.Error("a tool that no server has can be called")
	}
}

// What a server says of its tools allows nothing and repeats nothing.
func TestClaimsOfServersAreForDisplay(t *testing.T) {
	claims := toolNamed("git", "push", "Safe!")
	claims.ReadOnly = true
	call := tool.Call{ID: "c1", Arguments: json.RawMessage(`{"to":"main"}`)}
	q, err := serverTool{tool: claims}.Permission(context.Background(), call)
	if err != nil || q == nil {
		t.Fatalf("nobody is asked about a tool that says that it changes nothing: %v, %v", q, err)
	}
	want := approval.MCPRequest("git", "push", nil, nil)
	if q.Kind != want.Kind || !slices.Equal(q.Subjects, want.Subjects) {
		t.Errorf("the question: %+v", q)
	}
	if replay := (serverTool{tool: claims}).Spec().Replay; replay != tool.Keyed {
		t.Errorf("its replay class is %v", replay)
	}
	claims.Repeatable = true // by the configuration
	if replay := (serverTool{tool: claims}).Spec().Replay; replay != tool.Pure {
		t.Errorf("the replay class of a tool that may be repeated is %v", replay)
	}
}

// A model that calls a tool by a name that it has read somewhere is told how to get it.
func TestAToolThatWasNotSearchedForExists(t *testing.T) {
	c, s := turn.Catalog(New(nil)), stateWith(true, issues...)
	reject := func(name string) string {
		t.Helper()
		list := c.Reject(s, &turn.Call{Request: event.ToolRequest{Name: name}})
		if len(list) != 1 {
			t.Fatalf("the call of %s: %+v", name, list)
		}
		return list[0].(event.ToolCompleteData).Error.Message
	}
	if got := reject("git-fork"); !strings.Contains(got, "mcp_search") || strings.Contains(got, "does not exist") {
		t.Errorf("a tool that has to be found first: %s", got)
	}
	if got := reject("git-spoon"); !strings.Contains(got, "does not exist") {
		t.Errorf("a tool that no server has: %s", got)
	}
}
