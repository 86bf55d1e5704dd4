// Package plan has the tool exit_plan_mode, with which a model presents its plan. A call
// is an open question, and the person's answer is its result.
package plan

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

var spec = tool.Spec{
	Name:        "exit_plan_mode",
	Description: "Present your plan to the user and ask to carry it out. Use it when the plan is complete; until it is approved, nothing may be changed. Do not use it for questions: ask those before.\n\nExample: {\"summary\": \"1. Add the field. 2. Migrate. 3. Test.\"}",
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"summary":{"type":"string","description":"The plan in short, as the user should read it."},` +
		`"recommendedAction":{"type":"string","enum":["exit_only","interactive","autopilot","autopilot_fleet"],"description":"How you would go on."},` +
		`"showFleet":{"type":"boolean","description":"Whether the work could be shared among several agents."}},` +
		`"required":["summary"]}`),
	Replay: tool.Pure, Instant: true,
}

// New returns the tool.
func New() tool.Tool { return planTool{} }

type planTool struct{}

func (planTool) Spec() tool.Spec { return spec }

// Offer offers the tool in plan mode, if a client has declared that it can show a plan
// to a person.
func (planTool) Offer(s tool.State) (tool.Spec, bool) {
	session, ok := s.(interface {
		Mode() string
		Can() event.ClientDeclaredData
	})
	return spec, ok && session.Mode() == event.ModePlan && session.Can().ExitPlan
}

func (planTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run asks whether the plan may be carried out.
func (planTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	a := argument.Read(call.Arguments)
	summary := a.Filled("summary")
	recommended, _ := a.Text("recommendedAction")
	fleet := a.Flag("showFleet")
	if result, refused := a.Refused(); refused {
		return result, nil
	}
	actions := []string{event.PlanAutopilot, event.PlanInteractive, event.PlanExitOnly}
	if fleet {
		actions = []string{event.PlanAutopilot, event.PlanFleet, event.PlanInteractive, event.PlanExitOnly}
	}
	return tool.Result{Open: true, Record: []event.Payload{event.ExitPlanAskedData{
		RequestID: event.NewID(), Summary: summary, Actions: actions,
		Recommended: cmp.Or(recommended, event.PlanAutopilot), ToolCallID: call.ID,
	}}}, nil
}
