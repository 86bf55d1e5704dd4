package event

// The kinds of events about the modes of an agent, and its plan.
const (
	ModeChanged   Type = "session.mode_changed"
	PlanChanged   Type = "session.plan_changed"
	ExitPlanAsked Type = "exit_plan_mode.requested"
	ExitPlanDone  Type = "exit_plan_mode.completed"
	TaskDone      Type = "session.task_complete"
)

var _ = list(
	Kind{Type: ModeChanged, body: body[ModeChangedData], Lasting: true},
	Kind{Type: PlanChanged, body: body[PlanChangedData]},
	Kind{Type: ExitPlanAsked, body: body[ExitPlanAskedData], Ephemeral: true, Question: true, Answer: ExitPlanDone},
	Kind{Type: ExitPlanDone, body: body[ExitPlanDoneData], Ephemeral: true, Keyed: true},
	Kind{Type: TaskDone, body: empty},
)

// PlanChangedData tells that the plan was written.
type PlanChangedData struct {
	Operation string `json:"operation"` // "create", "update" or "delete"
}

// ModeChangedData tells in which mode the agent works from here on.
type ModeChangedData struct {
	NewMode      string `json:"newMode"` // one of Mode…
	PreviousMode string `json:"previousMode"`
}

// The modes of an agent.
const (
	ModeInteractive = "interactive"
	ModePlan        = "plan" // nothing is changed until a plan was approved
	ModeAutopilot   = "autopilot"
)

// What can be done with a plan that was approved.
const (
	PlanAutopilot   = "autopilot"
	PlanFleet       = "autopilot_fleet"
	PlanInteractive = "interactive"
	PlanExitOnly    = "exit_only"
)

// ExitPlanAskedData asks a person whether a plan may be carried out.
type ExitPlanAskedData struct {
	RequestID   string   `json:"requestId"`
	Summary     string   `json:"summary"`
	PlanContent string   `json:"planContent"`
	Actions     []string `json:"actions"`
	Recommended string   `json:"recommendedAction"`
	ToolCallID  string   `json:"toolCallId,omitempty"`
}

// ExitPlanDoneData closes that question.
type ExitPlanDoneData struct {
	RequestID string    `json:"requestId"`
	Approved  bool      `json:"approved"`
	Action    string    `json:"selectedAction,omitempty"`
	Feedback  string    `json:"feedback,omitempty"`
	Answer    *Answered `json:"winner,omitempty"`
}

func (ModeChangedData) Type() Type   { return ModeChanged }
func (PlanChangedData) Type() Type   { return PlanChanged }
func (ExitPlanAskedData) Type() Type { return ExitPlanAsked }
func (ExitPlanDoneData) Type() Type  { return ExitPlanDone }

func (d ExitPlanDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
