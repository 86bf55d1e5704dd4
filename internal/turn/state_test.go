package turn_test

import (
	"fmt"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// TestFold: parts of the state that no step shows directly.
func TestFold(t *testing.T) {
	inPlan := event.UserMessageData{Content: "plan it", InteractionID: "x", InputID: "i", AgentMode: event.ModePlan}
	withHeaders := event.InputAcceptedData{InputID: "i", Prompt: "do it", Mode: event.ModeQueue, Headers: true}
	switched := event.SessionModelChangeData{NewModel: "n", PreviousModel: "m"}
	for _, test := range []struct {
		name string
		log  []event.Payload
		get  func(*turn.State) any
		want string
	}{
		{"a message has its own mode", []event.Payload{accepted, inPlan}, func(s *turn.State) any { return s.Mode() }, "plan"},
		{"a change of the mode ends it", []event.Payload{accepted, inPlan, event.ModeChangedData{NewMode: event.ModeAutopilot}}, func(s *turn.State) any { return s.Mode() }, "autopilot"},
		{"headers of a delivered input belong to the turn", []event.Payload{withHeaders, message}, func(s *turn.State) any { return s.Turn.Headers }, "[i]"},
		{"an input without headers", []event.Payload{accepted, message}, func(s *turn.State) any { return s.Turn.Headers }, "[]"},
		{"the model was switched", []event.Payload{switched, accepted, message, asked}, func(s *turn.State) any { return s.Context.Switched }, "true"},
		{"the new model has answered", []event.Payload{switched, accepted, message, asked, words}, func(s *turn.State) any { return s.Context.Switched }, "false"},
		{"hooks of a delivered input are forgotten", []event.Payload{accepted, hooks(event.HookPromptSubmitted), says(event.HookPromptSubmitted, `{}`), message}, func(s *turn.State) any { return len(s.Hooks.Inputs) }, "0"},
		{"usage outside of a turn is not counted", []event.Payload{event.AssistantUsageData{OutputTokens: 8}}, func(s *turn.State) any { return s.About.Totals.OutputTokens }, "0"},
		{"usage in a turn is counted", []event.Payload{accepted, message, event.AssistantUsageData{OutputTokens: 8}}, func(s *turn.State) any { return s.About.Totals.OutputTokens }, "8"},
		{"a grant outside of a turn is kept", []event.Payload{event.PermissionDoneData{Grants: []event.Grant{{Kind: "shell"}}}}, func(s *turn.State) any { return len(s.Permission.Grants) }, "1"},
		{"what a compaction tells is not the prompt", []event.Payload{event.SystemMessageData{Content: "prompt"}, event.SystemMessageData{Content: "summary", EpochID: "e"}}, func(s *turn.State) any { return s.Prompt.System }, "prompt"},
		{"an agentStop that blocks reopens the turn", []event.Payload{accepted, message, asked, words, ended, hooks(event.HookAgentStop), says(event.HookAgentStop, `{"decision":"block"}`)},
			func(s *turn.State) any {
				return fmt.Sprint(s.Turn.Step, s.Turn.Hooks.Kept, s.Turn.Repeats == turn.Repeats{}, s.Life.Last == nil)
			}, "1 true true true"},
	} {
		if got := fmt.Sprint(test.get(newWriter(t).add(start).add(test.log...).state)); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
