package walk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace/local/walk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree creates a folder with files, given as "path" or "path: content".
func tree(t *testing.T, files ...string) string {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, text, _ := strings.Cut(file, ": ")
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func allow(t *testing.T, root string, deny ...string) *scope.Scope {
	var denied []scope.Rule
	for _, path := range deny {
		denied = append(denied, scope.Rule{Target: filepath.Join(root, path), Mode: scope.Read})
	}
	s, err := scope.New([]scope.Rule{{Target: root, Mode: scope.Read}}, denied)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// visit walks and returns the paths of the files, sorted.
func visit(t *testing.T, s *scope.Scope, folder string, o walk.Options) ([]string, walk.Problems) {
	open := descriptors(t)
	dir, err := s.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var paths []string
	problems, err := walk.Tree(t.Context(), dir, o, func(worker int, f walk.File) error {
		if worker < 0 || worker >= walk.Workers() {
			t.Errorf("worker %d", worker)
		}
		opened, err := f.Dir.Open(f.Name)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, f.Path+f.Name)
		return opened.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if now := descriptors(t); now != open {
		t.Errorf("%d files are open, and before it were %d", now, open)
	}
	slices.Sort(paths)
	return paths, problems
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAllFilesAreVisitedOnce(t *testing.T) {
	root := tree(t, "a", "b/c", "b/d/e", ".hidden", ".h/x", ".git/config", "sub/.git/config")
	if err := errors.Join(os.Symlink("a", root+"/link"), os.Symlink("b", root+"/folder"), os.Mkdir(root+"/empty", 0o755)); err != nil {
		t.Fatal(err)
	}
	got, problems := visit(t, allow(t, root), root, walk.Options{})
	if diff := cmp.Diff([]string{".h/x", ".hidden", "a", "b/c", "b/d/e"}, got); diff != "" || problems.Count > 0 {
		t.Errorf("%v\n%s", problems, diff)
	}
}

func TestIgnoreFilesAreHonoured(t *testing.T) {
	root := tree(t, ".git/info/exclude: secret\n", ".gitignore: *.log\n/build/\n", "a.log", "a", "secret", "build/x",
		"src/.gitignore: !keep.log\n*.tmp\n", "src/keep.log", "src/x.log", "src/x.tmp", "src/deep/y.tmp", "src/deep/z",
		"other/.git: gitdir: elsewhere", "other/a.log", "other/.gitignore: b\n", "other/b")
	s := allow(t, root)
	all := walk.Options{Honour: true}
	got, problems := visit(t, s, root, all)
	want := []string{".gitignore", "a", "other/.gitignore", "other/a.log", "src/.gitignore", "src/deep/z", "src/keep.log"}
	if diff := cmp.Diff(want, got); diff != "" || problems.Count > 0 {
		t.Errorf("%v\n%s", problems, diff)
	}
	for folder, want := range map[string][]string{
		"src/deep": {"z"},
		"other":    {".gitignore", "a.log"},
		"build":    {"x"}, // the walk begins in an ignored folder
	} {
		path := filepath.Join(root, folder)
		got, _ := visit(t, s, path, walk.Options{Honour: true, Ignore: walk.Above(s, path)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", folder, diff)
		}
	}
	narrow := allow(t, filepath.Join(root, "src"))
	if rules := walk.Above(narrow, filepath.Join(root, "src/deep")); rules != nil {
		t.Error("rules were read outside of the scope")
	}
}

func TestAFilterDecidesFirst(t *testing.T) {
	root := tree(t, ".gitignore: *.log\n", "a.log", "b.log", "c.txt", "skip/d.txt", ".git/e.log")
	got, _ := visit(t, allow(t, root), root, walk.Options{Honour: true, Filter: func(path, name string, isFolder bool) walk.Choice {
		switch {
		case name == "skip" && isFolder, name == ".gitignore":
			return walk.Leave
		case name == "a.log", name == ".git", path == ".git/":
			return walk.Take
		}
		return walk.Neither
	}})
	if diff := cmp.Diff([]string{".git/e.log", "a.log", "c.txt"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeniedFilesAreCounted(t *testing.T) {
	root := tree(t, "a", "no/b", "no/c", "yes/file", "yes/secret")
	got, problems := visit(t, allow(t, root, "no", "yes/secret"), root, walk.Options{})
	if diff := cmp.Diff([]string{"a", "yes/file"}, got); diff != "" {
		t.Error(diff)
	}
	if problems.Count != 2 || !strings.Contains(fmt.Sprint(problems.First), root+"/no ") {
		t.Errorf("%d problems, %v", problems.Count, problems.First)
	}
}

func TestALargeFolderIsVisitedCompletely(t *testing.T) {
	root := tree(t, ".gitignore: *9\n")
	const files, folders = 5000, 5000
	for i := range files {
		if err := os.WriteFile(fmt.Sprintf("%s/f%d", root, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range folders {
		if err := os.Mkdir(fmt.Sprintf("%s/d%d", root, i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(root+"/d1234/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, problems := visit(t, allow(t, root), root, walk.Options{Honour: true})
	if want := files*9/10 + 2; len(got) != want || problems.Count > 0 {
		t.Errorf("%d files, want %d; %v", len(got), want, problems)
	}
}

func TestATreeThatIsTooDeepIsCutOff(t *testing.T) {
	root := tree(t, strings.Repeat("d/", 150)+"x", strings.Repeat("d/", 250)+"y")
	got, problems := visit(t, allow(t, root), root, walk.Options{})
	if len(got) != 1 || problems.Count != 1 || !strings.Contains(problems.First.Error(), "200 folders deep") {
		t.Errorf("%d files, %v", len(got), problems)
	}
}

func TestACancelledWalkEnds(t *testing.T) {
	var files []string
	for i := range 2000 {
		files = append(files, fmt.Sprintf("%d/%d", i%50, i))
	}
	root := tree(t, files...)
	open := descriptors(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	dir, err := allow(t, root).OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = walk.Tree(ctx, dir, walk.Options{}, func(int, walk.File) error {
		cancel(why)
		return nil
	})
	if err != why || descriptors(t) != open {
		t.Errorf("%v; %d files are open, and before it were %d", err, descriptors(t), open)
	}
}
