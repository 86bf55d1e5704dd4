package session_test

import (
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
)

// dancing is a shelf with one skill.
type dancing struct{}

func (dancing) Find(event.SkillRules, string) ([]event.Skill, error) {
	return []event.Skill{{Name: "dance", Description: "How to dance", Path: "/skills/dance/SKILL.md", Source: "custom"}}, nil
}

func (dancing) Body(event.Skill) (string, error) { return "Do it twice.", nil }

// A skill is told when it was asked for, once, and not again by a runtime that
// reads the log.
func TestASkillIsToldOnceAlsoAfterARestart(t *testing.T) {
	b := newBench(t, offline.Model{})
	b.opts.Skills = dancing{}
	b.restart()
	v := newViewer()
	view, err := b.host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{Skills: event.SkillRules{Directories: []string{"/skills"}}}}, &session.Client{Viewer: v})
	if err == nil {
		err = view.CatchUp(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.send("s", event.InputAcceptedData{Prompt: `Use skill with {"skill":"dance"}, then reply with the result`})
	v.await(t, 0, event.SessionIdle)
	b.restart()
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	awaitIdle(t, b, "s")
	told := 0
	for _, e := range b.verify("s") {
		if d, err := event.As[event.UserMessageData](e); e.Type == event.UserMessage && err == nil && d.Source == "skill-dance" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the skill was told %d times", told)
	}
}
