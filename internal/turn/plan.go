package turn

import (
	"cmp"
	"encoding/json"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// ExitPlanMode is the built-in tool by which the model presents a plan. It is not
// run: a call of it is an open question.
const ExitPlanMode = "exit_plan_mode"

var exitPlanSpec = tool.Spec{
	Name:        ExitPlanMode,
	Description: "Present your plan to the user and ask to carry it out. Use it when the plan is complete; until it is approved, nothing may be changed.",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"summary":{"type":"string","description":"The plan in short, as the user should read it."},` +
		`"recommendedAction":{"type":"string","enum":["exit_only","interactive","autopilot","autopilot_fleet"],"description":"How you would go on."},` +
		`"showFleet":{"type":"boolean","description":"Whether the work could be shared among several agents."}},` +
		`"required":["summary"]}`),
}

// What can be done with a plan that was approved.
const (
	actionAutopilot = "autopilot"
	actionFleet     = "autopilot_fleet"
	actionGo        = "interactive"
	actionExit      = "exit_only"
)

// Mode is the mode in which the agent works now: that of the message it works
// on, or else that of the session.
func (s *State) Mode() string {
	if s.Turn != nil && s.Turn.Mode != "" {
		return s.Turn.Mode
	}
	return cmp.Or(s.mode, event.ModeInteractive)
}

// plans reports whether the model can present a plan.
func (s *State) plans() bool { return s.Mode() == event.ModePlan && s.Declared.ExitPlan }

// blocked is the terminal record of a call that a plan must come before; nil if
// none must.
func (s *State) blocked(call *Call, ask *approval.Request) []event.Payload {
	if s.Mode() != event.ModePlan || ask.Kind != approval.Write {
		return nil
	}
	return []event.Payload{refused(s, call, event.CodeDenied,
		"`"+call.Request.Name+"` was blocked. Plan mode does not permit changes outside the session folder. Present your plan first, and make changes when it was approved.")}
}

// presentPlan asks whether a plan may be carried out.
func presentPlan(s *State, call *Call) []event.Payload {
	var args struct {
		Summary     string `json:"summary"`
		Recommended string `json:"recommendedAction"`
		Fleet       bool   `json:"showFleet"`
	}
	err := json.Unmarshal(call.Request.Arguments, &args)
	switch {
	case err != nil:
		return []event.Payload{failed(s, call, err.Error(), "Invalid input: "+err.Error())}
	case args.Summary == "":
		return []event.Payload{failed(s, call, `"summary": Required`, `Invalid input: "summary": Required`)}
	}
	actions := []string{actionAutopilot, actionGo, actionExit}
	if args.Fleet {
		actions = []string{actionAutopilot, actionFleet, actionGo, actionExit}
	}
	return []event.Payload{event.ExitPlanAskedData{
		RequestID: event.NewID(), Summary: args.Summary, Actions: actions,
		Recommended: cmp.Or(args.Recommended, actionAutopilot), ToolCallID: call.Request.ToolCallID,
	}}
}

// A PlanReply is what a person says to a plan.
type PlanReply struct {
	Approved bool   `json:"approved"`
	Action   string `json:"selectedAction,omitempty"`
	Feedback string `json:"feedback,omitempty"`
}

// plan returns what is to be recorded when a person has judged a plan.
func (a Answer) plan(s *State, c *Call) []event.Payload {
	r := *a.Plan
	done := complete(s, c)
	done.Success = true
	done.Result = &event.ToolResult{Content: planText(r)}
	record := []event.Payload{
		event.ExitPlanDoneData{RequestID: a.RequestID, Approved: r.Approved, Action: r.Action, Feedback: r.Feedback, Answer: a.digest()}, done,
	}
	if !r.Approved {
		return record
	}
	to := event.ModeInteractive
	if r.Action == actionAutopilot || r.Action == actionFleet {
		to = event.ModeAutopilot
	}
	return append(record, event.ModeChangedData{NewMode: to, PreviousMode: s.Mode()})
}

// planText is what the model reads.
func planText(r PlanReply) string {
	if !r.Approved {
		return "Plan not approved. User feedback:\n\n" + cmp.Or(r.Feedback, "User requested changes but did not provide specific feedback.") +
			"\n\nPlease update the plan based on this feedback and try again."
	}
	const approved = "Plan approved! Exited plan mode.\n\n"
	switch r.Action {
	case actionAutopilot, actionFleet:
		return approved + "You are now in autopilot mode (edits may be auto-approved). Proceed with implementing the plan."
	case actionExit:
		return approved + "You are now in interactive mode without automatic execution (wait for the user's next prompt). Wait for the user to prompt you before taking any action."
	}
	return approved + "You are now in interactive mode. Start implementing the plan now, in this same response. " +
		"Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
}
