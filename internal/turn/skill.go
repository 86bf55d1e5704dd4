package turn

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// UseSkill is the built-in tool by which the model is told a skill.
const UseSkill = "skill"

// Usable are the skills that the model may have: those that are enabled, and of
// an agent that answers those that it was given.
func (s *State) Usable() []event.Skill {
	if !s.Config.Skills.Any() {
		return nil
	}
	chosen := s.Config.Chosen()
	return slices.DeleteFunc(slices.Clone(s.Skills), func(k event.Skill) bool {
		return slices.Contains(s.Config.Skills.Disabled, k.Name) || (chosen != nil && !slices.Contains(chosen.Skills, k.Name))
	})
}

// Unloaded are the skills of the agent that answers that it was not told yet.
func (s *State) Unloaded() []event.Skill {
	chosen := s.Config.Chosen()
	if chosen == nil {
		return nil
	}
	return slices.DeleteFunc(s.Usable(), func(k event.Skill) bool { return s.told[k.Name] })
}

// SkillSpec is what the model is told of the tool, with the skills that there are.
func SkillSpec(list []event.Skill) tool.Spec {
	var text strings.Builder
	text.WriteString("Be told how to do something. Use it as soon as a skill fits what is asked for. These are the skills:")
	names := make([]string, len(list))
	for i, k := range list {
		names[i] = k.Name
		fmt.Fprintf(&text, "\n- %s: %s", k.Name, k.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"skill"},
		"properties": map[string]any{"skill": map[string]any{"type": "string", "description": "The name of the skill.", "enum": names}},
	})
	if err != nil { // plain data
		panic(err)
	}
	return tool.Spec{Name: UseSkill, Description: text.String(), Parameters: schema, Replay: tool.Pure}
}

// skillInvoked lets the model be told a skill before its next request, in
// whichever turn that is.
func (s *State) skillInvoked(d event.SkillInvokedData) {
	told := maps.Clone(s.told)
	if told == nil {
		told = make(map[string]bool)
	}
	told[d.Name] = true
	s.told = told
	s.waiting = append(slices.Clip(s.waiting), Words{Text: skillContext(d), Source: "skill-" + d.Name})
}

// skillContext is a skill as the model reads it.
func skillContext(d event.SkillInvokedData) string {
	return fmt.Sprintf("<skill-context name=%q>\nBase directory for this skill: %s\n\n%s\n\n</skill-context>", d.Name, filepath.Dir(d.Path), d.Content)
}
