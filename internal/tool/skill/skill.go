// Package skill has the tool skill, with which a model reads a skill.
package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

// A Library knows the skills of sessions.
type Library interface {
	// Usable returns the skills that the model of a session may read.
	Usable(ctx context.Context, id event.SessionID) ([]event.Skill, error)
	// Read returns the content of a skill of a session.
	Read(ctx context.Context, id event.SessionID, k event.Skill) (event.SkillInvokedData, error)
}

// New returns the tool.
func New(library Library) tool.Tool { return skillTool{library} }

type skillTool struct{ library Library }

func (skillTool) Spec() tool.Spec { return spec(nil) }

// Offer offers the tool with the skills that the model may read.
func (skillTool) Offer(s tool.State) (tool.Spec, bool) {
	session, ok := s.(interface{ UsableSkills() []event.Skill })
	if !ok {
		return tool.Spec{}, false
	}
	usable := session.UsableSkills()
	return spec(usable), len(usable) > 0
}

func (skillTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

// Run reads the skill. The model gets its text in a message of its own.
func (t skillTool) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	args := argument.Read(call.Arguments)
	name := args.Needed("skill")
	if err := args.Err(); err != nil {
		return tool.Fail("Failed to load skill: " + strings.TrimPrefix(err.Error(), "Invalid input: ")), nil
	}
	usable, err := t.library.Usable(ctx, call.Session)
	if err != nil {
		return tool.Result{}, err
	}
	at := slices.IndexFunc(usable, func(k event.Skill) bool { return k.Name == name })
	if at < 0 {
		return unknown(name, usable), nil
	}
	d, err := t.library.Read(ctx, call.Session, usable[at])
	if err != nil {
		return tool.Fail(fmt.Sprintf("Failed to load skill: %v", err)), nil
	}
	return tool.Result{
		Text:   fmt.Sprintf("Skill %q loaded successfully. Follow the instructions in the skill context.", name),
		Record: []event.Payload{d},
	}, nil
}

func unknown(name string, usable []event.Skill) tool.Result {
	names := make([]string, len(usable))
	for i, k := range usable {
		names[i] = k.Name
	}
	r := tool.Fail(fmt.Sprintf("Skill %q not found. Available skills: %s", name, shorten(strings.Join(names, ", "), mostList)))
	r.Message = "Skill not found: " + name
	return r
}

// spec returns the description of the tool, with the available skills.
func spec(list []event.Skill) tool.Spec {
	var text strings.Builder
	text.WriteString("Be told how to do something. Use it as soon as a skill fits what is asked for, and again after a summary if you go on with that work. Do not use it for a skill whose text you still see above.\n\nExample: {\"skill\": \"NAME\"}\n\nThese are the skills:")
	which := map[string]any{"type": "string", "description": "The name of the skill."}
	if names := writeList(&text, list); len(names) == len(list) {
		which["enum"] = append([]string{}, names...)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"skill"},
		"properties": map[string]any{"skill": which},
	})
	if err != nil { // cannot happen: the value is plain data
		panic(err)
	}
	return tool.Spec{Name: "skill", Description: text.String(), Parameters: schema, Replay: tool.Pure}
}
