package turn

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// Skills is the skills that were found, and those that were invoked.
type Skills struct {
	Found   []event.Skill
	told    map[string]bool // the skills that were invoked, by name
	waiting []Words         // the texts of invoked skills that the model is told before its next request
}

func (k *Skills) fold(body event.Payload) {
	switch d := body.(type) {
	case event.SkillsFoundData:
		k.Found = d.Skills
	case event.SkillInvokedData:
		k.invoke(d)
	case event.UserMessageData:
		k.waiting = withoutWords(k.waiting, d.Source)
	}
}

// Invoked returns the names of the skills that were invoked, in order.
func (k *Skills) Invoked() []string { return slices.Sorted(maps.Keys(k.told)) }

// UsableSkills returns the skills that the model may be told: those that are not
// disabled, and that the chosen agent was given if an agent is chosen.
func (s *State) UsableSkills() []event.Skill {
	if !s.Setup.Config.Skills.Any() {
		return nil
	}
	chosen := s.Setup.Config.Chosen()
	return slices.DeleteFunc(slices.Clone(s.Skills.Found), func(k event.Skill) bool {
		return slices.Contains(s.Setup.Config.Skills.Disabled, k.Name) || (chosen != nil && !slices.Contains(chosen.Skills, k.Name))
	})
}

// Unloaded returns the skills of the chosen agent that were not invoked yet.
func (s *State) Unloaded() []event.Skill {
	chosen := s.Setup.Config.Chosen()
	if chosen == nil {
		return nil
	}
	return slices.DeleteFunc(s.UsableSkills(), func(k event.Skill) bool { return s.Skills.told[k.Name] })
}

// invoke takes in that a skill is invoked. The model is told its text before the next
// request, in whichever turn that is.
func (k *Skills) invoke(d event.SkillInvokedData) {
	told := maps.Clone(k.told)
	if told == nil {
		told = make(map[string]bool)
	}
	told[d.Name] = true
	k.told = told
	k.waiting = append(slices.Clip(k.waiting), Words{Text: skillContext(d), Source: "skill-" + d.Name})
}

// skillContext returns the text of a skill as the model reads it. A skill cannot end its element, and
// go on as if the user was speaking.
func skillContext(d event.SkillInvokedData) string {
	return fmt.Sprintf("<skill-context name=%q>\nBase directory for this skill: %s\n\n%s\n\n</skill-context>", d.Name, filepath.Dir(d.Path), strings.ReplaceAll(d.Content, "</skill-context>", `<\skill-context>`))
}
