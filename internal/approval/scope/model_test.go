package scope_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval/scope"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

// realPath returns where a path leads according to the system, which follows the links. A
// missing file at the end keeps its name.
func realPath(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(filepath.Clean(path))
	if err == nil {
		return real, true
	}
	if info, lerr := os.Lstat(filepath.Clean(path)); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", false // a link to nothing, or a cycle of links
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(path)))
	return filepath.Join(dir, filepath.Base(path)), err == nil
}

func below(dir, path string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// TestJudgeMatchesTheRealPath compares Judge, on random trees with links, with
// the obvious way: find the real path and compare it with the rules.
func TestJudgeMatchesTheRealPath(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Links lead upwards, and what is made behind them must stay below base: each of the 12
	// steps leads up by at most 4 folders.
	deep := filepath.Join(append([]string{base}, slices.Repeat([]string{"d"}, 50)...)...)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	name := rapid.SampledFrom([]string{"a", "b", "c", ".."})
	relative := func(t *rapid.T, label string) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, label), "/")
	}
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp(deep, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(root) }()
		for range 12 {
			path := filepath.Join(root, filepath.Clean("/"+relative(t, "path")))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				_ = os.MkdirAll(path, 0o755) // fails if a file has the name, which is fine
			case 1:
				_ = os.WriteFile(path, []byte(path), 0o644)
			case 2:
				target := relative(t, "target")
				if rapid.Bool().Draw(t, "absolute") {
					target = filepath.Join(root, filepath.Clean("/"+target))
				}
				_ = os.Symlink(target, path)
			}
		}
		allowed, denied := filepath.Join(root, "a"), filepath.Join(root, "a", "b")
		s, err := scope.New([]scope.Rule{{Target: allowed, Mode: scope.Write}}, []scope.Rule{{Target: denied, Mode: scope.Read}})
		if err != nil {
			return // a target with a cycle of links
		}
		in, ok := realPath(allowed)
		not, exists := realPath(denied)
		if !ok || !exists || !below(base, in) {
			return
		}
		for range 8 {
			path := filepath.Join(root, relative(t, "asked"))
			real, ok := realPath(path)
			data, err := s.ReadFile(path, 1<<20)
			if !ok {
				if err == nil {
					t.Fatalf("%s leads nowhere and was read", path)
				}
				continue
			}
			want := scope.Unlisted
			switch {
			case below(not, real) || passesThrough(path, denied) || passesThrough(path, not):
				want = scope.Denied
			case below(in, real):
				want = scope.Allowed
			}
			got, jerr := s.Judge(path, scope.Read)
			if jerr != nil || got.Verdict != want || got.Path != real {
				t.Fatalf("%s: %+v, %v; it leads to %s: %v", path, got, jerr, real, want)
			}
			info, serr := os.Lstat(real)
			readable := want == scope.Allowed && serr == nil && info.Mode().IsRegular()
			if readable != (err == nil) || readable && string(data) != read1(real) {
				t.Fatalf("%s: read %q, %v; it leads to %s: %v", path, data, err, real, want)
			}
			var refused *scope.Refusal
			if want != scope.Allowed && !errors.As(err, &refused) {
				t.Fatalf("%s: %v", path, err)
			}
		}
	})
}

func read1(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// passesThrough reports whether a path leads through a link with that name, or below it.
func passesThrough(path, name string) bool {
	at, todo := "/", strings.Split(filepath.Clean(path), "/")
	for links := 0; len(todo) > 0 && links < 60; {
		next := filepath.Join(at, todo[0]) // at has no links, so ".." can be taken by name
		todo = todo[1:]
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if below(name, next) {
			return true
		}
		if links++; filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return false
}
