package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// attachScenario is a model that starts two commands in the background: one with a terminal,
// and one whose input is open.
const attachScenario = `{"rules": [
 {"when": {"userContains": "go", "step": 1}, "reply": {"calls": [
  {"tool": "bash", "arguments": {"shellId": "prompt", "description": "Prompt", "tty": true, "run_in_background": true,
   "command": "stty -echo; echo ready; while read line; do case $line in size) stty size;; evil) printf '\\033]52;c;aGk=\\007\\033[31mred\\033[m\\n';; where) printf '\\033[6n'; read -r -d R at; echo \"at ${at#*[}\";; quit) exit 7;; *) echo \"got $line\";; esac; done"}}]}},
 {"when": {"userContains": "go", "step": 2}, "reply": {"calls": [
  {"tool": "bash", "arguments": {"shellId": "lines", "description": "Lines", "stdin": true, "run_in_background": true,
   "command": "while read line; do echo \"read $line\"; done; echo over"}}]}},
 {"when": {"userContains": "go"}, "reply": {"text": "Started."}},
 {"reply": {"text": "you said: {{user}}"}}
]}`

// TestACommandHasTheTerminal: what is typed goes to the command, what it draws is shown and
// never obeyed, and Ctrl-] takes the terminal back and leaves nothing in the scrollback.
func TestACommandHasTheTerminal(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "scenario.json")
	must(t, os.WriteFile(scenario, []byte(attachScenario), 0o600))
	x := startChat(t, dir, 100, 30, "--yolo", "--scenario", scenario)
	x.sees(`› ask`)
	x.typed("go\r")
	before := x.sees(`Started\.\n+› ask[^\n]*\n[^\n]*2 commands run`)
	x.typed("\x14") // Ctrl-T: the last command is the first of the list
	x.sees(`commands of this session.*Ctrl-A gives it the terminal`)
	x.typed("\x1b[B\x01") // down, Ctrl-A
	x.sees(`ready.*Ctrl-\] leaves, and the command goes on`)
	x.typed("size\r")
	x.sees(`29 100\n`)
	x.typed("hello\revil\r")
	x.sees(`got hello\n.*red\n`)
	x.typed("\x1d") // Ctrl-]
	after := x.sees(`Started\.\n+› ask[^\n]*\n[^\n]*2 commands run`)
	if strings.TrimRight(after, "\n ") != strings.TrimRight(before, "\n ") {
		t.Errorf("after the command had the terminal:\n%s\nbefore:\n%s", after, before)
	}
	x.mu.Lock()
	if strings.Contains(x.shown, "\x1b]52") {
		t.Error("what the command prints has reached the terminal")
	}
	x.mu.Unlock()

	y := startChat(t, dir, 60, 12, "attach", "prompt")
	y.sees(`got hello\n.*Ctrl-\] leaves, and the command goes on`)
	y.typed("size\r")
	y.sees(`11 60\n`)
	y.typed("where\r") // the program asks its terminal, which answers
	y.sees(`at \d+;1\n`)
	y.typed("\x1d")
	if code := y.awaitExit(y.p); code != 0 {
		t.Errorf("abide attach: exit code %d", code)
	}

	x.typed("/attach\r") // both take input, so there is a choice
	x.sees(`commands of this session`)
	x.typed("\x01")
	x.sees(`›\s.*Ctrl-\] leaves · Enter sends a line`)
	x.typed("one\r")
	x.sees(`one\nread one\n`)
	x.typed("two\x7f\r\x04")
	x.sees(`tw\n.*over\n.*exit code 0 · Ctrl-\] leaves`)
	x.typed("\x1d")
	x.sees(`Started\.\n+› ask`)
	x.typed("/attach\r") // only one is left
	x.sees(`got hello\n`)
	x.typed("size\r")
	x.sees(`11 60\n.*29 100\n`)
	x.typed("quit\r")
	x.sees(`exit code 7 · Ctrl-\] leaves`)
	x.typed("\x1b")
	x.leaves()
}
