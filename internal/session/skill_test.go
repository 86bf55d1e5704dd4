package session_test

import (
	"context"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/workspace"
)

// oneSkill is a source of one skill.
type oneSkill struct{}

func (oneSkill) Find(context.Context, workspace.Projects, event.SkillRules, string) ([]event.Skill, error) {
	return []event.Skill{{Name: "dance", Description: "How to dance", Path: "/skills/dance/SKILL.md", Source: "custom"}}, nil
}

func (oneSkill) Body(context.Context, workspace.Projects, event.Skill) (string, error) {
	return "Do it twice.", nil
}

// runTurn sends a prompt, and waits until its turn is over.
func runTurn(b *sessiontest.Fixture, id event.SessionID, prompt string) {
	b.T.Helper()
	st, err := b.Host.Status(b.T.Context(), id)
	if err != nil {
		b.T.Fatal(err)
	}
	v := sessiontest.NewViewer()
	view, err := b.Host.Attach(b.T.Context(), id, &session.Client{Viewer: v}, st.End.Seq)
	if err == nil {
		err = view.CatchUp(b.T.Context())
	}
	if err != nil {
		b.T.Fatal(err)
	}
	b.Send(id, event.InputAcceptedData{Prompt: prompt})
	v.Await(b.T, 0, event.SessionIdle)
}

// A skill is told when it was asked for, once, and not again by a runtime that
// reads the log.
func TestASkillIsToldOnceAlsoAfterARestart(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Options.Skills = oneSkill{}
	b.Restart()
	spec := session.Spec{Config: event.SessionConfiguredData{Skills: event.SkillRules{Directories: []string{"/skills"}}}}
	if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
		t.Fatal(err)
	}
	runTurn(b, "s", `Use skill with {"skill":"dance"}, then reply with the result`)
	fork, err := b.Host.Fork(t.Context(), "f", "s", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[event.SessionID]int{"s": 1, fork: 2} {
		if id == fork { // the fork invokes it once more, after the part that it shares with the other
			runTurn(b, id, `Use skill with {"skill":"dance"}, then reply with the result`)
		}
		b.Restart()
		runTurn(b, id, "Reply with exactly: HI")
		told := 0
		for _, e := range b.Verify(id) {
			if d, err := event.As[event.UserMessageData](e); e.Type == event.UserMessage && err == nil && d.Source == "skill-dance" {
				told++
			}
		}
		if told != want {
			t.Errorf("in session %s the skill was told %d times, want %d", id, told, want)
		}
	}
}
