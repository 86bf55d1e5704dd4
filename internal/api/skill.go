package api

import "github.com/abide-run/abide/internal/event"

// The methods about skills.
const (
	SkillsList         = "session.skills.list"
	SkillsEnable       = "session.skills.enable"
	SkillsDisable      = "session.skills.disable"
	SkillsReload       = "session.skills.reload"
	SkillsEnsureLoaded = "session.skills.ensureLoaded"
	SkillsInvoked      = "session.skills.getInvoked"
	SkillsDiscover     = "skills.discover"
	SkillsPaths        = "skills.getDiscoveryPaths"
)

// SkillsResult lists skills.
type SkillsResult struct {
	Skills []event.SkillState `json:"skills"`
}

// SkillParams names a skill.
type SkillParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Name      string          `json:"name"`
}

// SkillFaults lists the skills that could not be read.
type SkillFaults struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

// InvokedResult lists the skills that were given to a model.
type InvokedResult struct {
	Skills []InvokedSkill `json:"skills"`
}

// An InvokedSkill is a skill that was given to a model, with the number of the turn.
type InvokedSkill struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Content string `json:"content"`
	Turn    int    `json:"invokedAtTurn"`
}

// SkillsDiscoverParams names the directories to search.
type SkillsDiscoverParams struct {
	DiscoverParams
	Directories []string `json:"skillDirectories,omitempty"`
}

// SkillsDiscoverResult lists the skills that were found.
type SkillsDiscoverResult struct {
	Skills []FoundSkill `json:"skills"`
	Errors []string     `json:"errors,omitempty"`
}

// A FoundSkill is a skill, and the project that it was found in.
type FoundSkill struct {
	event.SkillState
	ProjectPath string `json:"projectPath,omitempty"`
}

// SkillPathsResult lists the directories that are searched for skills.
type SkillPathsResult struct {
	Paths []SkillPath `json:"paths"`
}

// A SkillPath is a directory that is searched for skills.
type SkillPath struct {
	Path        string `json:"path"`
	Scope       string `json:"scope"`
	ProjectPath string `json:"projectPath,omitempty"`
	Preferred   bool   `json:"preferredForCreation"`
}
