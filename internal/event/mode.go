package event

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

// ContextChangedData is what a client knows of the place where a session works.
type ContextChangedData struct {
	Cwd            string `json:"cwd"`
	GitRoot        string `json:"gitRoot,omitempty"`
	Branch         string `json:"branch,omitempty"`
	Repository     string `json:"repository,omitempty"`
	RepositoryHost string `json:"repositoryHost,omitempty"`
	HostType       string `json:"hostType,omitempty"`
	BaseCommit     string `json:"baseCommit,omitempty"`
	HeadCommit     string `json:"headCommit,omitempty"`
}

// ShutdownData tells that the use of a session was ended for everybody.
type ShutdownData struct {
	Kind        string              `json:"shutdownType"` // "routine" or "error"
	Reason      string              `json:"errorReason,omitempty"`
	Started     int64               `json:"sessionStartTime"` // milliseconds
	APIDuration int64               `json:"totalApiDurationMs"`
	Changes     CodeChanges         `json:"codeChanges"`
	Metrics     map[string]struct{} `json:"modelMetrics"`
	Model       string              `json:"currentModel,omitempty"`
}

// CodeChanges counts what was changed.
type CodeChanges struct {
	Added   int      `json:"linesAdded"`
	Removed int      `json:"linesRemoved"`
	Files   []string `json:"filesModified"`
	Count   int      `json:"filesModifiedCount"`
}

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

func (ModeChangedData) Type() Type    { return ModeChanged }
func (ContextChangedData) Type() Type { return ContextChanged }
func (ShutdownData) Type() Type       { return SessionShutdown }
func (ExitPlanAskedData) Type() Type  { return ExitPlanAsked }
func (ExitPlanDoneData) Type() Type   { return ExitPlanDone }
