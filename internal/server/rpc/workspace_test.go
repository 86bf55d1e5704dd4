package rpc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

func TestFilesOfASession(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	list := func() []string {
		var r api.FilesResult
		p.must(api.WorkspaceListFiles, object{"sessionId": "s"}, &r)
		return r.Files
	}
	read := func(path string) string {
		var r api.ContentResult
		p.must(api.WorkspaceReadFile, object{"sessionId": "s", "path": path}, &r)
		return *r.Content
	}
	if got := list(); got == nil || len(got) > 0 {
		t.Errorf("at first the files are %v", got)
	}
	for _, test := range []struct{ path, content, operation string }{
		{"a.txt", "one", "create"}, {"deep/er/b.txt", "", "create"}, {"a.txt", "two", "update"},
	} {
		p.must(api.WorkspaceCreateFile, object{"sessionId": "s", "path": test.path, "content": test.content}, nil)
		d := data[event.WorkspaceFileChangedData](t, p.await(event.WorkspaceFileChanged))
		if d.Path != test.path || d.Operation != test.operation || read(test.path) != test.content {
			t.Errorf("%+v: told %+v, it holds %q", test, d, read(test.path))
		}
	}
	if got := list(); !slices.Equal(got, []string{"a.txt", "deep/er/b.txt"}) {
		t.Errorf("the files are %v", got)
	}
	var paste api.PasteResult
	p.must(api.WorkspaceSavePaste, object{"sessionId": "s", "content": "long 🚀"}, &paste)
	if b, err := os.ReadFile(paste.Saved.FilePath); err != nil || string(b) != "long 🚀" || read(paste.Saved.Filename) != "long 🚀" || paste.Saved.SizeBytes != 9 {
		t.Errorf("saved is %+v with %q, %v", paste.Saved, b, err)
	}
	var at api.GetWorkspaceResult
	p.must(api.WorkspaceEnsure, object{"sessionId": "s"}, &at)
	if at.Workspace == nil || at.Workspace.ID != "s" || at.Workspace.Cwd == "" || at.Workspace.UserNamed || at.Path == "" {
		t.Errorf("the workspace is %+v", at)
	}
	p.must(api.NameSet, object{"sessionId": "s", "name": "mine"}, nil)
	p.must(api.WorkspaceGet, object{"sessionId": "s"}, &at)
	if at.Workspace.Name != "mine" || !at.Workspace.UserNamed {
		t.Errorf("the workspace is %+v", *at.Workspace)
	}
}

// Nothing outside of the folder is read or written, whatever leads there.
func TestFilesOfASessionAreItsOwn(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var at api.GetWorkspaceResult
	p.must(api.WorkspaceEnsure, object{"sessionId": "s"}, &at)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(at.Path, "files", "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"../plan.md": "workspace files directory", "a/../../x": "workspace files directory", "/etc/passwd": "workspace files directory", ".": "workspace files directory",
		"": "path: it is empty", "link/secret": "escapes",
	} {
		for method, params := range map[string]object{api.WorkspaceReadFile: {}, api.WorkspaceCreateFile: {"content": "bad"}} {
			params["sessionId"], params["path"] = "s", path
			if fault := p.refused(method, params); !strings.Contains(fault.Message, want) {
				t.Errorf("%s %q: %s", method, path, fault.Message)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "x" {
		t.Errorf("what is outside holds %q, %v", b, err)
	}
	for method, want := range map[string]string{api.WorkspaceCreateFile: "content: it is missing", api.WorkspaceReadFile: "File not found: a", api.WorkspaceReadCheckpoint: "number: it is missing", api.WorkspaceDiff: `mode: ""`} {
		if fault := p.refused(method, object{"sessionId": "s", "path": "a"}); !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %s", method, fault.Message)
		}
	}
}

func TestCheckpointsAreListedAndRead(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var at api.GetWorkspaceResult
	p.must(api.WorkspaceEnsure, object{"sessionId": "s"}, &at)
	dir := filepath.Join(at.Path, "checkpoints")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"010-the-end.md": "ten", "002-a-start.md": "two", "index.md": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var list api.CheckpointsResult
	p.must(api.WorkspaceListCheckpoints, object{"sessionId": "s"}, &list)
	want := []api.CheckpointInfo{{Number: 2, Title: "a start", Filename: "002-a-start.md"}, {Number: 10, Title: "the end", Filename: "010-the-end.md"}}
	if !slices.Equal(list.Checkpoints, want) {
		t.Errorf("the checkpoints are %+v", list.Checkpoints)
	}
	var text, none api.ContentResult
	p.must(api.WorkspaceReadCheckpoint, object{"sessionId": "s", "number": 10}, &text)
	p.must(api.WorkspaceReadCheckpoint, object{"sessionId": "s", "number": 1<<62 - 1}, &none)
	if text.Content == nil || *text.Content != "ten" || none.Content != nil {
		t.Errorf("number 10 is %v, another one %v", text.Content, none.Content)
	}
}

func TestWhatHasChangedInTheWorkingDirectory(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newFiled(t).open(api.SessionCreate, object{"workingDirectory": dir})
	changes := func(mode string) (api.DiffResult, string) {
		t.Helper()
		var r api.DiffResult
		p.must(api.WorkspaceDiff, object{"sessionId": "s", "mode": mode}, &r)
		var list []string
		for _, c := range r.Changes {
			list = append(list, c.ChangeType+" "+c.OldPath+" "+c.Path)
			if !c.IsTruncated && !strings.Contains(c.Diff, filepath.Base(c.Path)) {
				t.Errorf("%s: the diff is %q", c.Path, c.Diff)
			}
		}
		slices.Sort(list)
		return r, strings.Join(list, ", ")
	}
	if r, got := changes("unstaged"); got != "" || r.Changes == nil { // no repository
		t.Errorf("%+v", r)
	}
	git("init", "-q", "-b", "main")
	write("kept", "a\nb\nc\nd\n")
	write("gone", "1\n2\n3\n")
	write("moved", "x\ny\nz\nw\n")
	git("add", ".")
	git("commit", "-qm", "one")
	git("switch", "-qc", "work")
	write("committed", "new\n")
	git("add", ".")
	git("commit", "-qm", "two")
	write("kept", "a\nb\nC\nd\n")
	write("with space", "new\n")
	git("mv", "moved", "there")
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	const since = "added  with space, deleted  gone, modified  kept, renamed moved there"
	if r, got := changes("unstaged"); got != since || r.IsFallback {
		t.Errorf("since the last commit: %s", got)
	}
	if r, got := changes("branch"); got != "added  committed, "+since || r.BaseBranch != "main" || r.Mode != "branch" {
		t.Errorf("since the branch: %s, %+v", got, r)
	}
	if r, got := changes("session"); got != since || !r.IsFallback || r.Mode != "unstaged" || r.RequestedMode != "session" || r.Unavailable == "" {
		t.Errorf("of the session: %s, %+v", got, r)
	}
	write("kept", strings.Repeat("long\n", maxFileDiff/5+1))
	if r, _ := changes("unstaged"); !slices.ContainsFunc(r.Changes, func(c api.FileChange) bool { return c.Path == "kept" && c.IsTruncated && c.Diff == "" }) {
		t.Error("a long diff is not left out")
	}
}

const maxFileDiff = 256 << 10
