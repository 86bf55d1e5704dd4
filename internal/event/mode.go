package event

// The types of events about the mode of an agent, and about its plan.
const (
	ModeChanged   Type = "session.mode_changed"
	PlanChanged   Type = "session.plan_changed"
	ExitPlanAsked Type = "exit_plan_mode.requested"
	ExitPlanDone  Type = "exit_plan_mode.completed"
	TaskDone      Type = "session.task_complete"
)

var _ = list(
	Kind{Type: ModeChanged, body: body[ModeChangedData], Lasting: true, Silent: true},
	Kind{Type: PlanChanged, body: body[PlanChangedData], Silent: true, Inert: true},
	Kind{Type: ExitPlanAsked, body: body[ExitPlanAskedData], Ephemeral: true, Question: true, Answer: ExitPlanDone},
	Kind{Type: ExitPlanDone, body: body[ExitPlanDoneData], Ephemeral: true, Inert: true, Keyed: true, Silent: true},
	Kind{Type: TaskDone, body: empty, Silent: true},
)

// PlanChangedData is the body of session.plan_changed: the plan of the session was
// written or deleted.
type PlanChangedData struct {
	Operation string `json:"operation"` // "create", "update" or "delete"
}

// ModeChangedData is the body of session.mode_changed: from here on, the agent works in
// another mode.
type ModeChangedData struct {
	NewMode      string `json:"newMode"` // one of the Mode constants below
	PreviousMode string `json:"previousMode"`
}

// The modes of an agent.
const (
	ModeInteractive = "interactive" // the usual mode
	ModePlan        = "plan"        // the agent changes nothing until a person approves its plan
	ModeAutopilot   = "autopilot"   // the agent goes on by itself until it says that everything is done
)

// The actions of [ExitPlanAskedData]: what happens after a plan was approved.
const (
	PlanAutopilot   = "autopilot"       // the agent carries it out in autopilot mode
	PlanFleet       = "autopilot_fleet" // the same, with several agents at once
	PlanInteractive = "interactive"     // the agent carries it out in interactive mode
	PlanExitOnly    = "exit_only"       // the agent only leaves plan mode
)

// ExitPlanAskedData is the body of exit_plan_mode.requested: a person is asked whether
// the agent may leave plan mode and carry out its plan.
type ExitPlanAskedData struct {
	RequestID   string   `json:"requestId"`
	Summary     string   `json:"summary"`           // summary of the plan, by the model
	PlanContent string   `json:"planContent"`       // the whole plan
	Actions     []string `json:"actions"`           // choices, of the Plan constants above
	Recommended string   `json:"recommendedAction"` // choice that the model recommends
	ToolCallID  string   `json:"toolCallId,omitempty"`
}

// ExitPlanDoneData is the body of exit_plan_mode.completed, which closes the question.
type ExitPlanDoneData struct {
	RequestID string    `json:"requestId"`
	Approved  bool      `json:"approved"`
	Action    string    `json:"selectedAction,omitempty"` // one of the Plan constants above
	Feedback  string    `json:"feedback,omitempty"`       // remark of the person about the plan
	Answer    *Answered `json:"winner,omitempty"`         // ours: answer that counted; nil if no client gave it
}

func (ModeChangedData) Type() Type   { return ModeChanged }
func (PlanChangedData) Type() Type   { return PlanChanged }
func (ExitPlanAskedData) Type() Type { return ExitPlanAsked }
func (ExitPlanDoneData) Type() Type  { return ExitPlanDone }

func (d ExitPlanDoneData) Request() Request { return answerTo(d.RequestID, d.Answer) }
