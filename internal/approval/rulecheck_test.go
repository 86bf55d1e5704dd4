package approval_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// TestRulesWithCharactersThatNobodySees: they would match nothing, so they are errors that
// say what to write.
func TestRulesWithCharactersThatNobodySees(t *testing.T) {
	for text, want := range map[string]string{
		"bash(sudo\u200b *)":            `(U+200B) at character 10; write "bash(sudo *)"`,
		"\ufeffbash(sudo *)":            `(U+FEFF) at character 1; write "bash(sudo *)"`,
		"bash(sudo\u00a0*)":             `a blank that is not the usual one (U+00A0) at character 10; write "bash(sudo *)"`,
		"bash(sudo *)\r":                `a character that nobody sees (U+000D) at character 13; write "bash(sudo *)"`,
		"bash(sudo\r *)":                `write "bash(sudo *)"`,
		"read(\u202e~/.ssh/**)":         `(U+202E) at character 6; write "read(~/.ssh/**)"`,
		"read(\u2066.env\u2069)":        `write "read(.env)"`,
		"read(.env\u200d)":              `write "read(.env)"`,
		"read(.env\ufe0f)":              `write "read(.env)"`,
		"bash(g\u0456t push *)":         `a character that looks like i and is another (U+0456)`,
		"bash(\u0455udo *)":             `write "bash(sudo *)"`,
		"bash(\u0440\u0440 *)":          `write "bash(pp *)"`,
		"\u0440\u0440(sudo *)":          `write "pp(sudo *)"`,
		"b\u0430sh(sudo *)":             `write "bash(sudo *)"`,
		"bash(rm \u2013rf *)":           `a character that looks like - and is another (U+2013)`,
		"bash(rm \u2212rf *)":           `write "bash(rm -rf *)"`,
		"bash(sudo \uff0a)":             `write "bash(sudo *)"`,
		"read(/etc\u2215passwd)":        `write "read(/etc/passwd)"`,
		"bash(git commit -m \u201cx y)": `looks like "`,
		"bash(sudo\u2003*)":             `write "bash(sudo *)"`,
		"bash(sudo\u0085*)":             `nobody sees`,
		"bash(sudo \xff*)":              `a byte that is not UTF-8`,
		"read(/data/\u0441onfig)":       `write "read(/data/config)"`,
	} {
		if err := approval.Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
	for _, text := range []string{"write(документы/**)", "read(/home/ада/оса.txt)", "bash(git commit -m 'größer' *)", "bash(echo\t*)", "read(日本語/**)", "write(δοκιμή/α)", "read(naïve/**)"} {
		if err := approval.Check(text); err != nil {
			t.Error(err)
		}
	}
}

// TestRulesThatCanAllowNothing: what is always asked about, or judged by other words.
func TestRulesThatCanAllowNothing(t *testing.T) {
	for text, want := range map[string]string{
		"bash(bash -c *)":                     "a script inside the command (bash)",
		"bash(sh -c *)":                       "a script inside the command (sh)",
		"bash(bash -lc *)":                    "write a whole command without a star",
		"bash(su *)":                          "always asked about",
		"bash(eval *)":                        "a builtin that changes the shell (eval)",
		"bash(eval ls)":                       "leave the rule out",
		"bash(export *)":                      "a builtin that changes the shell (export)",
		"bash(source *)":                      "leave the rule out",
		"bash(cd *)":                          "needs no rule",
		"bash(env *)":                         "the command that env runs is judged in its place; write a rule for that one",
		"bash(timeout *)":                     "the command that timeout runs is judged",
		"bash(xargs *)":                       "the command that xargs runs is judged",
		"bash(nohup *)":                       "write a rule for that one, like bash(git status *)",
		"bash(xargs rm *)":                    "such a command is judged as rm; write bash(rm *)",
		"bash(~/bin/x *)":                     "write an absolute path",
		"bash(ls ~)":                          "write an absolute path",
		"bash(timeout 60 make *)":             "such a command is judged as make; write bash(make *)",
		"bash(env go test *)":                 "write bash(go test *)",
		"bash(env X=1 go test *)":             "an assignment (X=1)",
		"bash(git -C * status *)":             "write bash(git status *)",
		"bash(git --no-pager log *)":          "write bash(git log *)",
		"bash(git -c x=y log *)":              "an option of git before its subcommand",
		"bash(doas *)":                        "doas, which runs another program",
		"bash(strace *)":                      "always asked about",
		"bash(perf stat *)":                   "perf, which runs another program",
		"bash(gdb *)":                         "gdb, which runs another program",
		"bash(lldb *)":                        "lldb, which runs another program",
		"bash(hyperfine *)":                   "hyperfine, which runs another program",
		"bash(run-parts *)":                   "run-parts, which runs another program",
		"bash(/lib64/ld-linux-x86-64.so.2 *)": "ld-linux-x86-64.so.2, which runs another program",
		"bash(time *)":                        "always asked about",
		"terminal(bash -c *)":                 "a script inside the command",
	} {
		if err := approval.CheckAllow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
		if err := approval.Check(text); err != nil {
			t.Errorf("as a rule that denies: %v", err)
		}
	}
	for _, text := range []string{
		"bash", "bash(*)", "bash(bash -c ls)", "bash(perf list)", "bash(env X=1 make)", "bash(bash script.sh *)", "bash(env)", "bash(sudo *)", "bash(sudo apt *)", "bash(command -v *)", "bash(git *)", "bash(* --version)", "bash(ls:*)",
		"bash(find . -name *)", "bash(ldd *)", "bash(make -C *)", "bash(make -f sub/Makefile *)", "bash(pytest -p x *)", "bash(npm run *)", "read(x)", "url(https://x/*)", "read-only", "bash(cd src)",
	} {
		if err := approval.CheckAllow(text); err != nil {
			t.Error(err)
		}
	}
}

// TestRulesOfTheCorpusCanMatch: no rule that the other tests use is taken for one that
// cannot match.
func TestRulesOfTheCorpusCanMatch(t *testing.T) {
	text, err := os.ReadFile("testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := sensibleRules.Allow
	for row := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(row, "rules\t"); ok {
			var rules event.PermissionRules
			if err := json.Unmarshal([]byte(rest), &rules); err != nil {
				t.Fatal(err)
			}
			all = append(all, rules.Allow...)
		}
	}
	for _, rule := range all {
		if err := approval.CheckAllow(rule); err != nil {
			t.Error(err)
		}
	}
}

// TestTheReasonIsTheRealOne: of a program that runs another one, the question says which of
// them no rule allows.
func TestTheReasonIsTheRealOne(t *testing.T) {
	in := project(t)
	rules := event.PermissionRules{Allow: []string{"bash(env *)", "bash(timeout *)"}}
	for line, want := range map[string]string{
		"env ls":        "the rule bash(env *) is not enough: env runs ls, and no rule allows that",
		"timeout 5 ls":  "the rule bash(timeout *) is not enough: timeout runs ls, and no rule allows that",
		"env X=1 ls":    "it has an assignment (X=1)",
		"env -i ls":     "it has env with words that are not known here",
		"nice ls":       "",
		"env env X=y z": "it has an assignment (X=y)",
	} {
		if d := approval.Judge(approval.AskAlways, rules, nil, readLine(line, in)); d.Verdict != approval.Ask || d.Reason != want {
			t.Errorf("%s: %s, %q, want %q", line, verdictName(d.Verdict), d.Reason, want)
		}
	}
}

// TestRulesAboutTheHomeDirectory: a rule with ~ is about the home directory, whoever has set
// it, and whatever the command or the tool calls the file.
func TestRulesAboutTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	in := project(t)
	rules := event.PermissionRules{Allow: []string{"bash", "read"}, Deny: []string{"read(~/.ssh/**)"}}
	for _, line := range []string{"cat ~/.ssh/id_rsa", "cat " + home + "/.ssh/id_rsa", "cat $HOME/.ssh/id_rsa", "cd && cat .ssh/id_rsa", "cd " + home + "/.ssh && ls"} {
		if d := approval.Judge(approval.AskAlways, rules, nil, readLine(line, in)); d.Verdict != approval.Deny {
			t.Errorf("%s: %s, want deny", line, verdictName(d.Verdict))
		}
	}
	for path, want := range map[string]approval.Verdict{home + "/.ssh/id_rsa": approval.Deny, home + "/notes": approval.Grant} {
		view := &approval.Request{Kind: approval.Read, Tool: "view", Details: []string{path}, Dirs: []string{in.Home}}
		if d := approval.Judge(approval.AskAlways, rules, nil, view); d.Verdict != want {
			t.Errorf("view %s: %s", path, verdictName(d.Verdict))
		}
		all := event.PermissionRules{Deny: []string{"read(~)"}}
		if d := approval.Judge(approval.All, all, nil, view); d.Verdict != approval.Deny {
			t.Errorf("view %s with read(~): %s", path, verdictName(d.Verdict))
		}
	}
}

// TestPatternsThatMatchNothing: a pattern that no path, address or command matches is an
// error that says what to write. As a rule that denies, it would protect nothing.
func TestPatternsThatMatchNothing(t *testing.T) {
	for text, want := range map[string]string{
		"url(example.org/*)":            "write url(https://example.org/*)",
		"url(example.org*)":             "write url(https://example.org*)",
		"url(example.org)":              "write url(https://example.org/*)",
		"url(//example.org/*)":          "write url(https://example.org/*)",
		"url(htps://example.org/*)":     "did you mean url(https://example.org/*)?",
		"url(htttp://example.org)":      "did you mean url(http://example.org)?",
		"url(http//example.org/*)":      "addresses begin with their scheme",
		"url(HTTPS://Example.org/A/*)":  "write url(https://example.org/A/*)",
		"url(https://Example.org)":      "write url(https://example.org)",
		"url(https://)":                 "it names no host",
		"url( https://example.org/*)":   "write url(https://example.org/*)",
		"web_fetch(example.org/*)":      "write web_fetch(https://example.org/*)",
		"read( .env)":                   "write read(.env)",
		"read(.env )":                   "write read(.env)",
		"mcp( github/*)":                "write mcp(github/*)",
		"read(.env, id_rsa)":            "write a rule for each path",
		"edit(**/*.go, **/*.md)":        "write a rule for each path",
		"bash(rm *, mv *)":              "write a rule for each command",
		"bash(git push*, git commit *)": "write a rule for each command",
		"bash('git push' *)":            "without the quotes",
		"bash(git:push)":                "with blanks between them",
		"bash(git:push *)":              "no program is called git:push",
	} {
		if err := approval.Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
	for _, text := range []string{
		"url(*)", "url(http*)", "url(https:*)", "url(*.example.org/*)", "url(https://*.example.org/*)", "url(https://example.org)", "url(http://localhost:8080/*)", "url(ftp://example.org/*)", "url(x-scheme://a/*)",
		"url(https://example.org/Some/Path)", "read({a,b}.txt)", "read(a,b)", "read(a b)", "bash(: *)", "bash('/opt/my app/x' *)", "bash(echo a, b)", "bash(npm run test:unit *)", "bash(git log:*)", "bash(/opt/x:1/run *)",
	} {
		if err := approval.Check(text); err != nil {
			t.Error(err)
		}
	}
}

// TestAHostIsAllOfItsAddresses: a rule with a host and no path is about every address there,
// whoever asks for it.
func TestAHostIsAllOfItsAddresses(t *testing.T) {
	rules := event.PermissionRules{Deny: []string{"url(https://example.org)"}}
	for address, want := range map[string]approval.Verdict{
		"https://example.org": approval.Deny, "https://example.org/": approval.Deny, "https://example.org/x": approval.Deny,
		"https://example.org.evil/x": approval.Grant, "http://example.org/": approval.Grant,
	} {
		r := &approval.Request{Kind: approval.URL, Tool: "web_fetch", Details: []string{address}}
		if d := approval.Judge(approval.All, rules, nil, r); d.Verdict != want {
			t.Errorf("%s: %s, want %s", address, verdictName(d.Verdict), verdictName(want))
		}
	}
}

// TestTheReasonNamesTheMissingStar: who is asked because a rule that denies has no star at its
// end is told so.
func TestTheReasonNamesTheMissingStar(t *testing.T) {
	rules := event.PermissionRules{Allow: []string{"bash"}, Deny: []string{"bash(rm)"}}
	d := approval.Judge(approval.AskAlways, rules, nil, readLine("rm -r src", project(t)))
	if want := "the rule bash(rm), which denies, may apply: it begins like the rule, which has no star at its end"; d.Verdict != approval.Ask || d.Reason != want {
		t.Errorf("%s, %q, want %q", verdictName(d.Verdict), d.Reason, want)
	}
}
