package bash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace/local"
)

// newConfined returns a caller whose commands are confined to a working directory, and a
// folder outside of it.
func newConfined(t *testing.T) (*caller, string) {
	t.Helper()
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside")
	for _, dir := range []string{work, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := sandbox.Open(sandbox.Options{Temp: []string{}, Hidden: []string{filepath.Join(base, "processes")}})
	t.Cleanup(s.Close)
	m, err := process.Open(filepath.Join(base, "processes"), process.Options{Sandbox: s, Shell: process.Shell()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Abandon(context.Background(), "s1"); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	notes := t.TempDir()
	c := bash.New(bash.Options{
		Processes: local.New(work, m).Processes, Confined: true,
		Notes: func(event.SessionID) (string, error) { return notes, nil },
		Place: func(_ context.Context, call tool.Call) (bash.Place, error) { return bash.Place{Root: call.Dir}, nil },
	})
	d := &caller{t: t, c: c, tools: map[string]tool.Tool{}, session: "s1", dir: work}
	for _, one := range c.Tools() {
		d.tools[one.Spec().Name] = one
	}
	return d, outside
}

func TestAModelIsToldThatTheSandboxMayBeTheReason(t *testing.T) {
	d, outside := newConfined(t)
	const sentence = "The sandbox may be the reason: "
	for command, told := range map[string]bool{
		"echo x > " + outside + "/x":                             true,
		"echo x > " + outside + "/x; true":                       false, // it did not fail
		"echo x > x; exit 1":                                     false,
		"cd " + outside + " && mkdir new":                        true,
		"echo EACCES: permission denied, mkdir /usr/lib; exit 1": true,
	} {
		arguments, _ := json.Marshal(map[string]string{"command": command, "description": "try"})
		if text := d.run("bash", d.call(string(arguments))).Text; strings.Contains(text, sentence) != told || told && !strings.Contains(text, "unsandboxed") {
			t.Errorf("%s: the model reads %s", command, text)
		}
	}
	// Without a network, the servers of this machine cannot be reached either.
	d.c.Offline = true
	for _, said := range []string{"curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server", "Could not resolve host: example.org", "connect ECONNREFUSED 127.0.0.1:80"} {
		arguments, _ := json.Marshal(map[string]string{"command": "echo " + strconv.Quote(said) + "; exit 7", "description": "try"})
		if text := d.run("bash", d.call(string(arguments))).Text; !strings.Contains(text, sentence+"commands have no network there") {
			t.Errorf("%s: the model reads %s", said, text)
		}
	}
	// The folder that a call chooses to run in is not more writable than others.
	arguments := fmt.Sprintf(`{"command":"echo x > x","description":"try","cwd":%q}`, outside)
	if text := d.run("bash", d.call(arguments)).Text; !strings.Contains(text, sentence) {
		t.Errorf("in a folder outside: the model reads %s", text)
	}
}

func TestARunWithoutTheSandboxIsAskedAboutEachTime(t *testing.T) {
	d, outside := newConfined(t)
	for _, name := range []string{"bash", "exec"} {
		if !strings.Contains(string(d.tools[name].Spec().Parameters), `"unsandboxed"`) || !json.Valid(d.tools[name].Spec().Parameters) {
			t.Errorf("%s does not offer a run without the sandbox: %s", name, d.tools[name].Spec().Parameters)
		}
	}
	arguments := fmt.Sprintf(`{"command":"echo x > %s/x","description":"try","unsandboxed":true}`, outside)
	call := d.call(arguments)
	ask, err := d.tools["bash"].Permission(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	rules := event.PermissionRules{Allow: []string{"bash"}}
	for _, set := range []string{approval.AskAlways, approval.Workspace, approval.All} {
		decision := approval.Judge(set, rules, ask.SessionGrants(), ask)
		if decision.Verdict != approval.Ask || !strings.Contains(decision.Reason, "without the sandbox") || len(decision.Offers(ask)) != 1 {
			t.Errorf("with the rule set %q it is %+v", set, decision)
		}
	}
	if denied := approval.Judge(approval.All, event.PermissionRules{Deny: []string{"bash"}}, nil, ask); denied.Verdict != approval.Deny {
		t.Errorf("a rule that denies it makes it %+v", denied)
	}
	if !strings.Contains(string(ask.Ask), "without the sandbox") {
		t.Errorf("people are shown %s", ask.Ask)
	}
	if r := d.run("bash", call); r.Failed || !strings.Contains(r.Text, "exit code 0") {
		t.Errorf("a run that was allowed gives %s", r.Text)
	}
	// The next run of the same command is confined again.
	again := d.call(strings.Replace(arguments, "true", "false", 1))
	if r := d.run("bash", again); !strings.Contains(r.Text, "exit code 1") {
		t.Errorf("a run that was not allowed gives %s", r.Text)
	}
}

// A command that was allowed to run without the sandbox may take its input for commands.
func TestInputToACommandWithoutTheSandboxIsAskedAboutEachTime(t *testing.T) {
	d, _ := newConfined(t)
	for name, free := range map[string]bool{"free": true, "held": false} {
		for _, command := range []string{"bash", "cat"} { // cat takes input for data, and has it approved for longer otherwise
			id := name + "-" + command
			if r := d.run("bash", d.call(fmt.Sprintf(`{"command":%q,"description":"try","mode":"async","stdin":true,"shellId":%q,"unsandboxed":%v}`, command, id, free))); r.Failed {
				t.Fatalf("%s: %s", id, r.Text)
			}
			ask, err := d.tools["write_bash"].Permission(t.Context(), d.call(fmt.Sprintf(`{"shellId":%q,"input":"x{enter}"}`, id)))
			if err != nil {
				t.Fatal(err)
			}
			for _, rules := range []event.PermissionRules{{}, {Allow: []string{"write_bash"}}} {
				decision := approval.Judge(approval.All, rules, ask.SessionGrants(), ask)
				if asked := decision.Verdict == approval.Ask; asked != free || free && len(decision.Offers(ask)) != 1 {
					t.Errorf("input to %s is %+v", id, decision)
				}
			}
			d.run("stop_bash", d.call(fmt.Sprintf(`{"shellId":%q}`, id)))
		}
	}
}

func TestWithoutASandboxNothingIsSaidOfOne(t *testing.T) {
	for _, one := range bash.New(bash.Options{}).Tools() {
		if strings.Contains(string(one.Spec().Parameters), "sandbox") {
			t.Errorf("%s: %s", one.Spec().Name, one.Spec().Parameters)
		}
	}
}
