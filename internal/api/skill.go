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

// SkillFaults is what could not be read.
type SkillFaults struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

// InvokedResult lists the skills that a model was told.
type InvokedResult struct {
	Skills []InvokedSkill `json:"skills"`
}

// An InvokedSkill is one of them, and in which turn that was, from 0.
type InvokedSkill struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Content string `json:"content"`
	Turn    int    `json:"invokedAtTurn"`
}

// SkillsDiscoverParams says where to look.
type SkillsDiscoverParams struct {
	DiscoverParams
	Directories []string `json:"skillDirectories,omitempty"`
}

// SkillsDiscoverResult is what was found.
type SkillsDiscoverResult struct {
	Skills []FoundSkill `json:"skills"`
	Errors []string     `json:"errors,omitempty"`
}

// A FoundSkill is a skill, and the project that it was found in.
type FoundSkill struct {
	event.SkillState
	ProjectPath string `json:"projectPath,omitempty"`
}

// SkillPathsResult is where skills are looked for.
type SkillPathsResult struct {
	Paths []SkillPath `json:"paths"`
}

// A SkillPath is one such folder.
type SkillPath struct {
	Path        string `json:"path"`
	Scope       string `json:"scope"`
	ProjectPath string `json:"projectPath,omitempty"`
	Preferred   bool   `json:"preferredForCreation"`
}
