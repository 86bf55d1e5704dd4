package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/files"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// TestMain runs all tests with each kind of workspace: the answers of the tools are the
// same, byte for byte, wherever the files are.
func TestMain(m *testing.M) {
	code := bridgetest.RunEverywhere(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// A fixture is a working directory, the tools, and a session.
type fixture struct {
	t     testing.TB
	dir   string
	files workspace.Files
	scope *scope.Scope
	kept  *files.Checkpoints
	tools map[string]tool.Tool
	calls int
}

// newFiles returns the files of the workspace under test.
func newFiles(t testing.TB, dir string) workspace.Files {
	return bridgetest.FilesOf(t, local.New(dir, nil))
}

// newFixture returns a fixture with a session that may write in its working directory.
func newFixture(t testing.TB) *fixture {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, dir: filepath.Join(root, "work"), files: newFiles(t, root), tools: map[string]tool.Tool{}}
	b.kept = files.NewCheckpoints(filepath.Join(root, "kept"), b.files)
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.allow([]scope.Rule{{Target: b.dir, Mode: scope.Write}})
	for _, tool := range files.New(files.Options{
		Files:       func(tool.Call) (workspace.Files, error) { return b.files, nil },
		Scope:       func(context.Context, tool.Call) (*scope.Scope, error) { return b.scope, nil },
		Checkpoints: func(event.SessionID) (*files.Checkpoints, error) { return b.kept, nil },
	}) {
		b.tools[tool.Spec().Name] = tool
	}
	return b
}

func (b *fixture) allow(allow []scope.Rule, deny ...scope.Rule) {
	var err error
	if b.scope, err = scope.New(allow, deny); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) path(name string) string { return filepath.Join(b.dir, name) }

func (b *fixture) put(name, text string) {
	path := b.path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) content(name string) string {
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// call returns a call of a tool. Arguments are JSON, in which $ at the start of a text
// stands for the working directory.
func (b *fixture) call(arguments string) tool.Call {
	b.calls++
	return tool.Call{
		Session: "s", ID: fmt.Sprintf("call-%d", b.calls), Key: fmt.Sprintf("key-%d", b.calls), Attempt: 1,
		Arguments: json.RawMessage(strings.NewReplacer(`"$/`, `"`+b.dir+`/`, `"$"`, `"`+b.dir+`"`).Replace(arguments)), Dir: b.dir,
	}
}

// run makes a call as a turn does: it asks for permission first.
func (b *fixture) run(name, arguments string) tool.Result {
	b.t.Helper()
	r, _ := b.runCall(name, b.call(arguments))
	return r
}

func (b *fixture) runCall(name string, call tool.Call) (tool.Result, *approval.Request) {
	b.t.Helper()
	request, err := b.tools[name].Permission(b.t.Context(), call)
	var refused *tool.Refusal
	if errors.As(err, &refused) {
		return refused.Result, nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return b.mustRun(name, call), request
}

func (b *fixture) mustRun(name string, call tool.Call) tool.Result {
	b.t.Helper()
	r, err := b.tools[name].Run(b.t.Context(), call)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestSpecsMatchTheProtocol(t *testing.T) {
	b := newFixture(t)
	for name, want := range map[string]struct {
		replay   tool.Replay
		required string
	}{
		"view": {tool.Pure, "path"}, "create": {tool.Keyed, "path file_text"}, "edit": {tool.Keyed, "path old_str new_str"},
		"grep": {tool.Pure, "pattern"}, "glob": {tool.Pure, "pattern"},
	} {
		spec := b.tools[name].Spec()
		var schema struct {
			Type       string
			Properties map[string]struct{ Description string }
			Required   []string
		}
		if err := json.Unmarshal(spec.Parameters, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: %v", name, err)
		}
		if spec.Replay != want.replay || strings.Join(schema.Required, " ") != want.required || len(spec.Description) < 40 {
			t.Errorf("%s: %+v", name, spec)
		}
		for property, p := range schema.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", name, property)
			}
		}
	}
}

func TestInvalidArgumentsAreReported(t *testing.T) {
	b := newFixture(t)
	for _, test := range []struct{ tool, arguments, want string }{
		{"view", `{}`, `Invalid input: "path": Required`},
		{"view", ``, `Invalid input: "path": Required`},
		{"view", `{"path":null}`, `Invalid input: "path": Required`},
		{"view", `{"path":1}`, `Invalid input: "path": Expected string, received number`},
		{"view", `[1]`, "Invalid input: Multiple validation errors:\n- Expected JSON object but got array\n- \"path\": Required"},
		{"view", `{"path":"x","view_range":"1"}`, `Invalid input: "view_range": Expected array, received string`},
		{"view", `{"path":"x","view_range":[1.5]}`, `Invalid input: "view_range.0": Expected integer, received float`},
		{"view", `{"path":"x","view_range":["1"]}`, `Invalid input: "view_range.0": Expected number, received string`},
		{"view", `{"path":"x","forceReadLargeFiles":"yes"}`, `Invalid input: "forceReadLargeFiles": Expected boolean, received string`},
		{"view", `{"path":""}`, `A path parameter is required, and must be a non-empty string.`},
		{"view", `{"path":"x","view_range":[0,1]}`, `Invalid view_range: start line (0) must be greater than or equal to 1.`},
		{"view", `{"path":"x","view_range":[4,2]}`, `Invalid view_range: end line (2) must be greater than or equal to start line (4).`},
		{"view", `{"path":"x","view_range":[4,0]}`, `Invalid view_range: end line (0) must be greater than or equal to start line (4).`},
		{"view", `{"path":"x","view_range":[]}`, `Invalid view_range: it must have the first line and the last line, not 0 numbers.`},
		{"create", `{}`, "Invalid input: Multiple validation errors:\n- \"path\": Required\n- \"file_text\": Required"},
		{"create", `{"path":"x","file_text":["a"]}`, `Invalid input: "file_text": Expected string, received array`},
		{"edit", `{"path":"x"}`, `Invalid inputs: old_str is required`},
		{"edit", `{"path":"x","old_str":"","new_str":""}`, `Invalid inputs: old_str is required`},
		{"edit", `{"path":"x","old_str":"a"}`, `Invalid inputs: new_str is required`},
		{"edit", `{"path":"x","old_str":1,"new_str":true}`, "Invalid input: Multiple validation errors:\n- \"old_str\": Expected string, received number\n- \"new_str\": Expected string, received boolean"},
		{"grep", `{"path":"x"}`, `Invalid input: "pattern": Required`},
		{"grep", `{"pattern":"x","output_mode":"bogus"}`, `Invalid input: "output_mode": Invalid enum value. Expected 'files_with_matches' | 'content' | 'count', received 'bogus'`},
		{"grep", `{"pattern":"x","-A":-1}`, `Invalid input: "-A": Number must be greater than or equal to 0`},
		{"grep", `{"pattern":"x","-A":1e99}`, `Invalid input: "-A": Expected integer, received float`},
		{"grep", `{"pattern":"x","paths":{}}`, `Invalid input: "paths": Expected string or array of strings, received object`},
		{"glob", `{"pattern":{}}`, `Invalid input: "pattern": Expected string, received object`},
	} {
		r := b.run(test.tool, test.arguments)
		if r.Text != test.want || !r.Failed || r.Code != event.CodeFailure {
			t.Errorf("%s %s:\n%q, want\n%q", test.tool, test.arguments, r.Text, test.want)
		}
		if rest, ok := strings.CutPrefix(test.want, "Invalid input: "); ok && r.Message != rest {
			t.Errorf("%s %s: the message is %q", test.tool, test.arguments, r.Message)
		}
	}
}

// request returns the permission request of a call.
func (b *fixture) request(name, arguments string) (*approval.Request, map[string]any) {
	b.t.Helper()
	r, err := b.tools[name].Permission(b.t.Context(), b.call(arguments))
	if err != nil {
		b.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(r.Ask, &fields); err != nil {
		b.t.Fatal(err)
	}
	if string(r.Ask) != string(r.Prompt) {
		b.t.Errorf("people are shown %s", r.Prompt)
	}
	return r, fields
}

func TestPermissionToReadIsAsked(t *testing.T) {
	b := newFixture(t)
	b.allow(nil)
	b.put("a.txt", "x")
	for _, test := range []struct{ tool, arguments, path, intention string }{
		{"view", `{"path":"$/a.txt"}`, "$/a.txt", "Read file: $/a.txt"},
		{"view", `{"path":"a.txt"}`, "$/a.txt", "Read file: $/a.txt"},
		{"view", `{"path":"$"}`, "$", "List directory: $"},
		{"view", `{"path":"$/none"}`, "$/none", "Read file: $/none"},
		{"grep", `{"pattern":"x","path":"$/a.txt"}`, "$/a.txt", "Search in file: $/a.txt"},
		{"grep", `{"pattern":"x"}`, "$", "Search in directory: $"},
		{"glob", `{"pattern":"x"}`, "$", "Search for files matching pattern in: $"},
		{"glob", `{"pattern":"x","paths":["/","a.txt"]}`, "/, $/a.txt", "Search for files matching pattern in: /, $/a.txt"},
	} {
		r, fields := b.request(test.tool, test.arguments)
		for field, want := range map[string]string{"kind": "read", "toolCallId": fmt.Sprintf("call-%d", b.calls), "path": test.path, "intention": test.intention} {
			if want = strings.ReplaceAll(want, "$", b.dir); fields[field] != want {
				t.Errorf("%s %s: %s is %v, want %s", test.tool, test.arguments, field, fields[field], want)
			}
		}
		if r.Kind != approval.Read || r.Allowed {
			t.Errorf("%s %s: %+v", test.tool, test.arguments, r)
		}
		for _, path := range r.Details {
			if isFolder := path == "/" || path == b.dir; slices.Contains(r.Folders, path) != isFolder {
				t.Errorf("%s %s: %s is a folder: %v", test.tool, test.arguments, path, isFolder)
			}
		}
	}
	b.allow([]scope.Rule{{Target: b.dir, Mode: scope.Read}})
	if r, _ := b.request("view", `{"path":"a.txt"}`); !r.Allowed {
		t.Error("what the scope allows is asked")
	}
	if r, _ := b.request("grep", `{"pattern":"x","paths":["a.txt","/etc"]}`); r.Allowed || !slices.Contains(r.Details, "/etc") {
		t.Errorf("of two paths one is outside: %+v", r)
	}
}

func TestPermissionToWriteShowsTheChange(t *testing.T) {
	b := newFixture(t)
	b.allow(nil)
	b.put("a.txt", "one\ntwo\nthree\n")
	p := b.path("a.txt")
	_, fields := b.request("edit", `{"path":"a.txt","old_str":"two","new_str":"2"}`)
	want := map[string]any{
		"kind": "write", "toolCallId": "call-1", "intention": "Edit file", "fileName": p, "canOfferSessionApproval": true,
		"diff":            "\ndiff --git a" + p + " b" + p + "\nindex 0000000..0000000 100644\n--- a" + p + "\n+++ b" + p + "\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
		"newFileContents": "one\n2\nthree\n",
	}
	for field, value := range want {
		if fields[field] != value {
			t.Errorf("%s is %q, want %q", field, fields[field], value)
		}
	}
	n := b.path("new.txt")
	_, fields = b.request("create", `{"path":"new.txt","file_text":"SDK content"}`)
	for field, value := range map[string]any{
		"kind": "write", "intention": "Create file", "fileName": n, "newFileContents": "SDK content",
		"diff": "\ndiff --git a" + n + " b" + n + "\ncreate file mode 100644\nindex 0000000..0000000\n--- a/dev/null\n+++ b" + n + "\n@@ -0,0 +1 @@\n+SDK content\n\\ No newline at end of file\n",
	} {
		if fields[field] != value {
			t.Errorf("%s is %q, want %q", field, fields[field], value)
		}
	}
}

func TestALargeChangeIsShownInPart(t *testing.T) {
	b := newFixture(t)
	r, fields := b.request("create", `{"path":"new.txt","file_text":`+quoted(strings.Repeat("line\n", 500_000))+`}`)
	if len(r.Ask) > 3<<19 || fields["newFileContents"] != nil || !strings.Contains(fields["diff"].(string), " bytes are not shown]\n") {
		t.Errorf("%d bytes", len(r.Ask))
	}
	b.put("big.txt", strings.Repeat("line\n", 1_000_000)+"here\n"+strings.Repeat("line\n", 1_000_000))
	_, fields = b.request("edit", `{"path":"big.txt","old_str":"here","new_str":"there"}`)
	if diff := fields["diff"].(string); !strings.Contains(diff, "@@ -999998,7 +999998,7 @@\n line\n line\n line\n-here\n+there\n line\n line\n line\n") {
		t.Errorf("%.500q", diff)
	}
}

func TestAFailingChangeIsNotAsked(t *testing.T) {
	b := newFixture(t)
	b.allow(nil) // everything would have to be asked
	b.put("a.txt", "a a")
	for name, arguments := range map[string]string{
		"edit":   `{"path":"a.txt","old_str":"a","new_str":"b"}`,
		"create": `{"path":"a.txt","file_text":"b"}`,
	} {
		if _, err := b.tools[name].Permission(t.Context(), b.call(arguments)); err == nil {
			t.Errorf("%s is asked about", name)
		}
	}
}

// TestAFailureRevealsNothingOutside: otherwise a model could find out the content of
// files by trying, without anybody being asked.
func TestAFailureRevealsNothingOutside(t *testing.T) {
	b := newFixture(t)
	outside := filepath.Join(filepath.Dir(b.dir), "secret")
	if err := os.WriteFile(outside, []byte("key=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{
		`{"path":"` + outside + `","old_str":"key=1","new_str":"x"}`,
		`{"path":"` + outside + `","old_str":"key=2","new_str":"x"}`,
		`{"path":"` + outside + `/none","old_str":"key=2","new_str":"x"}`,
		`{"path":"../secret","old_str":"key=2","new_str":"x"}`,
	} {
		r, _ := b.request("edit", arguments)
		if r.Allowed {
			t.Errorf("%s is allowed", arguments)
		}
		if got := b.mustRun("edit", b.call(arguments)); got.Code != event.CodeDenied || strings.Contains(got.Text, "match") {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
	r, _ := b.request("create", `{"path":"`+outside+`","file_text":"x"}`)
	if r.Allowed {
		t.Error("creating is allowed")
	}
}

func TestADeniedPathIsRefusedWithoutAsking(t *testing.T) {
	b := newFixture(t)
	b.put("no/file", "secret")
	b.allow([]scope.Rule{{Target: b.dir, Mode: scope.Write}}, scope.Rule{Target: b.path("no"), Mode: scope.Read})
	for name, arguments := range map[string]string{
		"view":   `{"path":"no/file"}`,
		"edit":   `{"path":"no/file","old_str":"secret","new_str":"x"}`,
		"create": `{"path":"no/new","file_text":"x"}`,
		"grep":   `{"pattern":"secret","path":"no"}`,
		"glob":   `{"pattern":"*","path":"no"}`,
	} {
		r := b.run(name, arguments)
		if !r.Failed || r.Code != event.CodeDenied || !strings.Contains(r.Text, "a rule denies "+b.path("no")) {
			t.Errorf("%s: %+v", name, r)
		}
		call := b.call(arguments)
		call.Granted = true
		if r := b.mustRun(name, call); !r.Failed || strings.Contains(r.Text, "secret") {
			t.Errorf("%s, granted: %+v", name, r)
		}
	}
	if r := b.run("grep", `{"pattern":"secret"}`); !strings.HasPrefix(r.Text, "No matches found.\n\n[1 path(s) could not be searched, for instance: "+b.path("no")) {
		t.Errorf("%q", r.Text)
	}
}

func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	b := newFixture(t)
	root := filepath.Dir(b.dir)
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../one", b.path("link")); err != nil {
		t.Fatal(err)
	}
	call := b.call(`{"path":"link"}`)
	request, err := b.tools["view"].Permission(t.Context(), call)
	if err != nil || request.Allowed || request.Details[0] != filepath.Join(root, "one") || !strings.Contains(string(request.Ask), "(leads to "+root+"/one)") {
		t.Fatalf("%+v, %s, %v", request, request.Ask, err)
	}
	if r := b.mustRun("view", call); r.Code != event.CodeDenied {
		t.Errorf("without a yes: %+v", r)
	}
	call.Granted, call.Asked = true, request.Ask
	if r := b.mustRun("view", call); r.Text != "one" {
		t.Errorf("with a yes: %+v", r)
	}
	if err := errors.Join(os.Remove(b.path("link")), os.Symlink("../two", b.path("link"))); err != nil {
		t.Fatal(err)
	}
	if r := b.mustRun("view", call); r.Code != event.CodeDenied {
		t.Errorf("the link was turned: %+v", r)
	}
	call.Asked, call.Decision = nil, &event.Decision{By: event.ByGrant, Paths: []string{filepath.Join(root, "one")}}
	if r := b.mustRun("view", call); r.Code != event.CodeDenied {
		t.Errorf("the link was turned after a grant was judged by where it led: %+v", r)
	}
	call.Decision = nil // a grant that an older version has judged allows the call
	if r := b.mustRun("view", call); r.Text != "two" {
		t.Errorf("with a yes to everything: %+v", r)
	}
	two := b.call(`{"pattern":"o","paths":["link","` + root + `/one"]}`)
	request, err = b.tools["grep"].Permission(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	two.Granted, two.Asked = true, request.Ask
	if r := b.mustRun("grep", two); r.Text != "link\n"+root+"/one" {
		t.Errorf("two paths: %q", r.Text)
	}
	write := b.call(`{"path":"` + root + `/one","old_str":"one","new_str":"1"}`)
	request, err = b.tools["edit"].Permission(t.Context(), write)
	if err != nil {
		t.Fatal(err)
	}
	write.Granted, write.Asked = true, request.Ask
	if r := b.mustRun("edit", write); r.Failed {
		t.Errorf("a write outside: %+v", r)
	}
}
