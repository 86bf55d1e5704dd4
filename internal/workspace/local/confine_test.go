package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func confined(t *testing.T, dir string) workspace.Files {
	t.Helper()
	ws, err := local.NewServed(dir, nil, local.Options{Confine: true})
	must(t, err)
	return ws.Files
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScopedFilesInAConfinedFolder(t *testing.T) {
	workspacetest.Scoped(t, func(t *testing.T) *workspacetest.Fixture {
		fixture := &workspacetest.Fixture{Dir: t.TempDir()}
		fixture.Use(workspace.Workspace{Files: confined(t, fixture.Dir)})
		return fixture
	})
}

func TestProjectsInAConfinedFolder(t *testing.T) {
	workspacetest.Projects(t, func(t *testing.T) *workspacetest.Fixture {
		fixture := &workspacetest.Fixture{Dir: t.TempDir()}
		fixture.Use(workspace.Workspace{Files: confined(t, fixture.Dir)})
		return fixture
	})
}

func TestGuardedFilesInAConfinedFolder(t *testing.T) {
	workspacetest.Guarded(t, func(t *testing.T) *workspacetest.Fixture {
		fixture := &workspacetest.Fixture{Dir: t.TempDir()}
		fixture.Use(workspace.Workspace{Files: confined(t, fixture.Dir)})
		return fixture
	})
}

func TestChangesInAConfinedFolder(t *testing.T) {
	workspacetest.Changes(t, func(t *testing.T) *workspacetest.Fixture {
		fixture := &workspacetest.Fixture{Dir: t.TempDir()}
		fixture.Use(workspace.Workspace{Files: confined(t, fixture.Dir)})
		return fixture
	})
}

// TestNoChangesAreToldFromOutsideOfAConfinedFolder: a repository above the folder, and one
// that a file in the folder names, are outside.
func TestNoChangesAreToldFromOutsideOfAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	for _, args := range [][]string{{"init", "-q", outside}, {"init", "-q", filepath.Dir(outside)}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Skipf("git: %v, %s", err, out)
		}
	}
	files, ctx := confined(t, dir), t.Context()
	if found, err := files.Changes(ctx, workspace.ChangesRequest{Dir: dir}); err != nil || len(found.Files) > 0 {
		t.Errorf("of the repository above: %+v, %v", found, err)
	}
	for _, path := range []string{outside, dir + "/out", filepath.Dir(outside)} {
		if found, err := files.Changes(ctx, workspace.ChangesRequest{Dir: path}); !errors.Is(err, fs.ErrPermission) || len(found.Files) > 0 {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+outside+"/.git\n"), 0o600))
	if found, err := files.Changes(ctx, workspace.ChangesRequest{Dir: dir}); !errors.Is(err, fs.ErrPermission) || len(found.Files) > 0 {
		t.Errorf("of a repository elsewhere: %+v, %v", found, err)
	}
	_ = os.RemoveAll(filepath.Join(outside, ".git"))
	checkOutside(t, outside)
}

// TestNoSurveyLeavesAConfinedFolder: neither a look nor a change.
func TestNoSurveyLeavesAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(outside), ".git", "hooks"), 0o755)) // the repository is larger than the folder
	must(t, os.Symlink("../outside/secret", filepath.Join(dir, ".envrc")))
	files, ctx := confined(t, dir), t.Context()
	paths := []string{outside + "/secret", dir + "/out/secret", dir + "/file", dir + "/../outside/secret", dir + "/.envrc", dir + "/new", dir + "/out/none"}
	known := map[string]protect.State{dir + "/f": {}}
	for _, path := range paths {
		known[path] = protect.State{}
	}
	found, err := files.Survey(ctx, workspace.SurveyRequest{Dirs: []string{dir, outside}, Known: known})
	must(t, err)
	if string(found.States[dir+"/f"].Content) != "f" {
		t.Errorf("inside: %+v", found.States[dir+"/f"])
	}
	for path, state := range found.States {
		if !strings.HasPrefix(path, dir) && !strings.HasPrefix(path, filepath.Join(filepath.Dir(dir), "dir")+"/") || strings.Contains(string(state.Content), "secret") {
			t.Errorf("%s: %+v", path, state)
		}
	}
	for _, path := range paths {
		if _, ok := found.States[path]; ok {
			t.Errorf("%s was looked at", path)
		}
		now := protect.Look(path, protect.State{})
		if err := files.Restore(ctx, path, now, protect.State{Exists: true, Content: []byte("bad"), Digest: protect.Digest([]byte("bad")), Mode: 0o600}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("restore %s: %v", path, err)
		}
	}
	checkOutside(t, outside)
}

// TestNoLinkIsRestoredOutOfAConfinedFolder: what a link leads to is written with it, so that
// it must stay inside.
func TestNoLinkIsRestoredOutOfAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	files, ctx := confined(t, dir), t.Context()
	want := func(link string) protect.State {
		return protect.State{Exists: true, Link: link, Content: []byte("bad"), Digest: protect.Digest([]byte("bad")), Mode: 0o600}
	}
	for path, links := range map[string][]string{
		dir + "/made": {
			outside + "/secret", "../outside/secret", "../../outside/secret", outside + "/new", "out/secret", "file", "new", "root" + outside + "/secret", "out/../outside/secret", "in/../../outside/secret",
		},
		dir + "/sub/made": {"../file", "../out/secret", "../../outside/secret", outside + "/secret"},
	} {
		for _, link := range links {
			if err := files.Restore(ctx, path, protect.State{}, want(link)); err == nil {
				t.Errorf("a link from %s to %s was made", path, link)
			}
			_ = os.Remove(path)
			checkOutside(t, outside)
		}
	}
	for path, link := range map[string]string{"made": "sub/g", "sub/made": "../f", "sub/other": "g"} {
		must(t, files.Restore(ctx, filepath.Join(dir, path), protect.State{}, want(link)))
		if got, err := os.ReadFile(filepath.Join(dir, path)); string(got) != "bad" || err != nil {
			t.Errorf("%s, a link that stays inside: %q, %v", path, got, err)
		}
	}
}

// TestNoDotsLeaveAConfinedFolder: after a link, ".." leads elsewhere than the letters of a
// path say.
func TestNoDotsLeaveAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	must(t, os.Mkdir(filepath.Join(filepath.Dir(outside), "deep"), 0o755))
	must(t, os.Mkdir(filepath.Join(filepath.Dir(outside), "deep", "er"), 0o755))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(outside), "deep", "secret"), []byte("secret"), 0o600))
	must(t, os.Symlink("../deep/er", filepath.Join(dir, "er")))
	files, ctx := confined(t, dir), t.Context()
	for _, path := range []string{dir + "/er/../secret", dir + "/out/../deep/secret", dir + "/sub/../er/../secret"} {
		found, err := files.Survey(ctx, workspace.SurveyRequest{Known: map[string]protect.State{path: {}}, Only: true})
		if err != nil || len(found.States) > 0 {
			t.Errorf("%s was looked at: %+v, %v", path, found.States, err)
		}
		for _, q := range []disk.Question{{Kind: disk.Leads, Path: path}, {Kind: disk.Folder, Path: path}, {Kind: disk.Name, Path: path + "x"}} {
			if a, err := files.Look(ctx, q); err != nil || a[0] != disk.Unknown(q) {
				t.Errorf("%+v is answered with %+v, %v", q, a, err)
			}
		}
		bad := protect.State{Exists: true, Content: []byte("bad"), Digest: protect.Digest([]byte("bad")), Mode: 0o600}
		if err := files.Restore(ctx, path, protect.Look(path, protect.State{}), bad); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("restore %s: %v", path, err)
		}
		if got, err := os.ReadFile(path); string(got) != "secret" || err != nil {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
}

// TestNoConfigurationIsToldFromOutsideOfAConfinedFolder: a repository in the folder can have
// its configuration elsewhere.
func TestNoConfigurationIsToldFromOutsideOfAConfinedFolder(t *testing.T) {
	for name, text := range map[string]string{"Link": "", "Pointer": "gitdir: "} {
		t.Run(name, func(t *testing.T) {
			dir, outside := confinedTree(t)
			elsewhere := filepath.Join(filepath.Dir(outside), "elsewhere")
			must(t, os.MkdirAll(elsewhere, 0o755))
			must(t, os.WriteFile(filepath.Join(elsewhere, "config"), []byte("[remote \"origin\"]\n\turl = https://secret\n"), 0o600))
			if text == "" {
				must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
				must(t, os.Symlink(filepath.Join(elsewhere, "config"), filepath.Join(dir, ".git", "config")))
			} else {
				must(t, os.WriteFile(filepath.Join(dir, ".git"), []byte(text+elsewhere+"\n"), 0o600))
			}
			q := disk.Question{Kind: disk.Remotes, Path: dir}
			if found, err := confined(t, dir).Look(t.Context(), q); err != nil || found[0] != disk.Unknown(q) {
				t.Errorf("of a repository in the folder: %+v, %v", found, err)
			}
		})
	}
}

// TestNoLookLeavesAConfinedFolder: what is outside is not known, be it a repository around
// the folder or a program.
func TestNoLookLeavesAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(outside), ".git"), 0o755))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(outside), ".git", "config"), []byte("[remote \"origin\"]\n\turl = secret\n"), 0o600))
	files := confined(t, dir)
	for _, q := range []disk.Question{
		{Kind: disk.Leads, Path: outside + "/secret"}, {Kind: disk.Leads, Path: dir + "/out/secret"}, {Kind: disk.Name, Path: outside}, {Kind: disk.Folder, Path: dir + "/out"},
		{Kind: disk.Place, Path: dir}, {Kind: disk.Remotes, Path: dir}, {Kind: disk.Submodules, Path: dir}, {Kind: disk.Repository, Path: outside}, {Kind: disk.Program, Path: "ls", With: "/usr/bin:/bin"},
	} {
		if found, err := files.Look(t.Context(), q); err != nil || found[0] != disk.Unknown(q) {
			t.Errorf("%+v: %+v, %v", q, found, err)
		}
	}
	found, err := files.Look(t.Context(), disk.Question{Kind: disk.Name, Path: dir + "/f"})
	if err != nil || !found[0].OK {
		t.Errorf("inside: %+v, %v", found, err)
	}
}

// TestNoCollectionLeavesAConfinedFolder: not even to find out what exists outside of it.
func TestNoCollectionLeavesAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	root := filepath.Dir(outside)
	must(t, os.Mkdir(filepath.Join(root, ".git"), 0o755)) // the repository is larger than the folder
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("secret"), 0o644))
	must(t, os.Symlink("../outside/none", filepath.Join(dir, "vague")))
	files, ctx := confined(t, dir), t.Context()
	for _, s := range []workspace.Selection{
		{Dir: outside, Names: []string{"secret"}}, {Dir: outside, Pattern: "*"}, {Dir: root, Names: []string{"f"}}, {Dir: dir, Names: []string{"../outside/secret"}},
		{Dir: dir, Names: []string{"file", "out/secret", "root" + outside + "/secret"}}, {Dir: dir, Pattern: "*/secret"}, {Dir: dir, Pattern: "out/*"},
		{Dir: dir, Names: []string{"file"}, Within: []string{root}}, {Dir: dir + "/out", Names: []string{"secret"}, Within: []string{outside}}, {Dir: dir, Pattern: "vag*"},
	} {
		s.Most = 100
		found, err := files.Collect(ctx, s)
		must(t, err)
		for _, f := range found[0] {
			if f.Err == nil || len(f.Content) > 0 {
				t.Errorf("%+v: %s, %q, %v", s, f.Path, f.Content, f.Err)
			}
		}
	}
	if found, err := files.Collect(ctx, workspace.Selection{Dir: dir + "/sub", Names: []string{"f", "g"}, Above: true, Most: 100}); err != nil || len(found[0]) != 2 || string(found[0][1].Content) != "f" {
		t.Errorf("in the folders above: %+v, %v", found, err)
	}
	real, err := files.Collect(ctx, workspace.Selection{Dir: dir, Names: []string{"file"}, Most: 100})
	must(t, err)
	vague, err := files.Collect(ctx, workspace.Selection{Dir: dir, Names: []string{"vague"}, Most: 100})
	if err != nil || len(real[0]) != len(vague[0]) {
		t.Errorf("what exists outside can be told from what does not: %+v, %+v", real, vague)
	}
	counts, err := files.Count(ctx, outside+"/secret", outside, dir+"/file", dir+"/out", dir+"/out/secret", dir+"/f", dir)
	if fmt.Sprint(counts) != "[-1 -1 -1 -1 -1 1 8]" || err != nil {
		t.Errorf("%v, %v", counts, err)
	}
}

// confinedTree makes a folder with links that lead out of it, reached through a link, and a
// secret beside it.
func confinedTree(t *testing.T) (dir, outside string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	outside, dir = filepath.Join(root, "outside"), filepath.Join(root, "alias")
	for _, path := range []string{"outside/secret", "dir/f", "dir/sub/g", "dir-beside/secret"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(filepath.Base(path)), 0o644))
	}
	for link, to := range map[string]string{"alias": "dir", "dir/out": "../outside", "dir/file": "../outside/secret", "dir/in": "sub", "dir/new": "../outside/new", "dir/root": "/"} {
		must(t, os.Symlink(to, filepath.Join(root, link)))
	}
	return dir, outside
}

// outsidePaths are paths that lead out of a confined folder.
func outsidePaths(dir, outside string) []workspace.Path {
	return []workspace.Path{
		workspace.At(outside + "/secret"), workspace.At("../outside/secret"), workspace.At(dir + "/../outside/secret"), workspace.At("out/secret"),
		workspace.At(dir + "/file"), workspace.At("root" + outside + "/secret"), workspace.At("sub/../../outside/secret"), workspace.At("../dir-beside/secret"),
		workspace.Below(outside, "secret"), workspace.Below("out", "secret"), workspace.Below("/", outside[1:]+"/secret"), workspace.Below("..", "outside/secret"),
		workspace.Below(dir+"/root", outside[1:]+"/secret"), workspace.Below(filepath.Dir(outside), "outside/secret"),
	}
}

func TestNoFileCallLeavesAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	files, ctx := confined(t, dir), t.Context()
	for _, p := range outsidePaths(dir, outside) {
		calls := map[string]error{}
		_, calls["read"] = files.ReadFile(ctx, p)
		_, calls["open"] = files.Open(ctx, p, 0)
		_, calls["list"] = files.List(ctx, p, workspace.ListOptions{})
		_, calls["create"] = files.Create(ctx, p, workspace.WriteOptions{})
		calls["write"] = files.WriteFile(ctx, p, []byte("bad"), workspace.WriteOptions{})
		calls["make"] = files.Mkdir(ctx, workspace.Path{Root: p.Root, Name: p.Name + "/x"})
		calls["rename to"] = files.Rename(ctx, workspace.At("f"), p)
		for call, err := range calls {
			if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, workspace.ErrLink) && !(call == "rename to" && err == nil && p.Name == dir+"/file") {
				t.Errorf("%s %s: %v", call, p, err)
			}
		}
		if calls["rename to"] == nil { // it has replaced the link itself, inside
			must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o644))
			must(t, errors.Join(os.Remove(filepath.Join(dir, "file")), os.Symlink("../outside/secret", filepath.Join(dir, "file"))))
		}
		if p.Name == dir+"/file" {
			continue // the link itself may be described and deleted
		}
		if _, err := files.Stat(ctx, p); err == nil {
			t.Errorf("stat %s", p)
		}
		if err := files.Delete(ctx, p, true); err == nil {
			t.Errorf("delete %s", p)
		}
	}
	for name, want := range map[string]string{"f": "f", dir + "/sub/g": "g", filepath.Join(filepath.Dir(dir), "dir", "f"): "f"} {
		if got, err := files.ReadFile(ctx, workspace.At(name)); string(got) != want || err != nil {
			t.Errorf("inside, %s: %q, %v", name, got, err)
		}
	}
	checkOutside(t, outside)
}

// TestNoScopeLeavesAConfinedFolder: not even rules that allow everything.
func TestNoScopeLeavesAConfinedFolder(t *testing.T) {
	dir, outside := confinedTree(t)
	files, ctx := confined(t, dir), t.Context()
	wide := map[string]*scope.Scope{
		"everything":     scope.Data{Allow: []scope.Allowance{{Path: "/", Mode: scope.Write}}}.Scope(),
		"no path at all": scope.Data{Allow: []scope.Allowance{{Path: "", Mode: scope.Write}}}.Scope(),
		"dots":           scope.Data{Allow: []scope.Allowance{{Path: filepath.Join(filepath.Dir(dir), "dir") + "/../outside", Mode: scope.Write}}}.Scope(),
		"the folder":     new(scope.Scope).With(outside, scope.Write),
		"the file":       new(scope.Scope).With(outside+"/secret", scope.Write),
	}
	for name, s := range wide {
		for _, path := range []string{outside + "/secret", dir + "/out/secret", dir + "/file", dir + "/root" + outside + "/secret", dir + "/../outside/secret"} {
			found, err := files.Judge(ctx, s, workspace.Question{Path: path, Mode: scope.Write, Most: 100}, workspace.Question{Path: path})
			must(t, err)
			for _, j := range found {
				if j.Verdict != scope.Denied || len(j.Content) > 0 || j.Err == nil || !strings.Contains(j.Rule, "everything outside of ") {
					t.Errorf("%s, judge %s: %+v", name, path, j)
				}
			}
			_, shown := files.Show(ctx, s, workspace.ShowRequest{Path: path, MaxWhole: 100})
			_, grepped := files.Grep(ctx, s, workspace.GrepQuery{Pattern: "s", Roots: []workspace.SearchRoot{{Path: path, Given: "x"}}})
			_, globbed := files.Glob(ctx, s, workspace.GlobQuery{Pattern: "*", Roots: []workspace.SearchRoot{{Path: filepath.Dir(outside), Given: "x"}}})
			applied := files.Apply(ctx, s, workspace.Change{Path: path, Leads: outside + "/secret", Before: workspace.Digest([]byte("secret")), New: []byte("bad")})
			for _, err := range []error{shown, grepped, globbed, applied} {
				if !errors.As(err, new(*scope.Refusal)) {
					t.Errorf("%s, %s: %v", name, path, err)
				}
			}
		}
	}
	shown, err := files.Show(ctx, wide["everything"], workspace.ShowRequest{Path: dir + "/in/g", MaxWhole: 100})
	if string(shown.Content) != "g" || err != nil {
		t.Errorf("a link that stays inside: %q, %v", shown.Content, err)
	}
	checkOutside(t, outside)
}

// checkOutside checks that nothing was changed beside a confined folder.
func checkOutside(t *testing.T, outside string) {
	t.Helper()
	entries, err := os.ReadDir(outside)
	must(t, err)
	content, err := os.ReadFile(filepath.Join(outside, "secret"))
	if len(entries) != 1 || string(content) != "secret" || err != nil {
		t.Errorf("outside there is %v, %q, %v", entries, content, err)
	}
}
