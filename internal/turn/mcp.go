package turn

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// MCP is the tools of the MCP servers of the session, as they were last recorded.
type MCP struct {
	Tools    []event.MCPTool
	Deferred bool            // true if the model has to search for tools
	found    map[string]bool // names of the tools that the model has found

	asking   map[string]string // servers that want to ask the model, by the ids of the questions about it
	samplers []event.Grant     // permissions for servers to ask the model for the rest of the session
}

func (m *MCP) fold(body event.Payload) {
	switch d := body.(type) {
	case event.MCPOfferedData:
		m.Tools, m.Deferred = d.Tools, d.Deferred
	case event.MCPFoundData:
		found := make(map[string]bool, len(m.found)+len(d.Names))
		for name := range m.found {
			found[name] = true
		}
		for _, name := range d.Names {
			found[name] = true
		}
		m.found = found
	case event.ElicitationAskedData:
		m.foldSampling(d)
	case event.ElicitationDoneData:
		m.foldSampled(d)
	case event.GrantsResetData:
		m.samplers = nil
	}
}

// searchMCP is the tool with which a model finds tools of MCP servers.
const searchMCP = "mcp_search"

// find returns the tool with a name for the model, or nil.
func (m *MCP) find(name string) *event.MCPTool {
	if i := slices.IndexFunc(m.Tools, func(t event.MCPTool) bool { return t.Name == name }); i >= 0 {
		return &m.Tools[i]
	}
	return nil
}

// MCPTools returns the tools of MCP servers that the model may call: all, or those that it
// has found if there are too many.
func (s *State) MCPTools() []event.MCPTool {
	if !s.MCP.Deferred {
		return s.MCP.Tools
	}
	var list []event.MCPTool
	for _, t := range s.MCP.Tools {
		if s.MCP.found[t.Name] {
			list = append(list, t)
		}
	}
	return list
}

// MCPTool returns the tool of an MCP server with a name for the model; nil if there is none.
func (s *State) MCPTool(name string) *event.MCPTool { return s.MCP.find(name) }

// DeferredMCPTools returns the tools of MCP servers among which the model has to search; nil
// if it is offered all of them.
func (s *State) DeferredMCPTools() []event.MCPTool {
	if !s.MCP.Deferred {
		return nil
	}
	return s.MCP.Tools
}

// MCPHook returns the question to the hooks about a call that an MCP server is to carry out.
// It is recorded together with its answer, so that nothing waits for it in the state: the
// call is begun already.
func MCPHook(s *State, call tool.Call, t event.MCPTool, now time.Time) event.HookStartData {
	return event.HookStartData{
		ID: event.NewID(), Kind: event.HookPreMCPToolCall, Calls: []string{call.ID},
		Input: hookInput(s, now, map[string]any{
			"serverName": t.Server, "toolName": t.Tool, "toolCallId": call.ID, "arguments": call.Arguments, "_meta": nil,
		}),
	}
}

// MetaToUse returns the metadata that the answer to the question says; nil if it says none.
func MetaToUse(end event.HookEndData) map[string]any {
	var said struct {
		Meta map[string]any `json:"metaToUse"`
	}
	_ = json.Unmarshal(end.Output, &said) // an output that cannot be read changes nothing
	return said.Meta
}

// DeniedMCP returns the rules that deny calls of a tool of an MCP server, whoever makes them.
func (s *State) DeniedMCP(server, tool string) []string {
	d := approval.Judge(s.ruleSet(), s.rules(), s.grants(), approval.MCPRequest(server, tool, nil, nil))
	if d.Verdict != approval.Deny {
		return nil
	}
	return d.Rules
}

// SamplingForm is the form with which a person lets an MCP server ask the model.
const SamplingForm = `{"type":"object","properties":{"always":{"type":"boolean","title":"Do not ask again",` +
	`"description":"Let the server ask the model for the rest of the session."}}}`

// foldSampling notes the question whether a server may ask the model.
func (m *MCP) foldSampling(d event.ElicitationAskedData) {
	if !d.Sampling {
		return
	}
	asking := maps.Clone(m.asking)
	if asking == nil {
		asking = make(map[string]string)
	}
	asking[d.RequestID] = d.Source
	m.asking = asking
}

// foldSampled notes the answer.
func (m *MCP) foldSampled(d event.ElicitationDoneData) {
	server, is := m.asking[d.RequestID]
	if !is {
		return
	}
	m.asking = maps.Clone(m.asking)
	delete(m.asking, d.RequestID)
	var said struct {
		Always bool `json:"always"`
	}
	if d.Action == Accept && json.Unmarshal(d.Content, &said) == nil && said.Always {
		m.samplers = append(slices.Clip(m.samplers), event.Grant{Kind: approval.MCPSampling, Subject: server})
	}
}

// LetsSample reports whether a server may ask the model for the rest of the session.
func (m *MCP) LetsSample() bool { return len(m.samplers) > 0 }

// Sampling returns the verdict about a request of an MCP server to ask the model.
func (s *State) Sampling(server string) approval.Decision {
	ask := approval.SamplingRequest(server)
	d := approval.Judge(s.ruleSet(), s.rules(), s.grants(), ask)
	if d.Verdict != approval.Deny && s.mustAsk(ask) {
		d.Verdict = approval.Ask
	}
	return d
}
