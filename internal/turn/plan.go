package turn

import (
	"cmp"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// blockedByPlan returns the terminal record of a call that may not be made in plan
// mode. It returns nil if the call may be made.
func (s *State) blockedByPlan(call *Call, ask *approval.Request) []event.Payload {
	if s.Mode() != event.ModePlan || ask.Kind != approval.Write {
		return nil
	}
	return []event.Payload{refused(s, call, event.CodeDenied,
		"`"+call.Request.Name+"` was blocked. Plan mode does not permit changes outside the session folder. Present your plan first, and make changes when it was approved.")}
}

// A PlanReply is a person's answer to a plan.
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
	if r.Action == event.PlanAutopilot || r.Action == event.PlanFleet {
		to = event.ModeAutopilot
	}
	return append(record, event.ModeChangedData{NewMode: to, PreviousMode: s.Mode()})
}

// planText returns the answer to a plan as the model reads it.
func planText(r PlanReply) string {
	if !r.Approved {
		return "Plan not approved. User feedback:\n\n" + cmp.Or(r.Feedback, "User requested changes but did not provide specific feedback.") +
			"\n\nPlease update the plan based on this feedback and try again."
	}
	const approved = "Plan approved! Exited plan mode.\n\n"
	switch r.Action {
	case event.PlanAutopilot, event.PlanFleet:
		return approved + "You are now in autopilot mode (edits may be auto-approved). Proceed with implementing the plan."
	case event.PlanExitOnly:
		return approved + "You are now in interactive mode without automatic execution (wait for the user's next prompt). Wait for the user to prompt you before taking any action."
	}
	return approved + "You are now in interactive mode. Start implementing the plan now, in this same response. " +
		"Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
}
