package rpc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/skills"
	"github.com/abide-run/abide/internal/session"
)

// skilled is a folder with a skill.
func skilled(t *testing.T, dir, name string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: " + name + "\ndescription: How to " + name + "\n---\n\nDo it twice.\n"
	if err := os.WriteFile(filepath.Join(at, skills.File), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newSkilled(t *testing.T) *testServer {
	return newTestServerWith(t, session.Options{Skills: skills.Library{}, ToolsOf: withAgents})
}

func TestAModelIsToldASkillWhenItWantsTo(t *testing.T) {
	dir := skilled(t, t.TempDir(), "dance")
	p := newSkilled(t).open(api.SessionCreate, object{"skillDirectories": []string{dir}})
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use skill with {"skill":"dance"}, then reply with the result`}, nil)
	if d := data[event.SkillInvokedData](t, p.await(event.SkillInvoked)); d.Name != "dance" || d.Content != "Do it twice." || d.Trigger != event.SkillAsked {
		t.Errorf("invoked is %+v", d)
	}
	said := data[event.UserMessageData](t, p.await(event.UserMessage))
	want := "<skill-context name=\"dance\">\nBase directory for this skill: " + filepath.Join(dir, "dance") + "\n\nDo it twice.\n\n</skill-context>"
	if said.Content != want || said.Source != "skill-dance" {
		t.Errorf("the model is told %q by %s", said.Content, said.Source)
	}
	p.await(event.SessionIdle)
	var told api.InvokedResult
	p.must(api.SkillsInvoked, object{"sessionId": "s"}, &told)
	if len(told.Skills) != 1 || told.Skills[0].Content != "Do it twice." || told.Skills[0].Turn != 0 {
		t.Errorf("told were %+v", told.Skills)
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Use skill with {"skill":"sing"}, then reply with the result`}, nil)
	if d := data[event.AssistantMessageData](t, lastBefore(p, event.SessionIdle)); !strings.Contains(d.Content, `Skill "sing" not found. Available skills: dance`) {
		t.Errorf("the answer is %q", d.Content)
	}
}

func TestSkillsCanBeTurnedOffAndOn(t *testing.T) {
	dir := skilled(t, t.TempDir(), "dance")
	p := newSkilled(t).open(api.SessionCreate, object{"skillDirectories": []string{dir}, "disabledSkills": []string{"dance"}})
	state := func() string {
		var r api.SkillsResult
		p.must(api.SkillsList, object{"sessionId": "s"}, &r)
		var list []string
		for _, s := range r.Skills {
			text := s.Name + " off"
			if s.Enabled {
				text = s.Name + " on"
			}
			list = append(list, text)
		}
		return strings.Join(list, ", ")
	}
	offered := func() bool {
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
		p.await(event.SessionIdle)
		return slices.Contains(p.toolNames(), "skill")
	}
	if state() != "dance off" || offered() {
		t.Errorf("at first: %s", state())
	}
	p.must(api.SkillsEnable, object{"sessionId": "s", "name": "dance"}, nil)
	if state() != "dance on" || !offered() {
		t.Errorf("enabled: %s", state())
	}
	p.must(api.SkillsDisable, object{"sessionId": "s", "name": "dance"}, nil)
	if state() != "dance off" || offered() {
		t.Errorf("disabled: %s", state())
	}
	skilled(t, dir, "sing")
	var faults api.SkillFaults
	p.must(api.SkillsReload, object{"sessionId": "s"}, &faults)
	d := data[event.SkillsChangedData](t, p.await(event.SkillsChanged))
	for len(d.Skills) < 2 { // the earlier events are those of the turns
		d = data[event.SkillsChangedData](t, p.await(event.SkillsChanged))
	}
	if state() != "dance off, sing on" || len(faults.Errors) > 0 {
		t.Errorf("reloaded: %s, %v", state(), faults)
	}
	p.must(api.SkillsEnsureLoaded, object{"sessionId": "s"}, nil)
	if fault := p.refused(api.SkillsEnable, object{"sessionId": "s"}); !strings.Contains(fault.Message, "name: it is empty") {
		t.Error(fault)
	}
}

// A project's skills count only if somebody wants them.
func TestSkillsOfAProjectAreWantedOrNot(t *testing.T) {
	project := t.TempDir()
	skilled(t, filepath.Join(project, ".github", "skills"), "dance")
	for _, want := range []bool{false, true} {
		p := newSkilled(t).open(api.SessionCreate, object{"workingDirectory": project, "enableConfigDiscovery": want})
		var r api.SkillsResult
		p.must(api.SkillsList, object{"sessionId": "s"}, &r)
		if len(r.Skills) > 0 != want || (want && r.Skills[0].Source != "project") {
			t.Errorf("wanted is %v: %+v", want, r.Skills)
		}
	}
	for _, client := range []string{api.ClientCLI, api.ClientHTTP} { // a person does
		p := newSkilled(t).open(api.SessionCreate, object{"workingDirectory": project, "clientName": client})
		var r api.SkillsResult
		if p.must(api.SkillsList, object{"sessionId": "s"}, &r); len(r.Skills) != 1 {
			t.Errorf("%s: %+v", client, r.Skills)
		}
	}
	p := newSkilled(t).open(api.SessionCreate, nil)
	var found api.SkillsDiscoverResult
	p.must(api.SkillsDiscover, object{"projectPaths": []string{project}, "skillDirectories": []string{skilled(t, t.TempDir(), "sing")}}, &found)
	if len(found.Skills) != 2 || found.Skills[0].Name != "sing" || found.Skills[1].ProjectPath != project || !found.Skills[1].Enabled {
		t.Errorf("discovered are %+v", found.Skills)
	}
	var paths api.SkillPathsResult
	p.must(api.SkillsPaths, object{"projectPaths": []string{project}}, &paths)
	if len(paths.Paths) != 3 || !paths.Paths[0].Preferred || paths.Paths[1].Preferred || paths.Paths[0].ProjectPath != project {
		t.Errorf("the paths are %+v", paths.Paths)
	}
}

// An agent that answers has the skills that it was given, from the beginning, and
// no others.
func TestAnAgentIsToldItsSkills(t *testing.T) {
	dir := skilled(t, skilled(t, t.TempDir(), "dance"), "sing")
	p := newSkilled(t).open(api.SessionCreate, object{"skillDirectories": []string{dir}, "agent": "a", "customAgents": []object{
		{"name": "a", "prompt": "A", "skills": []string{"dance"}}, {"name": "b", "prompt": "B"},
	}})
	turn := func() (told []string) {
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
		for e := range p.events {
			if e.Type == event.UserMessage {
				if d := data[event.UserMessageData](t, e); d.Source != "" {
					told = append(told, d.Source)
				}
			}
			if e.Type == event.SessionIdle {
				return told
			}
		}
		return told
	}
	if got := turn(); !slices.Equal(got, []string{"skill-dance"}) {
		t.Errorf("in its first turn it is told %v", got)
	}
	if got := turn(); len(got) > 0 {
		t.Errorf("in its second turn it is told %v", got)
	}
	p.must(api.AgentSelect, object{"sessionId": "s", "name": "b"}, nil)
	if got := turn(); len(got) > 0 || slices.Contains(p.toolNames(), "skill") {
		t.Errorf("an agent without skills is told %v, and has %v", got, p.toolNames())
	}
}

// A person's skill is a command: the model is told it, and whoever invokes it sends a message.
func TestASkillIsACommand(t *testing.T) {
	dir := skilled(t, t.TempDir(), "dance")
	p := newSkilled(t).open(api.SessionCreate, object{"skillDirectories": []string{dir}})
	listed := func(with bool) bool {
		var list api.CommandsResult
		p.must(api.CommandsList, object{"sessionId": "s", "includeSkills": with}, &list)
		return slices.Contains(list.Commands, api.CommandInfo{Name: "dance", Description: "How to dance", Kind: api.CommandSkill, During: true})
	}
	if !listed(true) || listed(false) {
		t.Errorf("listed if wanted: %t, if not: %t", listed(true), listed(false))
	}
	var r api.InvokeResult
	p.must(api.CommandsInvoke, object{"sessionId": "s", "name": "dance", "input": "slowly"}, &r)
	if r.Kind != api.InvokedPrompt || r.Display != "/dance slowly" || !strings.Contains(r.Prompt, "slowly") {
		t.Errorf("invoked: %+v", r)
	}
	if d := data[event.SkillInvokedData](t, p.await(event.SkillInvoked)); d.Content != "Do it twice." || d.Trigger != event.SkillChosen {
		t.Errorf("the model is told %+v", d)
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": r.Prompt}, nil)
	told := false
	for d := data[event.UserMessageData](t, p.await(event.UserMessage)); ; d = data[event.UserMessageData](t, p.await(event.UserMessage)) {
		if told = d.Source == "skill-dance"; told {
			break
		}
	}
	p.await(event.SessionIdle)
	p.must(api.SkillsDisable, object{"sessionId": "s", "name": "dance"}, nil)
	if fault := p.refused(api.CommandsInvoke, object{"sessionId": "s", "name": "dance"}); listed(true) || !strings.Contains(fault.Message, "Unknown command: /dance") {
		t.Errorf("a skill that is off is a command: %v", fault)
	}
}
