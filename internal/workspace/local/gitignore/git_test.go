package gitignore_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/workspace/local/gitignore"
)

// ours walks a tree and returns the files that are not ignored.
func ours(t interface{ Fatal(...any) }, root string) []string {
	var kept []string
	var walk func(folder string, rules *gitignore.Rules)
	walk = func(folder string, rules *gitignore.Rules) {
		if text, err := os.ReadFile(filepath.Join(folder, ".gitignore")); err == nil {
			rules = rules.Below(folder, text)
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == ".git" || rules.Ignored(folder, e.Name(), e.IsDir()) {
				continue
			}
			path := filepath.Join(folder, e.Name())
			if e.IsDir() {
				walk(path, rules)
			} else {
				kept = append(kept, strings.TrimPrefix(path, root+"/"))
			}
		}
	}
	walk(root, nil)
	slices.Sort(kept)
	return kept
}

// gits returns the files that git does not ignore.
func gits(t interface{ Fatal(...any) }, root string) []string {
	cmd := exec.Command("git", "-C", root, "ls-files", "--others", "--exclude-standard", "-z")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+root+"/.git")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(name) > 0 {
			kept = append(kept, string(name))
		}
	}
	slices.Sort(kept)
	return kept
}

func repository(t interface{ Fatal(...any) }, root string) {
	if err := exec.Command("git", "init", "-q", root).Run(); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(root, ".git/info/exclude"))
}

func needGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here, so the rules were not compared with its own")
	}
}

func TestRulesMatchGit(t *testing.T) {
	needGit(t)
	root := t.TempDir()
	repository(t, root)
	paths := []string{
		"a", "b", "c.log", "debug.log", "keep.log", "dir/a", "dir/c.log", "dir/sub/a", "dir/sub/x.tmp", "build/out", "src/build/out",
		"src/a.go", "src/deep/b.go", "src/deep/a.go", "doc/a.txt", "doc/sub/a.txt", "#hash", "!bang", "trail ", "sp ace", "back\\slash", "é", "x[y]", "UPPER",
		"foo/bar/baz", "foo/x/bar/baz", "foo/x/y/bar/baz", "a1", "a2", "a-", "ab/cd", "ab/xx/cd", "dot.d/x", ".hidden", "node_modules/m/i.js", "lib/node_modules/i.js",
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{
		"*.log\n!keep.log\n", "/a\n", "dir/\n", "build\n", "/build/\n", "doc/*.txt\n", "doc/**/*.txt\n", "**/sub\n", "foo/**/baz\n", "foo/**\n",
		"foo/**/bar\n", "**\n!src\n", "*\n!src/\n!src/**\n", "\\#hash\n\\!bang\n", "trail\\ \n", "trail \n", "trail   ", "# comment\na\n",
		"a\r\nb\r\n", "\xef\xbb\xbfa\n", "x\\[y\\]\n", "x[[]y]\n", "back\\\\slash\n", "?\n", "??\n", "[a-b]\n", "[!a-b]\n", "[^a]*\n", "a[0-9]\n", "a[-1]\n",
		"[[:upper:]]*\n", "[[:nope:]]\n", "[]\n", "[\n", "a[\n", "a[]-]\n", "[[:digit:]-]*\n", "ab/*\n", "ab/**/cd\n", "ab**cd\n", "a**\n", "**a\n", "**/a\n", "a/**/\n",
		"/**/a\n", "***\n", "*/\n", "/*\n!/dir\n/dir/*\n!/dir/sub\n", "dir\n!dir/a\n", "node_modules/\n", "/node_modules\n", "lib/node_modules\n", "!\n/\n//\n", "\\\n", "a\\\n",
		"dir//a\n", "./a\n", "dir/./a\n", "a/\n", "*.d/\n", ".*\n!.gitignore\n", "é\n", "[é]\n", "sp ace\n", " a\n", "a \\ \n", "src/*/b.go\n", "s*c\n", "src**/a.go\n", "[s]rc**/a.go\n", "/ab[!x]cd\n", "/src[^a]a.go\n", "foo/*/bar\n", "\\a\n",
	} {
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(gits(t, root), ours(t, root)); diff != "" {
			t.Errorf("%q: git and we differ:\n%s", text, diff)
		}
	}
}

// TestRandomTreesMatchGit uses random trees and rules.
func TestRandomTreesMatchGit(t *testing.T) {
	needGit(t)
	root := t.TempDir()
	repository(t, root)
	names := []string{"a", "b", "ab", "a.b", "é", "A", "b "}
	name := rapid.SampledFrom(append(names, "a", "b"))
	piece := rapid.SampledFrom([]string{"a", "b", "*", "**", "/", "?", "[ab]", "[!a]", "\\", " ", ".", "!", "#", "[", "]", "é", "[[:alpha:]]", "-"})
	line := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range append(names, ".gitignore") {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			path := filepath.Join(root, filepath.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "path")...))
			_ = os.MkdirAll(filepath.Dir(path), 0o755) // fails if a file has the name, which is fine
			_ = os.WriteFile(path, nil, 0o644)
		}
		for _, folder := range []string{"", "a", "b", "a/b"} {
			lines := rapid.SliceOfN(line, 0, 4).Draw(t, "lines")
			_ = os.WriteFile(filepath.Join(root, folder, ".gitignore"), []byte(strings.Join(lines, "\n")), 0o644)
		}
		if diff := cmp.Diff(gits(t, root), ours(t, root)); diff != "" {
			t.Fatalf("git and we differ:\n%s", diff)
		}
	})
}

func FuzzRules(f *testing.F) {
	f.Add("*.log\n!keep\n/a/**/b\n", "dir", "keep")
	f.Add("[[:alpha:]\\", "", "é")
	f.Fuzz(func(t *testing.T, text, folder, name string) {
		var none *gitignore.Rules
		none.Below("/"+folder, []byte(text)).Ignored("/"+folder+"/x", name, true)
	})
}
