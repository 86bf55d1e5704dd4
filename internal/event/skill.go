package event

import "slices"

// The kinds of events about skills.
const (
	SkillsFound   Type = "skills.found"
	SkillInvoked  Type = "skill.invoked"
	SkillsChanged Type = "session.skills_loaded"
)

var _ = list(
	Kind{Type: SkillsFound, body: body[SkillsFoundData], Hidden: true, Lasting: true},
	Kind{Type: SkillInvoked, body: body[SkillInvokedData], Lasting: true},
	Kind{Type: SkillsChanged, body: body[SkillsChangedData], Sent: true},
)

// A Skill tells an agent how to do something.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
	Source      string `json:"source"`
}

// SkillsFoundData is all skills that a session knows of.
type SkillsFoundData struct {
	Skills []Skill `json:"skills"`
}

// SkillInvokedData is what a skill tells the model.
type SkillInvokedData struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Content     string `json:"content"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	Trigger     string `json:"trigger"` // one of Skill…
}

// Why a skill is told.
const (
	SkillAsked  = "agent-invoked" // the model wanted it
	SkillLoaded = "context-load"  // the agent that answers has it
)

// SkillsChangedData lists skills for clients.
type SkillsChangedData struct {
	Skills []SkillState `json:"skills"`
}

// A SkillState is a skill, and whether the model may have it.
type SkillState struct {
	Skill
	Enabled       bool `json:"enabled"`
	UserInvocable bool `json:"userInvocable"`
}

// SkillRules say which skills a session has.
type SkillRules struct {
	Directories []string `json:"directories,omitempty"`
	Disabled    []string `json:"disabled,omitempty"`
	Off         bool     `json:"off,omitempty"`      // none at all
	Discover    bool     `json:"discover,omitempty"` // those of the project, too
}

// Any reports whether there can be skills.
func (r SkillRules) Any() bool { return !r.Off && (r.Discover || len(r.Directories) > 0) }

// States tells of all skills whether they are enabled.
func (r SkillRules) States(list []Skill) []SkillState {
	states := make([]SkillState, len(list))
	for i, s := range list {
		states[i] = SkillState{Skill: s, Enabled: !slices.Contains(r.Disabled, s.Name), UserInvocable: true}
	}
	return states
}

func (SkillsFoundData) Type() Type   { return SkillsFound }
func (SkillInvokedData) Type() Type  { return SkillInvoked }
func (SkillsChangedData) Type() Type { return SkillsChanged }
