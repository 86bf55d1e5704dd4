package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// withFolder returns the files of a workspace with a folder that the workspace does not
// have, and both folders.
func withFolder(t *testing.T) (files workspace.Files, there, own string) {
	t.Helper()
	there = t.TempDir()
	own = filepath.Join(t.TempDir(), "own")
	must(t, os.Mkdir(own, 0o700))
	served, err := local.NewServed(there, nil, local.Options{Confine: true}) // it cannot reach the folder
	must(t, err)
	here, err := local.NewServed(own, nil, local.Options{Confine: true})
	must(t, err)
	return workspace.WithFolder(bridgetest.Over(t, "memory", served).Files, own, here.Files), there, own
}

// A workspace with a folder of this machine keeps all promises about scopes and projects,
// in the workspace and in the folder.
func TestAWorkspaceWithAFolderKeepsItsPromises(t *testing.T) {
	for name, suite := range map[string]func(*testing.T, workspacetest.Open){"Scoped": workspacetest.Scoped, "Projects": workspacetest.Projects} {
		t.Run(name+"There", func(t *testing.T) {
			suite(t, func(t *testing.T) *workspacetest.Fixture {
				files, there, _ := withFolder(t)
				p := &workspacetest.Fixture{Dir: there}
				p.Use(workspace.Workspace{Files: files})
				return p
			})
		})
	}
	t.Run("ScopedHere", func(t *testing.T) {
		workspacetest.Scoped(t, func(t *testing.T) *workspacetest.Fixture {
			files, _, own := withFolder(t)
			p := &workspacetest.Fixture{Dir: own}
			p.Use(workspace.Workspace{Files: files})
			return p
		})
	})
}

// liar is a workspace that says where a path leads.
type liar struct {
	workspace.Files
	leads string
}

func (l liar) Judge(context.Context, *scope.Scope, ...workspace.Question) ([]workspace.Judgement, error) {
	return []workspace.Judgement{{Finding: scope.Finding{Verdict: scope.Allowed, Path: l.leads}}}, nil
}

// A rewind would write to where the workspace says that a path led.
func TestNoPathOfTheWorkspaceLeadsIntoTheFolder(t *testing.T) {
	own := t.TempDir()
	for leads, refused := range map[string]bool{own: true, own + "/plan.md": true, own + "/../f": false, own + "s/f": false} {
		files := workspace.WithFolder(liar{leads: leads}, own, nil)
		found, err := files.Judge(t.Context(), new(scope.Scope), workspace.Question{Path: "/src/f", Mode: scope.Write})
		must(t, err)
		if j := found[0]; (j.Path == "") != refused || errors.Is(j.Err, fs.ErrPermission) != refused || refused && j.Verdict != scope.Denied {
			t.Errorf("a path that leads to %s: %+v", leads, j)
		}
	}
}

func TestTheFolderIsUsedInPlaceOfTheWorkspace(t *testing.T) {
	files, there, own := withFolder(t)
	ctx := t.Context()
	outside := filepath.Join(filepath.Dir(own), "key")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(there, "f"), []byte("a\nb\n"), 0o600))
	plan := filepath.Join(own, "plan.md")
	must(t, files.WriteFile(ctx, workspace.At(plan), []byte("The plan\n"), workspace.WriteOptions{}))
	must(t, os.Symlink(outside, filepath.Join(own, "link")))
	s, err := files.Scope(ctx, []scope.Rule{{Target: there, Mode: scope.Write}, {Target: own, Mode: scope.Write}, {Target: filepath.Dir(own)}}, nil)
	must(t, err)
	s = s.Protecting(func(path string) (string, bool) {
		if strings.HasSuffix(path, "/plan.md") {
			return "a reason", true
		}
		return "", false
	})

	found, err := files.Judge(ctx, s, workspace.Question{Path: there + "/f", Mode: scope.Write, Most: 100}, workspace.Question{Path: plan, Mode: scope.Write, Most: 100},
		workspace.Question{Path: outside, Most: 100}, workspace.Question{Path: own + "/link", Most: 100})
	must(t, err)
	if string(found[0].Content) != "a\nb\n" || found[0].Protected != "" || string(found[1].Content) != "The plan\n" || found[1].Protected != "a reason" {
		t.Errorf("judged are %+v", found)
	}
	for _, j := range found[2:] {
		if j.Verdict != scope.Denied || len(j.Content) > 0 {
			t.Errorf("what is outside of both: %+v", j)
		}
	}
	for path, want := range map[string]string{there + "/f": "a\nb\n", plan: "The plan\n"} {
		if shown, err := files.Show(ctx, s, workspace.ShowRequest{Path: path, MaxWhole: 100}); string(shown.Content) != want || err != nil {
			t.Errorf("%s shows %q, %v", path, shown.Content, err)
		}
		q := workspace.GrepQuery{Pattern: "a", Roots: []workspace.SearchRoot{{Path: filepath.Dir(path), Given: "."}}, Limits: workspace.Limits{Keep: 10, PerGroup: 1, Text: 1000}}
		if got, err := files.Grep(ctx, s, q); got.Puts != 1 || err != nil {
			t.Errorf("a search in %s finds %+v, %v", filepath.Dir(path), got, err)
		}
	}
	if counts, err := files.Count(ctx, plan, there+"/f", outside, own); err != nil || counts[0] != 1 || counts[1] != 2 || counts[2] != -1 || counts[3] != 2 {
		t.Errorf("counted are %v, %v", counts, err)
	}
	if err := files.Rename(ctx, workspace.At(plan), workspace.At(there+"/plan")); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("moved out: %v", err)
	}
	if entries, err := os.ReadDir(there); len(entries) != 1 || err != nil {
		t.Errorf("the workspace has %v, %v", entries, err)
	}
}
