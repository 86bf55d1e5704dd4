package event

import "slices"

// The types of events about skills.
const (
	SkillsFound   Type = "skills.found"
	SkillInvoked  Type = "skill.invoked"
	SkillsChanged Type = "session.skills_loaded"
)

var _ = list(
	Kind{Type: SkillsFound, body: body[SkillsFoundData], Hidden: true, Lasting: true},
	Kind{Type: SkillInvoked, body: body[SkillInvokedData], Lasting: true, Silent: true},
	Kind{Type: SkillsChanged, body: body[SkillsChangedData], Sent: true, Silent: true},
)

// A Skill is a file that tells an agent how to do something.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"` // purpose of the skill, for the model that chooses one
	Path        string `json:"path"`        // absolute path of the file
	Source      string `json:"source"`      // place where it was found, such as "project"
}

// SkillsFoundData is the body of skills.found: all skills that the session has, from
// here on.
type SkillsFoundData struct {
	Skills []Skill `json:"skills"`
}

// SkillInvokedData is the body of skill.invoked: the model is given the content of a
// skill, in the user.message that follows.
type SkillInvokedData struct {
	Name        string `json:"name"`
	Path        string `json:"path"`
	Content     string `json:"content"` // content of the file as the model reads it
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	Trigger     string `json:"trigger"` // SkillAsked, SkillLoaded or SkillChosen
}

// The triggers of a skill: why the model is given it.
const (
	SkillAsked  = "agent-invoked" // the model asked for it
	SkillLoaded = "context-load"  // the selected custom agent has the skill
	SkillChosen = "user-invoked"  // a person asked for it
)

// SkillsChangedData is the body of session.skills_loaded: all skills of the session, for
// clients.
type SkillsChangedData struct {
	Skills []SkillState `json:"skills"`
}

// A SkillState is a skill as clients are shown it.
type SkillState struct {
	Skill
	Enabled       bool `json:"enabled"`       // true if the model may use it
	UserInvocable bool `json:"userInvocable"` // true if a person may use it
}

// SkillRules say which skills a session has.
type SkillRules struct {
	Directories []string `json:"directories,omitempty"` // folders with skills
	Disabled    []string `json:"disabled,omitempty"`    // names of skills that the model may not use
	Off         bool     `json:"off,omitempty"`         // true if there are no skills at all
	Discover    bool     `json:"discover,omitempty"`    // true if the folders of the project are searched, too
}

// Any reports whether a session with these rules can have skills.
func (r SkillRules) Any() bool { return !r.Off && (r.Discover || len(r.Directories) > 0) }

// States returns the skills as clients are shown them.
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
