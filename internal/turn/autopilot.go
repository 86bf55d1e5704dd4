package turn

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// TaskComplete is the built-in tool by which the model ends its work when nobody
// looks after it. It is not run: with its result the turn is over.
const TaskComplete = "task_complete"

var taskCompleteSpec = tool.Spec{
	Name:        TaskComplete,
	Description: "Say that all that was asked for is done, and end. Nobody is there to answer questions: go on by yourself until then.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"summary":{"type":"string","description":"What was done, and what came of it."}},"required":["summary"]}`),
}

// alone reports whether the model works by itself.
func (s *State) alone() bool { return s.Mode() == event.ModeAutopilot }

// completeTask records that the model's work is done.
func completeTask(s *State, call *Call) []event.Payload {
	var args struct {
		Summary string `json:"summary"`
	}
	err := json.Unmarshal(call.Request.Arguments, &args)
	switch {
	case err != nil:
		return []event.Payload{failed(s, call, err.Error(), "Invalid input: "+err.Error())}
	case args.Summary == "":
		return []event.Payload{failed(s, call, `"summary": Required`, `Invalid input: "summary": Required`)}
	}
	d := complete(s, call)
	d.Success, d.Result = true, &event.ToolResult{Content: args.Summary}
	return []event.Payload{d, event.Empty(event.TaskDone)}
}

// final reports whether the result of a call ends the turn.
func (s *State) final(c *Call, d event.ToolCompleteData) bool {
	if d.Error != nil {
		return d.Error.Code == event.CodeRejected
	}
	x, external := s.external(c.Request.Name)
	if external {
		return x.Terminal && d.Success
	}
	return c.Request.Name == TaskComplete && d.Success
}
