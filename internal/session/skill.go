package session

import (
	"context"
	"errors"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// A SkillSource finds skills and reads their texts.
type SkillSource interface {
	// Find returns the skills of a session that works in a folder of its workspace. The
	// error says what could not be read; the other skills are returned with it.
	Find(ctx context.Context, from workspace.Projects, rules event.SkillRules, dir string) ([]event.Skill, error)
	Body(ctx context.Context, from workspace.Projects, k event.Skill) (string, error)
}

// recordSkills records which skills there are, if that has changed, and the texts of
// the skills that the chosen agent always has.
func (tx *txn) recordSkills() error {
	known, rules := tx.s.host.opts.Skills, tx.State.Setup.Config.Skills
	if known == nil || !rules.Any() {
		return nil
	}
	h, id, dir := tx.s.host, tx.s.id, tx.State.Setup.Config.WorkingDirectory
	found, err := lookAt(tx.s, "skills", skillPlaces{rules, dir}, func(ctx context.Context) (found foundSkills) {
		found.err = h.withFiles(ctx, id, func(ctx context.Context, from workspace.Files) (err error) {
			found.list, err = known.Find(ctx, from, rules, dir)
			return err
		})
		return found
	})
	if err != nil {
		return err
	}
	list := found.list
	if found.err != nil {
		tx.s.warnOnce("some skills could not be read", found.err)
	}
	if isAway(found.err) {
		list = tx.State.Skills.Found
	}
	if !slices.Equal(list, tx.State.Skills.Found) {
		if err := tx.record(event.SkillsFoundData{Skills: notNil(list)}); err != nil {
			return err
		}
		tx.send(event.SkillsChangedData{Skills: rules.States(list)})
	}
	return tx.loadSkills(tx.State.Unloaded())
}

// skillPlaces is what decides which skills there are.
type skillPlaces struct {
	rules event.SkillRules
	dir   string
}

// foundSkills is what a look for skills has found.
type foundSkills struct {
	list []event.Skill
	err  error
}

// loadSkills records the texts of skills. A skill that cannot be read is left out.
func (tx *txn) loadSkills(list []event.Skill) error {
	if len(list) == 0 {
		return nil
	}
	h, id := tx.s.host, tx.s.id
	texts, err := lookAt(tx.s, "skill texts", list, func(ctx context.Context) (texts []event.SkillInvokedData) {
		for _, k := range list {
			d, err := h.readSkill(ctx, id, k, event.SkillLoaded)
			if err != nil {
				h.log.Warn("a skill could not be read", "session", id, "err", err)
				continue
			}
			texts = append(texts, d)
		}
		return texts
	})
	for _, d := range texts {
		err = errors.Join(err, tx.record(d))
	}
	return err
}

// Skills tells the models of sessions of skills.
type Skills struct{ host *Host }

// Usable returns the skills that a session's model may use.
func (ks Skills) Usable(ctx context.Context, id event.SessionID) (usable []event.Skill, err error) {
	err = ks.host.inspectAny(ctx, id, func(tx *txn) error {
		usable = tx.State.UsableSkills()
		return nil
	})
	return usable, err
}

// Read returns the text of a skill that the model asked for.
func (ks Skills) Read(ctx context.Context, id event.SessionID, k event.Skill) (event.SkillInvokedData, error) {
	return ks.host.readSkill(ctx, id, k, event.SkillAsked)
}

// Invoke tells the model a skill that a person has chosen, before its next request.
func (ks Skills) Invoke(ctx context.Context, id event.SessionID, k event.Skill) error {
	d, err := ks.host.readSkill(ctx, id, k, event.SkillChosen)
	if err != nil {
		return err
	}
	return ks.host.changeAny(ctx, id, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		return tx.record(d)
	})
}

// readSkill returns the event that tells the model a skill.
func (h *Host) readSkill(ctx context.Context, id event.SessionID, k event.Skill, trigger string) (event.SkillInvokedData, error) {
	d := event.SkillInvokedData{Name: k.Name, Path: k.Path, Description: k.Description, Source: k.Source, Trigger: trigger}
	err := h.withFiles(ctx, id, func(ctx context.Context, from workspace.Files) (err error) {
		d.Content, err = h.opts.Skills.Body(ctx, from, k)
		return err
	})
	return d, err
}
