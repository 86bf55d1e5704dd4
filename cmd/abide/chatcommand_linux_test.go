package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommandsOfSkillsAndServers: the commands that a skill of the project and an MCP server
// bring are offered, and become messages; a word that is no command comes back.
func TestCommandsOfSkillsAndServers(t *testing.T) {
	dir, scenario := chatFolder(t)
	skill := filepath.Join(dir, "work/.claude/skills/dance/SKILL.md")
	must(t, os.MkdirAll(filepath.Dir(skill), 0o700))
	must(t, os.WriteFile(skill, []byte("---\nname: dance\ndescription: How to dance \u202e\n---\n\nDo it twice.\n"), 0o600))
	output(t, dir, "mcp", "add", "story", "--", "mcp-server")
	x := startChat(t, dir, 110, 40, "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("/d")
	x.sees(`/dance .*How to dance <U\+202E> \(skill\)`)
	x.typed("ance\t slowly\r") // Tab has nothing to complete
	x.sees(`› Use the skill "dance". slowly\n\nyou said: <skill-context name="dance">.*Do it twice.*\n+› `)
	x.typed("/st")
	x.sees(`/story:review .*Reviews a file \[2J<U\+202E>: /story:review <file> \[how\] \(prompt\)`)
	x.typed("\r")
	x.sees(`› /story:review\n`)
	x.typed("\r")
	x.sees(`the argument file is missing`)
	x.typed(" main.go with great care\r")
	all := x.sees(`› Review main\.go \(with great care\) <U\+001B>\]0;title<U\+0007>\n.*you said: Review main`)
	if strings.Contains(all, "› /story") {
		t.Errorf("the command itself was sent:\n%s", all)
	}
	x.typed("/nothing here\r")
	x.sees(`/nothing is no command.*› /nothing here`)
	x.typed("\x15/help\r")
	x.sees(`help · `)
	x.typed("G")
	x.sees(`Of skills, MCP servers and other clients\n/dance +How to dance`)
	x.typed("q")
	id := regexp.MustCompile(`--resume\s+(\S+)`).FindStringSubmatch(x.leaves())[1]
	if log := output(t, dir, "sessions", "show", id); !strings.Contains(log, "Do it twice.") {
		t.Errorf("the model was not told the skill:\n%s", log)
	}
}
