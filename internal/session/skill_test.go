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

// through sends a prompt, and waits until its turn is over.
func (b *bench) through(id event.SessionID, prompt string) {
	b.t.Helper()
	st, err := b.host.Status(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	v := newViewer()
	view, err := b.host.Attach(b.t.Context(), id, &session.Client{Viewer: v}, st.End.Seq)
	if err == nil {
		err = view.CatchUp(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(id, event.InputAcceptedData{Prompt: prompt})
	v.await(b.t, 0, event.SessionIdle)
}

// A skill is told when it was asked for, once, and not again by a runtime that
// reads the log.
func TestASkillIsToldOnceAlsoAfterARestart(t *testing.T) {
	b := newBench(t, offline.Model{})
	b.opts.Skills = dancing{}
	b.restart()
	spec := session.Spec{Config: event.SessionConfiguredData{Skills: event.SkillRules{Directories: []string{"/skills"}}}}
	if _, err := b.host.Create(t.Context(), "s", spec, nil); err != nil {
		t.Fatal(err)
	}
	b.through("s", `Use skill with {"skill":"dance"}, then reply with the result`)
	fork, err := b.host.Fork(t.Context(), "f", "s", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[event.SessionID]int{"s": 1, fork: 2} {
		if id == fork { // once more, after what it shares with the other
			b.through(id, `Use skill with {"skill":"dance"}, then reply with the result`)
		}
		b.restart()
		b.through(id, "Reply with exactly: HI")
		told := 0
		for _, e := range b.verify(id) {
			if d, err := event.As[event.UserMessageData](e); e.Type == event.UserMessage && err == nil && d.Source == "skill-dance" {
				told++
			}
		}
		if told != want {
			t.Errorf("in session %s the skill was told %d times, want %d", id, told, want)
		}
	}
}
