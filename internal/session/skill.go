package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/turn"
)

// Skills finds skills, and reads what they tell.
type Skills interface {
	// Find finds the skills of a session that works in a folder. What it could not
	// read is an error beside the rest.
	Find(rules event.SkillRules, dir string) ([]event.Skill, error)
	Body(event.Skill) (string, error)
}

// learn records which skills there are, if that has changed, and tells an agent
// that answers those that it was given.
func (tx *txn) learn() error {
	known, rules := tx.s.host.opts.Skills, tx.State.Config.Skills
	if known == nil || !rules.Any() {
		return nil
	}
	list, err := known.Find(rules, tx.State.Config.WorkingDirectory)
	if err != nil {
		tx.s.host.log.Warn("some skills could not be read", "session", tx.s.id, "err", err)
	}
	if !slices.Equal(list, tx.State.Skills) {
		if err := tx.Record(event.SkillsFoundData{Skills: notNil(list)}); err != nil {
			return err
		}
		tx.Tell(event.SkillsChangedData{Skills: rules.States(list)})
	}
	for _, k := range tx.State.Unloaded() {
		d, err := tx.s.host.invoked(k, event.SkillLoaded)
		if err != nil {
			tx.s.host.log.Warn("a skill could not be read", "session", tx.s.id, "err", err)
			continue
		}
		if err := tx.Record(d); err != nil {
			return err
		}
	}
	return nil
}

// invoked is what the model is told of a skill.
func (h *Host) invoked(k event.Skill, trigger string) (event.SkillInvokedData, error) {
	body, err := h.opts.Skills.Body(k)
	return event.SkillInvokedData{Name: k.Name, Path: k.Path, Content: body, Description: k.Description, Source: k.Source, Trigger: trigger}, err
}

// skills is the tool by which the model is told a skill.
type skills struct{ host *Host }

func (k skills) Spec() tool.Spec { return turn.SkillSpec(nil) }

func (k skills) Permission(tool.Call) (*approval.Request, error) { return nil, nil }

func (k skills) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args := argument.Read(call.Arguments)
	name := args.Needed("skill")
	if err := args.Err(); err != nil {
		return tool.Fail("Failed to load skill: " + strings.TrimPrefix(err.Error(), "Invalid input: ")), nil
	}
	var usable []event.Skill
	err := k.host.look(ctx, call.Session, func(tx *txn) error {
		usable = tx.State.Usable()
		return nil
	})
	if err != nil {
		return tool.Result{}, err
	}
	at := slices.IndexFunc(usable, func(s event.Skill) bool { return s.Name == name })
	if at < 0 {
		return unknownSkill(name, usable), nil
	}
	d, err := k.host.invoked(usable[at], event.SkillAsked)
	if err != nil {
		return tool.Fail(fmt.Sprintf("Failed to load skill: %v", err)), nil
	}
	return tool.Result{
		Text:   fmt.Sprintf("Skill %q loaded successfully. Follow the instructions in the skill context.", name),
		Record: []event.Payload{d},
	}, nil
}

func unknownSkill(name string, usable []event.Skill) tool.Result {
	names := make([]string, len(usable))
	for i, s := range usable {
		names[i] = s.Name
	}
	r := tool.Fail(fmt.Sprintf("Skill %q not found. Available skills: %s", name, strings.Join(names, ", ")))
	r.Message = "Skill not found: " + name
	return r
}
