package bash_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
)

// TestWhatRulesAllowIsRunFromTheJudgedWords: the text of the model does not reach the
// shell, and nothing in the environment or the working directory changes what the words
// do.
func TestWhatRulesAllowIsRunFromTheJudgedWords(t *testing.T) {
	onEachWorkspace(t, process.Options{}, func(t *testing.T, m *testHost) {
		for name, text := range map[string]string{
			"start":    "echo started >> " + filepath.Join(m.dir, "traces"),
			"ls":       "#!/bin/sh\necho shadowed >> " + filepath.Join(m.dir, "traces"),
			"git/HEAD": "",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(m.dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		call := m.call(`{"command":"echo 'the text' > said","description":"d"}`)
		call.Env = []string{
			"PATH=.::bin:" + os.Getenv("PATH"), "BASH_ENV=" + filepath.Join(m.dir, "start"), "ENV=" + filepath.Join(m.dir, "start"),
			"BASH_FUNC_echo%%=() { builtin echo function >> traces; }", "SHELLOPTS=xtrace", "PS4=$(touch traced)", "KEPT=yes",
		}
		call.Decision = &event.Decision{By: event.ByGrant, Command: `'echo' 'the words' && 'ls' && 'printenv' 'PATH' 'KEPT' 'GIT_CONFIG_COUNT'`}
		got := m.run("bash", call)
		if !strings.HasPrefix(got.Text, "the words\ngit\nls\nstart\n"+os.Getenv("PATH")+"\nyes\n") {
			t.Errorf("the command printed %q", got.Text)
		}
		for _, name := range []string{"said", "traces", "traced"} {
			if _, err := os.Stat(filepath.Join(m.dir, name)); err == nil {
				t.Errorf("there is a file %s: something else ran", name)
			}
		}
		again := m.run("bash", call)
		if again.Text != got.Text {
			t.Errorf("the call that is made again gives %q", again.Text)
		}
	})
}

// TestWhatAPersonApprovedIsRunAsItWasShown: with a yes to the very text, and where nobody
// is asked, the text runs.
func TestWhatAPersonApprovedIsRunAsItWasShown(t *testing.T) {
	for _, decision := range []*event.Decision{nil, {By: event.ByAnswer, RequestID: "r"}, {By: event.BySet}, {By: event.ByHook}, {By: event.ByRule, Rules: []string{"bash"}}} {
		p := newScripted()
		d := newCaller(t, p, t.TempDir())
		call := d.call(`{"command":"echo $HOME","description":"d","mode":"async"}`)
		call.Env, call.Decision = []string{"PATH=.:/bin", "BASH_ENV=x"}, decision
		d.run("bash", call)
		spec := p.started(0).spec
		if spec.Command != "echo $HOME" || !slices.Contains(spec.Env, "PATH=.:/bin") || !slices.Contains(spec.Env, "BASH_ENV=x") {
			t.Errorf("%+v: %q runs in %q", decision, spec.Command, spec.Env)
		}
	}
}

// TestACommandRunsWithTheSearchPathThatWasJudged: a client may come back with another PATH
// before the command is run, or before it is begun again after a crash.
func TestACommandRunsWithTheSearchPathThatWasJudged(t *testing.T) {
	for _, by := range []string{event.ByRule, event.ByAnswer, event.ByHook, event.BySet} {
		p := newScripted()
		d := newCaller(t, p, t.TempDir())
		call := d.call(`{"command":"ls","description":"d","mode":"async"}`)
		call.Env = []string{"PATH=/usr/bin:/bin", "KEPT=yes"}
		ask, err := d.tools["bash"].Permission(t.Context(), call)
		if err != nil || ask.More.SearchPath != "/usr/bin:/bin" {
			t.Fatalf("judged with %q, %v", ask.More.SearchPath, err)
		}
		call.Env = []string{"PATH=/tmp/evil:/usr/bin", "KEPT=yes"}
		call.Decision = &event.Decision{By: by, SearchPath: ask.More.SearchPath}
		if by == event.ByRule {
			call.Decision.Command = "'ls'"
		}
		d.run("bash", call)
		env := p.started(0).spec.Env
		if !slices.Contains(env, "PATH=/usr/bin:/bin") || slices.Contains(env, "PATH=/tmp/evil:/usr/bin") || !slices.Contains(env, "KEPT=yes") {
			t.Errorf("%s: it runs in %q", by, env)
		}
	}
}

// TestInputThatMayBeCommandsIsAskedEachTime: only the input of programs that take it as
// data can be approved in advance, and rules that deny commands are about input too.
func TestInputThatMayBeCommandsIsAskedEachTime(t *testing.T) {
	for command, data := range map[string]bool{
		"cat": true, "wc -l": true, "grep x | sort -u | head": false, "grep x | head -n 1": true,
		"bash": false, "sh -i": false, "python3": false, "node": false, "./menu": false, "cat | sh": false, "ssh host": false, "sudo cat": false,
		"cat $(x)": false, "cat > f": false, "/tmp/cat": false, "gdb cat": false, "psql": false, "env cat": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newScripted()
			d := newCaller(t, p, t.TempDir())
			d.run("bash", d.call(`{"command":"`+command+`","description":"d","mode":"async","stdin":true,"shellId":"x"}`))
			ask := func(input string) *approval.Request {
				r, err := d.tools["write_bash"].Permission(t.Context(), d.call(`{"shellId":"x","input":"`+input+`"}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Tool = "write_bash"
				return r
			}
			r := ask("rm -rf /{enter}")
			if !strings.Contains(string(r.Ask), "rm -rf /") || len(r.More.Reasons) == 0 {
				t.Errorf("%s: the question is %s, because of %q", command, r.Ask, r.More.Reasons)
			}
			if (len(r.SessionGrants()) > 0) != data {
				t.Errorf("%s: approved in advance would be %+v", command, r.SessionGrants())
			}
			for _, allow := range [][]string{{"bash(rm *)"}, {"shell(rm *)"}, {"bash(*)"}, {"read-only"}} {
				if d := approval.Judge("", event.PermissionRules{Allow: allow}, r.SessionGrants(), ask("ls{enter}")); (d.Verdict == approval.Grant) != data {
					t.Errorf("%s: with %v and a grant the verdict is %+v", command, allow, d)
				}
			}
			if d := approval.Judge("all", event.PermissionRules{Deny: []string{"bash(rm *)"}}, nil, r); d.Verdict != approval.Deny && !data {
				t.Errorf("%s: rm is denied, and the verdict about the input is %+v", command, d)
			}
		})
	}
}

// Keys change what a shell reads, and a line can come in parts. Neither hides a command that
// a rule denies, and ordinary keys are no reason to ask.
func TestKeysAndPartsOfLinesHideNoDeniedCommand(t *testing.T) {
	for input, asks := range map[string]bool{
		"sux{backspace}do ls{enter}": true, "sud{ctrl-v}o ls{enter}": true, "sud{tab}ls{enter}": true, "{ctrl-r}sud{enter}": true, "{up}{enter}": true, "{ctrl-p}{enter}": true,
		"x{ctrl-c}sudo ls{enter}": true, "sud{ctrl-d}o ls{enter}": true, "su{ctrl-z}do ls{enter}": true, "sux\\u0008do ls\\n": true,
		"sud": true, "/usr/bin/sud": true, "/usr/bin/": true, "git pu": true, "git": true,
		"{ctrl-c}": false, "{ctrl-d}": false, "{ctrl-z}": false, "y{enter}": false, "q": false, "git log{enter}": false, "sud{enter}": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newCaller(t, newScripted(), t.TempDir())
			d.run("bash", d.call(`{"command":"bash","description":"d","mode":"async","tty":true,"shellId":"x"}`))
			r, err := d.tools["write_bash"].Permission(t.Context(), d.call(`{"shellId":"x","input":"`+input+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			verdict := approval.Judge(approval.All, event.PermissionRules{Deny: []string{"bash(sudo *)", "bash(git push *)"}}, nil, r)
			if (verdict.Verdict != approval.Grant) != asks {
				t.Errorf("%q: %+v, want that somebody is asked or it is denied: %v", input, verdict, asks)
			}
		})
	}
}
