// Package done has the tool task_complete, with which a model ends its work in autopilot
// mode. Its result ends the turn.
package done

import (
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

var spec = tool.Spec{
	Name:        "task_complete",
	Description: "Say that all that was asked for is done, and end. Nobody is there to answer questions: go on by yourself until then. Use it once, when everything is done and checked. Do not use it while something is open, fails or runs.\n\nExample: {\"summary\": \"The parser accepts comments; all tests pass.\"}",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"summary":{"type":"string","description":"What was done, and what came of it."}},"required":["summary"]}`),
	Replay: tool.Pure, Instant: true,
}

// New returns the tool.
func New() tool.Tool { return doneTool{} }

type doneTool struct{}

func (doneTool) Spec() tool.Spec { return spec }

// Offer offers the tool in autopilot mode.
func (doneTool) Offer(s tool.State) (tool.Spec, bool) {
	session, ok := s.(interface{ Mode() string })
	return spec, ok && session.Mode() == event.ModeAutopilot
}

func (doneTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run records that the work is done, which ends the turn.
func (doneTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	summary := a.Filled("summary")
	if result, refused := a.Refused(); refused {
		return result, nil
	}
	return tool.Result{Text: summary, Then: []event.Payload{event.Empty(event.TaskDone)}}, nil
}
