package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/skills"
)

// These methods are about the skills that a session's model can be told.
var _ = register(map[string]method{
	api.SkillsList:         on((*conn).skills),
	api.SkillsEnable:       on((*conn).enableSkill),
	api.SkillsDisable:      on((*conn).disableSkill),
	api.SkillsReload:       on((*conn).reloadSkills),
	api.SkillsEnsureLoaded: on((*conn).loadSkills),
	api.SkillsInvoked:      on((*conn).invokedSkills),
	api.SkillsDiscover:     on((*conn).discoverSkills),
	api.SkillsPaths:        on((*conn).skillPaths),
})

// find finds the skills of a session, as they are on the disk now.
func (c *conn) find(ctx context.Context, id event.SessionID) ([]event.SkillState, error, error) {
	st, err := c.server.host.Status(ctx, id)
	if err != nil || !st.Config.Skills.Any() {
		return []event.SkillState{}, nil, noSession(id, err)
	}
	files, err := c.server.host.Work.Files(id)
	if err != nil {
		return []event.SkillState{}, nil, err
	}
	list, faults := skills.For(ctx, files, st.Config.Skills, st.Config.WorkingDirectory)
	return st.Config.Skills.States(list), faults, nil
}

func (c *conn) skills(ctx context.Context, p api.SessionParams) (api.SkillsResult, error) {
	list, _, err := c.find(ctx, p.SessionID)
	return api.SkillsResult{Skills: list}, err
}

func (c *conn) enableSkill(ctx context.Context, p api.SkillParams) (any, error) {
	return c.toggle(ctx, p, func(disabled []string) []string {
		return slices.DeleteFunc(disabled, func(name string) bool { return name == p.Name })
	})
}

func (c *conn) disableSkill(ctx context.Context, p api.SkillParams) (any, error) {
	return c.toggle(ctx, p, func(disabled []string) []string {
		if slices.Contains(disabled, p.Name) {
			return disabled
		}
		return append(disabled, p.Name)
	})
}

// toggle changes which skills the model may not have.
func (c *conn) toggle(ctx context.Context, p api.SkillParams, f func([]string) []string) (any, error) {
	if p.Name == "" {
		return nil, errBadParams{errors.New("name: it is empty")}
	}
	return nil, noSession(p.SessionID, c.server.host.Configure(ctx, p.SessionID, func(to *event.SessionConfiguredData) error {
		to.Skills.Disabled = f(slices.Clone(to.Skills.Disabled))
		return nil
	}))
}

// reloadSkills tells what could not be read. The model is told of changes at the
// next turn in any case.
func (c *conn) reloadSkills(ctx context.Context, p api.SessionParams) (api.SkillFaults, error) {
	result := api.SkillFaults{Errors: []string{}, Warnings: []string{}}
	list, faults, err := c.find(ctx, p.SessionID)
	if err != nil {
		return result, err
	}
	result.Errors = append(result.Errors, lines(faults)...)
	_, err = c.server.host.Log.Note(ctx, p.SessionID, event.SkillsChangedData{Skills: list}, true)
	return result, noSession(p.SessionID, err)
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// loadSkills has nothing to do: skills are found when they are asked for.
func (c *conn) loadSkills(ctx context.Context, p api.SessionParams) (any, error) {
	_, _, err := c.find(ctx, p.SessionID)
	return nil, err
}

func (c *conn) invokedSkills(ctx context.Context, p api.SessionParams) (api.InvokedResult, error) {
	result := api.InvokedResult{Skills: []api.InvokedSkill{}}
	events, err := c.server.host.Log.Messages(ctx, p.SessionID)
	turns := 0
	for _, e := range events {
		switch e.Type {
		case event.UserMessage:
			if d, err := event.As[event.UserMessageData](e); err == nil && d.Source == "" {
				turns++
			}
		case event.SkillInvoked:
			if d, err := event.As[event.SkillInvokedData](e); err == nil {
				result.Skills = append(result.Skills, api.InvokedSkill{Name: d.Name, Path: d.Path, Content: d.Content, Turn: max(0, turns-1)})
			}
		}
	}
	return result, noSession(p.SessionID, err)
}

// discoverSkills finds skills without a session.
func (c *conn) discoverSkills(ctx context.Context, p api.SkillsDiscoverParams) (api.SkillsDiscoverResult, error) {
	result := api.SkillsDiscoverResult{Skills: []api.FoundSkill{}}
	dirs, err := c.projects(p.DiscoverParams)
	if err != nil {
		return result, err
	}
	files, err := c.server.host.Work.Files("")
	if err != nil {
		return result, err
	}
	add := func(folders []string, project string) {
		list, faults := skills.Find(ctx, files, folders, project)
		for _, s := range (event.SkillRules{}).States(list) {
			result.Skills = append(result.Skills, api.FoundSkill{SkillState: s, ProjectPath: project})
		}
		result.Errors = append(result.Errors, lines(faults)...)
	}
	add(p.Directories, "")
	for _, dir := range dirs {
		add(nil, dir)
	}
	return result, nil
}

func (c *conn) skillPaths(_ context.Context, p api.DiscoverParams) (api.SkillPathsResult, error) {
	result := api.SkillPathsResult{Paths: []api.SkillPath{}}
	dirs, err := c.projects(p)
	for _, dir := range dirs {
		for i, folder := range skills.Folders(dir) {
			result.Paths = append(result.Paths, api.SkillPath{Path: folder, Scope: skills.Project, ProjectPath: dir, Preferred: i == 0})
		}
	}
	return result, err
}
