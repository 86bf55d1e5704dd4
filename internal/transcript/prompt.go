package transcript

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// The ids of the sections of the system prompt, which clients use to change them.
const (
	Preamble     = "preamble"
	Identity     = "identity" // preamble, tone and efficiency together
	Tone         = "tone"
	Efficiency   = "tool_efficiency"
	Environment  = "environment_context"
	CodeChanges  = "code_change_rules"
	Guidelines   = "guidelines"
	Safety       = "safety"
	ToolNotes    = "tool_instructions"
	CustomNotes  = "custom_instructions"
	RuntimeNotes = "runtime_instructions"
	Last         = "last_instructions"
)

// A section is a part of the system prompt.
type section struct{ id, text string }

// identity lists the sections that Identity stands for.
var identity = []string{Preamble, Tone, Efficiency}

// The texts of the sections, a file for each.
//
//go:embed prompt/*.md
var texts embed.FS

// text returns the text of a section, or of the words for a family of models.
func text(name string) string {
	b, err := texts.ReadFile("prompt/" + name + ".md")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return strings.TrimSpace(string(b))
}

// defaults are the texts of the sections that are the same for all sessions.
var defaults = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for _, id := range []string{Preamble, Tone, Efficiency, CodeChanges, Guidelines, Safety, Last} {
		all[id] = text(id)
	}
	return all
})

// Around is what the system prompt tells of the place in which a session works, and for whom
// it is written. What is empty is not known.
type Around struct {
	Platform string // operating system and processor
	Branch   string // branch of the working tree, or the commit if it is on none; empty outside of git
	Model    string // name of the model that reads it
}

// environment returns the section about the place.
func (a Around) environment(c event.SessionConfiguredData) string {
	var lines []string
	add := func(what, is string) {
		if is != "" {
			lines = append(lines, what+": "+is)
		}
	}
	add("Working directory", c.WorkingDirectory)
	add("Platform", a.Platform)
	if c.WorkingDirectory != "" {
		add("Shell of commands", "bash")
		add("Git branch when the turn began", a.Branch)
		lines = append(lines, "Messages of the user begin with the time at which they were sent.")
	}
	return strings.Join(lines, "\n")
}

// families are the families of models that need words of their own, by how the names of their
// models begin.
var families = []struct {
	name   string
	starts []string
}{
	{"family_gpt", []string{"gpt", "o1", "o3", "o4", "codex", "chatgpt"}},
	{"family_gemini", []string{"gemini"}},
	{"family_open", []string{"llama", "qwen", "mistral", "mixtral", "devstral", "codestral", "deepseek", "gemma", "phi", "granite", "gpt-oss"}},
}

// family returns the words for the family of a model; there are none for most. A name may have
// its maker before it, like openai/gpt-5, and the longest beginning that fits decides.
func family(name string) string {
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	best, length := "", 0
	for _, f := range families {
		for _, start := range f.starts {
			if strings.HasPrefix(name, start) && len(start) > length {
				best, length = f.name, len(start)
			}
		}
	}
	if best == "" {
		return ""
	}
	return text(best)
}

// sections returns the default sections of the system prompt, in order. loaded is the
// text of the project's instruction files, context the text that hooks added.
func sections(c event.SessionConfiguredData, around Around, loaded, context string) []section {
	is := defaults()
	efficiency := is[Efficiency]
	if more := family(around.Model); more != "" {
		efficiency += "\n" + more
	}
	return []section{
		{Preamble, is[Preamble]},
		{Tone, is[Tone]},
		{Efficiency, efficiency},
		{Environment, around.environment(c)},
		{CodeChanges, is[CodeChanges]},
		{Guidelines, is[Guidelines]},
		{Safety, is[Safety]},
		{ToolNotes, ""},
		{CustomNotes, join(loaded, c.Instructions, chosen(c))},
		{RuntimeNotes, context},
		{Last, is[Last]},
	}
}

// chosen returns the prompt of the custom agent that answers in the session.
func chosen(c event.SessionConfiguredData) string {
	if a := c.Chosen(); a != nil {
		return a.Prompt
	}
	return ""
}

func join(texts ...string) string {
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	return strings.Join(texts, "\n\n")
}

// systemMessage is the change that a client makes to the prompt, in the protocol's form.
type systemMessage struct {
	Mode     string              `json:"mode"`
	Content  string              `json:"content"`
	Sections map[string]override `json:"sections"`
}

// An override is the change that a client makes to a section.
type override struct {
	Action  string `json:"action"`
	Content string `json:"content"`
}

// The actions of an override. Any other action leaves the section as it is.
const (
	actReplace   = "replace"
	actRemove    = "remove"
	actAppend    = "append"
	actPrepend   = "prepend"
	actTransform = "transform"
)

// custom decodes the change that the client of a session makes to the prompt.
func custom(c event.SessionConfiguredData) (systemMessage, error) {
	var m systemMessage
	if len(c.SystemMessage) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(c.SystemMessage, &m); err != nil {
		return m, fmt.Errorf("systemMessage: %w", err)
	}
	if m.Mode != "customize" {
		m.Sections = nil
	}
	return m, nil
}

// ShowsPlace reports whether the system prompt of a session may tell what an Around says. It does
// not if the client has replaced the whole prompt.
func ShowsPlace(c event.SessionConfiguredData) bool {
	m, err := custom(c)
	return err != nil || m.Mode != actReplace
}

// Transforms returns the sections, by id, that the client wants to rewrite before each
// turn.
func Transforms(c event.SessionConfiguredData, around Around, loaded, context string) (map[string]string, error) {
	m, err := custom(c)
	if err != nil || len(m.Sections) == 0 {
		return nil, err
	}
	wanted := make(map[string]string)
	for _, s := range m.grouped(sections(c, around, loaded, context)) {
		if m.Sections[s.id].Action == actTransform {
			wanted[s.id] = s.text
		}
	}
	return wanted, nil
}

// System returns the system prompt of a session. around is what it tells of the place, loaded is the text of the project's
// instruction files, context the text that hooks added, changed the sections that the
// client has rewritten.
func System(c event.SessionConfiguredData, around Around, loaded, context string, changed map[string]string) (string, error) {
	m, err := custom(c)
	if err != nil {
		return "", err
	}
	if m.Mode == actReplace {
		return join(m.Content, context), nil
	}
	var parts []string
	known := make(map[string]bool)
	for _, s := range m.grouped(sections(c, around, loaded, context)) {
		known[s.id] = true
		parts = append(parts, m.Sections[s.id].on(s, changed))
	}
	for _, id := range slices.Sorted(maps.Keys(m.Sections)) { // content for unknown sections comes last
		if o := m.Sections[id]; !known[id] && o.Action != actRemove {
			parts = append(parts, o.Content)
		}
	}
	return join(append(parts, m.Content)...), nil
}

// grouped joins the sections of Identity into one, if the client changes Identity.
// Sections among them that the client also changes by their own id stay separate.
func (m systemMessage) grouped(list []section) []section {
	if _, ok := m.Sections[Identity]; !ok {
		return list
	}
	group := section{id: Identity}
	rest := []section{{}}
	for _, s := range list {
		if _, alone := m.Sections[s.id]; slices.Contains(identity, s.id) && !alone {
			group.text = join(group.text, s.text)
		} else {
			rest = append(rest, s)
		}
	}
	rest[0] = group
	return rest
}

// on returns the text of a section after the override.
func (o override) on(s section, changed map[string]string) string {
	switch o.Action {
	case actReplace:
		return o.Content
	case actRemove:
		return ""
	case actAppend:
		return join(s.text, o.Content)
	case actPrepend:
		return join(o.Content, s.text)
	case actTransform:
		if text, ok := changed[s.id]; ok {
			return text
		}
	}
	return s.text
}
