package audit_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/audit/stored"
)

// renamed makes the second call of a session one of a tool that nobody knows.
func renamed(l *script) {
	at := l.at("tool.execution_start", 2)
	l.get(at).Data["toolName"] = "mine"
	for _, r := range l.get(at - 1).Data["toolRequests"].([]any) {
		r.(map[string]any)["name"] = "mine"
	}
}

// doubts are what cannot be decided: it is told, and is no finding.
var doubts = []fault{
	{"envelope.unknown-kind", "talk", added("future.kind", object{"a": 1}), nil},
	{"start.version", "talk", edited("session.start", 1, "version", 2), nil},
	{"begun.class-unrecorded", "back", func(l *script) int64 {
		l.age()
		renamed(l)
		l.set("session.configured", 1, "approve", "all")
		at := l.at("tool.execution_begun", 2)
		return l.repeat(at, at+1, object{"attempt": 2})
	}, nil},
	{"decision.unrecorded", "back", func(l *script) int64 {
		l.age()
		renamed(l)
		l.set("session.configured", 1, "approve", "workspace")
		l.set("tool.execution_begun", 1, "granted", nil)
		return l.at("tool.execution_begun", 2)
	}, nil},
	{"decision.which", "denied", func(l *script) int64 {
		l.age()
		return l.at("tool.execution_begun", 2)
	}, nil},
}

func TestWhatIsNotRecordedIsUnknown(t *testing.T) {
	for _, c := range doubts {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			l := f.script(c.session)
			at := c.spoil(l)
			l.save()
			r := f.audit(audit.Options{})
			if !r.Clean() {
				t.Errorf("findings: %+v", r.Findings)
			}
			if d := doubtOf(r, c.rule); d.Session != c.session || d.Seq != at || d.Count != 1 || r.Verdicts[d.Invariant] != audit.Unknown {
				t.Errorf("got %+v at verdict %s, want one at event %d; all are %+v", d, r.Verdicts[d.Invariant], at, r.Unknown)
			}
		})
	}
}

func doubtOf(r *audit.Report, rule string) audit.Doubt {
	for _, d := range r.Unknown {
		if d.Rule == rule {
			return d
		}
	}
	return audit.Doubt{}
}

func TestSignalsToDescendantsAreUnknown(t *testing.T) {
	f := newFolder(t)
	ofProcess(f.process("talk", "k").with("started", entryLine("signal", "signal", "15", "pid", "300", "start", "9")))
	r := f.audit(audit.Options{})
	if d := doubtOf(r, "signal.descendants"); !r.Clean() || d.Session != "talk" || r.Verdicts["I7"] != audit.Unknown {
		t.Errorf("findings %+v, unknown %+v", r.Findings, r.Unknown)
	}
}

func TestWhatFollowsAnUnreadableEventIsUnknown(t *testing.T) {
	f := newFolder(t)
	l := f.script("back")
	l.get(l.at("tool.execution_start", 1)).spoil = func(string) string { return "{}" }
	l.save()
	r := f.audit(audit.Options{})
	if d := doubtOf(r, "session.unread"); len(r.Findings) != 1 || d.Session != "back" {
		t.Errorf("findings %+v, unknown %+v", r.Findings, r.Unknown)
	}
}

// claimedByUs is the claim of a keeper that is this test: it lives.
func claimedByUs(t *testing.T) string {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))[19]
	return entryLine("claimed", "pid", strconv.Itoa(os.Getpid()), "start", start, "boot", strings.TrimSpace(string(boot)), "namespace", namespace)
}

// stoppedCommand makes a session in which a person has stopped a turn whose command
// runs on.
func stoppedCommand(f *folder) (task int64, stopped time.Time) {
	l := f.script("stopped")
	at := l.insert(l.at("permission.completed", 1)+1, "tool.execution_begun", object{"toolCallId": callOf(l, 1), "key": "k", "attempt": 1, "granted": true, "detaches": true})
	l.set("permission.completed", 1, "result", object{"kind": "approved"})
	task = l.insert(at+1, "task.started", object{"key": "k", "toolCallId": callOf(l, 1)})
	stopped, err := time.Parse(time.RFC3339, l.get(l.at("abort", 1)).Time)
	if err != nil {
		f.t.Fatal(err)
	}
	l.save()
	f.info("stopped", "tasks", 1)
	f.exec("UPDATE sessions SET active = 1 WHERE name = 'stopped'")
	p := f.process("stopped", "k").without("exited").without("ended")
	p.lines[0] = claimedByUs(f.t)
	p.save()
	return task, stopped
}

func TestACommandThatRunsOnAfterAnAbortIsNamed(t *testing.T) {
	f := newFolder(t)
	task, stopped := stoppedCommand(f)
	r := f.audit(audit.Options{Now: stopped.Add(2 * time.Minute)})
	expect(t, r, audit.Finding{Rule: "stopped.command", Session: "stopped", Seq: task}, nil)
	r = f.audit(audit.Options{Now: stopped.Add(30 * time.Second)})
	if !r.Clean() {
		t.Errorf("a command has a minute to end: %+v", r.Findings)
	}
}

// hold takes the lock that an engine has.
func hold(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// A keeper that is gone is recorded as lost by the engine; without one, nobody has
// noticed yet.
func TestAKeeperThatIsGoneIsTheEnginesMatter(t *testing.T) {
	f := newFolder(t)
	want := ofProcess(f.process("talk", "k").without("exited").without("ended"))
	if r := f.audit(audit.Options{}); !r.Clean() || r.Engine {
		t.Errorf("without an engine: %+v", r)
	}
	hold(t, f.dir)
	want.Rule = "process.keeper-gone"
	expect(t, f.audit(audit.Options{}), want, nil)
}

// A running engine may be about to remove what is left of a session.
func TestWhatARunningEngineMayRemoveIsUnknown(t *testing.T) {
	f := newFolder(t)
	ofProcess(f.process("nobody", "k"))
	if err := os.MkdirAll(filepath.Join(f.dir, "sessions", "ghost"), 0o700); err != nil {
		t.Fatal(err)
	}
	hold(t, f.dir)
	r := f.audit(audit.Options{})
	if !r.Clean() || doubtOf(r, "process.orphaned").Count != 1 || doubtOf(r, "folder.orphaned").Count != 1 {
		t.Errorf("findings %+v, unknown %+v", r.Findings, r.Unknown)
	}
}

// The next engine finishes a deletion that was written down.
func TestADeletionThatWasWrittenDownIsUnfinished(t *testing.T) {
	f := newFolder(t)
	ofProcess(f.process("Nobody", "k"))
	for _, name := range []string{"sessions/" + stored.FolderOf("Nobody"), "sessions/agent-of-it", "deletions"} {
		if err := os.MkdirAll(filepath.Join(f.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if r := f.audit(audit.Options{}); len(r.Findings) != 3 {
		t.Errorf("without a note of it: %+v", r.Findings)
	}
	note := filepath.Join(f.dir, "deletions", stored.FolderOf("Nobody")+".json")
	if err := os.WriteFile(note, []byte(`{"session":"Nobody","agents":["agent-of-it"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.audit(audit.Options{}); !r.Clean() {
		t.Errorf("with a note of it: %+v", r.Findings)
	}
}

// Whatever page of the file is lost, the auditor says something true and does not
// break.
func TestEveryLostPageIsSurvived(t *testing.T) {
	f := newFolder(t)
	f.db.Close()
	path := filepath.Join(f.dir, "abide.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]bool)
	const page = 8192
	for at := page; at+page <= len(whole); at += page {
		broken := slices.Clone(whole)
		clear(broken[at : at+page])
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := audit.Run(t.Context(), f.dir, audit.Options{})
		if err != nil {
			continue // the file is refused as a whole
		}
		for _, found := range r.Findings {
			rules[found.Rule] = true
		}
	}
	if !rules["store.unreadable"] {
		t.Errorf("no page that holds records was named; found were %v", slices.Sorted(maps.Keys(rules)))
	}
}

// Every rule is tried by a test, and docs/AUDIT.md says what it means.
func TestEveryRuleIsTriedAndExplained(t *testing.T) {
	tried := map[string]bool{
		"stopped.command": true, "process.keeper-gone": true, "store.unreadable": true,
		"session.unread": true, "signal.descendants": true, "process.elsewhere": true,
	}
	for _, list := range [][]fault{faults, doubts} {
		for _, c := range list {
			tried[c.rule] = true
		}
	}
	for _, c := range blows {
		tried[c.rule] = true
	}
	text, err := os.ReadFile("../../docs/AUDIT.md")
	if err != nil {
		t.Fatal(err)
	}
	for rule, invariant := range audit.Rules() {
		if !tried[rule] {
			t.Errorf("no test breaks the rule %s", rule)
		}
		if !strings.Contains(string(text), fmt.Sprintf("`%s`", rule)) {
			t.Errorf("docs/AUDIT.md does not explain the rule %s of %s", rule, invariant)
		}
	}
	for rule := range tried {
		if audit.Rules()[rule] == "" {
			t.Errorf("there is no rule %s", rule)
		}
	}
	if len(faults)+len(blows) < 100 {
		t.Errorf("%d kinds of broken logs and records are tried, want 100", len(faults)+len(blows))
	}
}

func TestFoldersOfSessionsAreNamedAsTheyAreOnDisk(t *testing.T) {
	for id, want := range map[string]string{"s": "s", "a-b_1": "a-b_1", "": ".e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"} {
		if got := stored.FolderOf(id); got != want {
			t.Errorf("the folder of %q is %q, want %q", id, got, want)
		}
	}
	if got := stored.FolderOf("Ünder/../x"); !strings.HasPrefix(got, "nderx.") {
		t.Errorf("the folder of an id with slashes is %q", got)
	}
}
