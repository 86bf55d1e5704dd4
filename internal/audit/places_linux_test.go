package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/audit"
)

// elsewhere moves the commands of the session "commands" to a workspace. It returns the data
// folder of that workspace.
func (f *folder) elsewhere() string {
	f.t.Helper()
	l := f.script("commands")
	l.set("session.configured", 1, "workspace", object{"name": "box", "address": "unix:/w", "identity": "it"})
	l.save()
	f.info("commands", "workspace", object{"name": "box", "address": "unix:/w", "identity": "it"})
	dir := f.t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "workspace", "processes"), 0o700),
		os.WriteFile(filepath.Join(dir, "workspace", "identity"), []byte("it\n"), 0o600),
	} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	for n := 1; n <= 2; n++ {
		from := f.command("commands", n).path("")
		if err := os.Rename(from, filepath.Join(dir, "workspace", "processes", filepath.Base(from))); err != nil {
			f.t.Fatal(err)
		}
	}
	return dir
}

func TestCommandsInAWorkspaceAreRecordedThere(t *testing.T) {
	f := newFolder(t)
	dir := f.elsewhere()
	r := f.audit(audit.Options{})
	if d := doubtOf(r, "process.elsewhere"); !r.Clean() || d.Session != "commands" || d.Count < 3 || r.Verdicts["I4"] != audit.Unknown {
		t.Errorf("without the records: findings %+v, unknown %+v", r.Findings, r.Unknown)
	}
	r = f.audit(audit.Options{Workspaces: []string{dir}})
	if d := doubtOf(r, "process.elsewhere"); !r.Clean() || d.Count != 0 || r.Verdicts["I4"] != audit.OK {
		t.Errorf("with the records: findings %+v, unknown %+v", r.Findings, r.Unknown)
	}
	records, err := filepath.Glob(filepath.Join(dir, "workspace", "processes", "*"))
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	for _, record := range records {
		if err := os.RemoveAll(record); err != nil {
			t.Fatal(err)
		}
	}
	rules := make(map[string]bool)
	for _, found := range f.audit(audit.Options{Workspaces: []string{dir}}).Findings {
		rules[found.Rule] = true
	}
	if !rules["process.missing"] || !rules["task.missing"] {
		t.Errorf("records are gone, and the findings are of %v", rules)
	}
	if _, err := audit.Run(t.Context(), f.dir, audit.Options{Workspaces: []string{t.TempDir()}}); err == nil {
		t.Error("any folder is that of a workspace")
	}
}

// A person gives up a command whose workspace is away, and it ends there nevertheless. That
// it was reported as lost is what the person wanted; a report in other words is a finding.
func TestACommandThatWasGivenUpMayEndInItsWorkspace(t *testing.T) {
	for text, clean := range map[string]bool{
		"A background task was given up: task. Its workspace cannot be reached.": true,
		"A background task was lost: task.":                                      false,
	} {
		f := newFolder(t)
		dir := f.elsewhere()
		l := f.script("commands")
		l.set("task.reported", 1, "status", "lost")
		l.set("task.reported", 1, "text", text)
		l.set("system.notification", 1, "content", text)
		l.save()
		if r := f.audit(audit.Options{Workspaces: []string{dir}}); r.Clean() != clean {
			t.Errorf("%q: the findings are %+v", text, r.Findings)
		}
	}
}
