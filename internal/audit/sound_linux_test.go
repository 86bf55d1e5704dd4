package audit_test

import (
	"maps"
	"os"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/audit"
)

// echoed is the command of the session "hooks", as its record has it.
const echoed = "echo hooked"

// byRules is a decision by rules.
func byRules(rules ...any) object { return object{"by": "rule", "rules": rules, "command": echoed} }

// allowedBy lets clients set something in the session "hooks", which allows its command.
func allowedBy(set, decision object) func(*folder) {
	return func(f *folder) {
		l := f.script("hooks")
		allowing(l, set)
		l.decide(1, decision)
		l.save()
	}
}

func rule(kind string, argument any) object { return object{"kind": kind, "argument": argument} }

// changed changes the log of a session.
func changed(session string, change func(*script)) func(*folder) {
	return func(f *folder) {
		l := f.script(session)
		change(l)
		l.save()
	}
}

// granted makes the second answer of the session "denied" grant something, by which its next
// command is allowed.
func granted(decision object, grants ...any) func(*folder) {
	return changed("denied", func(l *script) {
		l.set("permission.completed", 2, "grants", grants)
		by := object{"grants": grants}
		maps.Copy(by, decision)
		l.decide(2, by)
	})
}

// rewritten changes the record of the nth command of the session "commands".
func rewritten(nth int, change func(*process), and func(*script)) func(*folder) {
	return func(f *folder) {
		p := f.command("commands", nth)
		change(p)
		p.save()
		changed("commands", and)(f)
	}
}

// removed removes the record of the nth command of the session "commands".
func removed(nth int, and func(*script)) func(*folder) {
	return func(f *folder) {
		os.RemoveAll(f.command("commands", nth).path(""))
		changed("commands", and)(f)
	}
}

// failed makes the nth call of a session one that failed.
func failed(l *script, nth int) {
	at := l.set("tool.execution_complete", nth, "success", false)
	delete(l.get(at).Data, "result")
	l.set("tool.execution_complete", nth, "error", object{"code": "failure", "message": "m"})
}

// exitCode makes the first call of the session "commands" tell of an exit code.
func exitCode(l *script, code int) {
	result := l.get(l.at("tool.execution_complete", 1)).Data["result"].(map[string]any)
	result["contents"].([]any)[0].(map[string]any)["result"].(map[string]any)["exit_code"] = code
}

func nothing(*script) {}

var lost = entryLine("lost", "reason", "r")

// sounds are folders that are unusual, and right: nothing is found, and nothing of what allowed
// a call is in doubt.
var sounds = map[string]func(*folder){
	// I9: what clients have set
	"a rule about commands":          allowedBy(object{"allow": []any{rule("commands", "echo")}}, byRules("shell(echo *)")),
	"a rule with a star":             allowedBy(object{"allow": []any{rule("Shell", "echo h*")}}, byRules("shell(echo h*)")),
	"a rule without an argument":     allowedBy(object{"allow": []any{rule("shell", "")}}, object{"by": "rule", "rules": []any{"shell"}}),
	"a rule for the place":           allowedBy(object{"fromLocation": []any{rule("shell", nil)}}, byRules("shell")),
	"all":                            allowedBy(object{"allowAll": true}, object{"by": "set"}),
	"any address":                    allowedBy(object{"anyUrl": true, "allow": []any{rule("shell", nil)}}, byRules("shell", "url")),
	"an address":                     allowedBy(object{"urls": []any{"https://x.test/"}, "allow": []any{rule("shell", nil)}}, byRules("shell", "url(https://x.test/*)")),
	"a grant of a client":            allowedBy(object{"allow": []any{object{"grant": object{"kind": "shell", "command": echoed}}}}, object{"by": "grant", "grants": []any{object{"kind": "shell", "command": echoed}}, "command": echoed}),
	"a rule that denies other words": allowedBy(object{"allowAll": true, "deny": []any{rule("bash", "rm")}}, object{"by": "set"}),
	"all reads": changed("back", func(l *script) {
		l.insert(l.at("tool.execution_start", 2), "permissions.configured", object{"allowReads": true})
		l.decide(2, object{"by": "rule", "rules": []any{"read"}})
	}),
	"a tool of a client": changed("asks", func(l *script) {
		l.insert(l.at("tool.execution_start", 3), "permissions.configured", object{"allow": []any{rule("custom-tool", "fetch")}})
		l.set("external_tool.requested", 2, "decision", object{"by": "grant", "grants": []any{object{"kind": "custom-tool", "subject": "fetch"}}})
	}),

	// I9: words
	"a rule for every call": changed("hooks", func(l *script) {
		l.set("session.configured", 1, "permissions", object{"allow": []any{"bash"}})
		l.decide(1, object{"by": "rule", "rules": []any{"bash"}})
	}),
	"two grants": granted(object{}, object{"kind": "shell", "command": "'echo' 'no'"}, object{"kind": "shell", "command": "'echo' 'yes'"}),
	"a rule and a grant": func(f *folder) {
		granted(object{"by": "rule", "rules": []any{"bash"}}, object{"kind": "shell", "command": "'echo' 'no'"})(f)
		changed("denied", func(l *script) { l.set("session.configured", 1, "permissions", object{"allow": []any{"bash"}}) })(f)
	},
	"a tool that shows a command": changed("asks", func(l *script) {
		l.get(l.at("permission.requested", 2)).Data["permissionRequest"].(map[string]any)["fullCommandText"] = "true"
	}),
	"a grant that is revoked when it was used": changed("denied", func(l *script) {
		at := l.at("tool.execution_begun", 2)
		l.insert(at+1, "grants.reset", object{})
		l.repeat(at, at+2, object{"attempt": 2})
	}),

	// I4: records
	"a call that failed has no record":                 removed(1, func(l *script) { failed(l, 1) }),
	"a task that was lost has no record":               removed(2, func(l *script) { failed(l, 2); l.set("task.reported", 1, "status", "lost") }),
	"a command that was lost has no code":              rewritten(1, func(p *process) { p.lines[p.find("exited")] = lost }, nothing),
	"a command that a signal has ended":                rewritten(1, func(p *process) { p.lines[p.find("exited")] = entryLine("exited", "status", "9", "kept", "4") }, func(l *script) { exitCode(l, 137) }),
	"an end that was found before its keeper was lost": rewritten(2, func(p *process) { p.with("exited", lost) }, nothing),
	"an end that came after its keeper was lost": rewritten(2, func(p *process) { p.with("started", lost) }, func(l *script) {
		l.set("task.reported", 1, "status", "lost")
	}),
	"a task that could not be started": rewritten(2, func(p *process) {
		p.without("exited").without("ended").lines[p.find("started")] = entryLine("failed", "reason", "r")
	}, func(l *script) { failed(l, 2); l.set("task.reported", 1, "status", "none") }),
	"two results": changed("commands", func(l *script) {
		exitCode(l, 9)
		result := l.get(l.at("tool.execution_complete", 1)).Data["result"].(map[string]any)
		result["contents"] = append(result["contents"].([]any), object{"type": "text", "text": "more"})
	}),
	"the output of a keeper that was lost": func(f *folder) {
		p := f.process("talk", "k")
		p.lines[p.find("exited")], p.lines[p.find("ended")] = lost, entryLine("ended", "bytes", "9", "kept", "9")
		p.save()
	},
	"output that was dropped": func(f *folder) {
		p := f.process("talk", "k")
		p.lines[p.find("ended")] = entryLine("ended", "bytes", "9", "kept", "9")
		p.with("ended", entryLine("dropped", "time", "1")).save()
	},
}

func TestWhatIsRightHasNoFindings(t *testing.T) {
	for name, change := range sounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			change(f)
			r := f.audit(audit.Options{})
			for _, found := range r.Findings {
				t.Errorf("found: %+v", found)
			}
			for _, d := range r.Unknown {
				if d.Invariant == "I9" {
					t.Errorf("in doubt: %+v", d)
				}
			}
		})
	}
}

// A record may be removed a month after its command has ended.
func TestARecordIsExpectedForAMonth(t *testing.T) {
	f := newFolder(t)
	removed(1, nothing)(f)
	removed(2, nothing)(f)
	l := f.script("commands")
	ended, err := time.Parse(time.RFC3339, l.get(l.at("task.reported", 1)).Time)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]int{28 * 24 * time.Hour: 3, 31 * 24 * time.Hour: 0} {
		if r := f.audit(audit.Options{Now: ended.Add(after)}); len(r.Findings) != want {
			t.Errorf("%v later: %d findings, want %d: %+v", after, len(r.Findings), want, r.Findings)
		}
	}
}

// A command whose keeper is gone is lost, and the engine has recorded that.
func TestAKeeperThatIsGoneAndRecordedAsLostIsNoFinding(t *testing.T) {
	f := newFolder(t)
	f.process("talk", "k").without("exited").without("ended").with("started", lost).save()
	hold(t, f.dir)
	if r := f.audit(audit.Options{}); !r.Clean() {
		t.Errorf("%+v", r.Findings)
	}
}
