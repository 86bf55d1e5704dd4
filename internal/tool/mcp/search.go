package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

// maxFound is how many tools a search finds.
const maxFound = 10

// search is the tool mcp_search. A search depends on the state alone, and what it has found
// is offered from the next request on.
type search struct{}

func (search) Spec() tool.Spec { return searchSpec(nil) }

// Offer offers the tool in sessions that have too many tools of MCP servers.
func (search) Offer(s tool.State) (tool.Spec, bool) {
	h, ok := s.(holder)
	if !ok || len(h.DeferredMCPTools()) == 0 {
		return tool.Spec{}, false
	}
	return searchSpec(h.DeferredMCPTools()), true
}

func searchSpec(list []event.MCPTool) tool.Spec {
	counts := make(map[string]int)
	var servers []string
	for _, t := range list {
		if counts[t.Server]++; counts[t.Server] == 1 {
			servers = append(servers, t.Server)
		}
	}
	var text strings.Builder
	text.WriteString("Find tools of MCP servers, which can be called from your next answer on. There are too many to list them all. The servers are:")
	for _, name := range servers {
		fmt.Fprintf(&text, "\n- %q with %d tools", name, counts[name])
	}
	return tool.Spec{
		Name: "mcp_search", Description: text.String(), Replay: tool.Pure, Instant: true,
		Parameters: json.RawMessage(`{"type":"object","required":["query"],"properties":{` +
			`"query":{"type":"string","description":"Words about what the tool does, or parts of its name."},` +
			`"server":{"type":"string","description":"The only server to search in."}}}`),
	}
}

func (search) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run finds the tools that have most of the words.
func (search) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	args := argument.Read(call.Arguments)
	query := args.Needed("query")
	server, _ := args.Text("server")
	if refused, wrong := args.Refused(); wrong {
		return refused, nil
	}
	h, ok := call.State.(holder)
	if !ok {
		return tool.Fail("There are no tools of MCP servers here."), nil
	}
	found := best(h.DeferredMCPTools(), query, server)
	if len(found) == 0 {
		return tool.Result{Text: "No tool was found. Try other words."}, nil
	}
	var text strings.Builder
	text.WriteString("These tools can be called from your next answer on:")
	var record event.MCPFoundData
	for _, t := range found {
		fmt.Fprintf(&text, "\n\n%s\n%s", t.Name, t.Description)
		record.Names = append(record.Names, t.Name)
	}
	return tool.Result{Text: text.String(), Record: []event.Payload{record}}, nil
}

// best returns the tools that fit a query best.
func best(list []event.MCPTool, query, server string) []event.MCPTool {
	words := strings.FieldsFunc(strings.ToLower(query), func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c > 127)
	})
	points := make(map[string]int)
	var found []event.MCPTool
	for _, t := range list {
		if server != "" && !strings.EqualFold(t.Server, server) {
			continue
		}
		name, said := strings.ToLower(t.Name+" "+t.Title), strings.ToLower(t.Description)
		for _, w := range words {
			if strings.Contains(name, w) {
				points[t.Name] += 3
			}
			if strings.Contains(said, w) {
				points[t.Name]++
			}
		}
		if points[t.Name] > 0 || len(words) == 0 && server != "" {
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(a, b event.MCPTool) int { return cmp.Compare(points[b.Name], points[a.Name]) })
	return found[:min(len(found), maxFound)]
}
