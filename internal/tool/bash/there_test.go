package bash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A machine is another machine: its root is a folder of this one. Its programs are those
// of a list.
type machine struct {
	workspace.Files
	root     string
	programs []string
	rounds   int
	err      error
}

func (m *machine) Look(ctx context.Context, asked ...disk.Question) ([]disk.Answer, error) {
	if m.rounds++; m.err != nil {
		return nil, m.err
	}
	here := make([]disk.Question, len(asked))
	for i, q := range asked {
		here[i] = disk.Question{Kind: q.Kind, Path: m.root + q.Path, With: q.With}
	}
	found, err := m.Files.Look(ctx, here...)
	for i, a := range found {
		found[i].Text = strings.TrimPrefix(a.Text, m.root)
		if asked[i].Kind == disk.Program {
			found[i] = disk.Answer{OK: strings.Contains(strings.Join(m.programs, " "), asked[i].Path)}
		}
	}
	return found, err
}

func (m *machine) Judge(ctx context.Context, _ *scope.Scope, asked ...workspace.Question) ([]workspace.Judgement, error) {
	list := make([]workspace.Judgement, len(asked))
	for i, q := range asked {
		real, err := filepath.EvalSymlinks(m.root + q.Path)
		if err != nil {
			real = m.root + q.Path
		}
		list[i].Finding = scope.Finding{Path: strings.TrimPrefix(real, m.root), Verdict: scope.Allowed}
		if strings.HasPrefix(list[i].Path, "/secret") {
			list[i].Verdict = scope.Denied
		}
		if strings.HasSuffix(list[i].Path, "/.bashrc") {
			list[i].Protected = "a shell runs it there"
		}
	}
	return list, nil
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"src/.git", "src/other/.git", "home", "secret"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"home/.bashrc", "secret/key"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"src/up": "other", "src/aside": "../secret/key", "src/rc": "../home/.bashrc"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return &machine{Files: local.New(root, nil).Files, root: root, programs: []string{"git", "cat"}}
}

// permissionThere returns the request for a command that is to run on a machine.
func permissionThere(t *testing.T, m *machine, command string) (*approval.Request, error) {
	t.Helper()
	c := bash.New(bash.Options{
		Notes:     func(event.SessionID) (string, error) { return t.TempDir(), nil },
		Env:       func(context.Context, tool.Call) ([]string, error) { return []string{"PATH=/usr/bin:/bin"}, nil },
		Elsewhere: func(context.Context, tool.Call) (workspace.Scoped, error) { return m, nil },
		Scope: func(context.Context, tool.Call) (*scope.Scope, error) {
			return scope.New([]scope.Rule{{Target: "/src", Mode: scope.Write}}, []scope.Rule{{Target: "/secret", Mode: scope.Read}})
		},
	})
	for _, one := range c.Tools() {
		if one.Spec().Name == "bash" {
			return one.Permission(t.Context(), tool.Call{Session: "s", ID: "c", Key: "k", Attempt: 1, Dir: "/src", Arguments: []byte(`{"command":"` + command + `"}`)})
		}
	}
	t.Fatal("there is no bash")
	return nil, nil
}

// verdictThere returns what is decided about a command that a rule allows, and why.
func verdictThere(t *testing.T, m *machine, command, rule string) string {
	t.Helper()
	ask, err := permissionThere(t, m, command)
	if err != nil {
		t.Fatal(err)
	}
	ask.Tool = "bash"
	d := approval.Judge(approval.Workspace, event.PermissionRules{Allow: []string{"bash(" + rule + ")"}}, nil, ask)
	if d.Verdict == approval.Grant {
		return "allowed"
	}
	return d.Reason + ask.Protected
}

func TestACommandIsJudgedByTheMachineThatItRunsOn(t *testing.T) {
	m := newMachine(t)
	for command, want := range map[string]string{
		"cat f":                   `"readOnly":true`,
		"ls":                      `"readOnly":false`, // the program is the system's here, and not there
		"git -C up status":        "another repository, /src/other",
		"git -C none status":      "cannot be followed",
		"cat aside":               "/src/aside",
		"git log > rc":            "a shell runs it there",
		"git -C /elsewhere log":   "cannot be followed",
		"git -C up/../other log":  "another repository, /src/other",
		"git -C ./up/. log":       "another repository, /src/other",
		"git -C /src/up/ log":     "another repository, /src/other",
		"cat aside | cat":         "/src/aside",
		"cat /src/./aside":        "/src/aside",
		"git log > /home/.bashrc": "a shell runs it there",
	} {
		rule := strings.Fields(command)[0] + " *"
		ask, err := permissionThere(t, m, command)
		if err != nil {
			t.Fatal(err)
		}
		if got := verdictThere(t, m, command, rule) + string(ask.Ask); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if got := verdictThere(t, m, "git status", "git status"); got != "allowed" {
		t.Errorf("git status: %s", got)
	}
	m.err = errors.New("the workspace is away")
	if _, err := permissionThere(t, m, "git status"); !errors.Is(err, m.err) {
		t.Errorf("while it is away: %v", err)
	}
}

// A workspace that is asked for its environment and does not answer keeps nobody: the look
// ends with its context.
func TestALookEndsWhileTheEnvironmentIsNotKnown(t *testing.T) {
	c := bash.New(bash.Options{Env: func(ctx context.Context, _ tool.Call) ([]string, error) {
		if ctx.Done() == nil {
			return nil, errors.New("nothing could end this")
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}})
	gone := errors.New("nobody needs it")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, one := range c.Tools() {
		if one.Spec().Name != "bash" {
			continue
		}
		if _, err := one.Permission(ctx, tool.Call{Session: "s", ID: "c", Key: "k", Attempt: 1, Dir: "/src", Arguments: []byte(`{"command":"true"}`)}); !errors.Is(err, gone) {
			t.Errorf("the error is %v", err)
		}
	}
}
