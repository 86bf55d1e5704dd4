package event

import "slices"

// A Skill tells an agent how to do something.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
	Source      string `json:"source"`
}

// The events of skills.
const (
	SkillsFound   Type = "skills.found"          // which there are, from here on
	SkillInvoked  Type = "skill.invoked"         // one is told to the model
	SkillsChanged Type = "session.skills_loaded" // as clients are told; only sent
)

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

// Type is the kind of the event.
func (SkillsFoundData) Type() Type { return SkillsFound }

// Type is the kind of the event.
func (SkillInvokedData) Type() Type { return SkillInvoked }

// Type is the kind of the event.
func (SkillsChangedData) Type() Type { return SkillsChanged }

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
