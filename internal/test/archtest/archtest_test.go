package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/abide-run/abide/"
)

// A pkg is a package of ours: its files by name, without tests.
type pkg map[string]*ast.File

// imports returns which of our packages the package uses, as in the diagram.
func (p pkg) imports(t *testing.T) []string {
	used := map[string]bool{}
	for _, f := range p {
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(imported, module); ok {
				used[strings.TrimPrefix(ours, "internal/")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// isProgram reports whether the package is a program, which nobody imports.
func (p pkg) isProgram() bool {
	for _, f := range p {
		return f.Name.Name == "main"
	}
	return false
}

// files calls visit for every file of the module, with its path from the root.
func files(t *testing.T, visit func(name string)) {
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			visit(name)
		case name == "bin" || d.Name() == ".git" || d.Name() == "node_modules" || strings.HasSuffix(name, "testdata/fuzz") || name != "." && isModule(name):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil
}

// packages returns all packages by their names in the diagram.
func packages(t *testing.T) map[string]pkg {
	all := map[string]pkg{}
	files(t, func(name string) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := strings.TrimPrefix(path.Dir(name), "internal/")
		if all[dir] == nil {
			all[dir] = pkg{}
		}
		all[dir][name] = f
	})
	return all
}

// isTestHelper reports whether a package only serves tests: it may import what
// it needs, and only tests may import it.
func isTestHelper(name string) bool { return strings.HasSuffix(name, "test") }

// layerOf returns the number of the layer that a package is part of: that of the
// longest name it begins with.
func layerOf(name string) (int, bool) {
	i, entry := findLayer(name)
	return i, entry != ""
}

// findLayer returns the number of the layer that a package is part of, and the name in
// that layer that stands for the package. The name is empty if there is none.
func findLayer(name string) (int, string) {
	for ; name != "."; name = path.Dir(name) {
		for _, entry := range []string{name, path.Dir(name) + "/*"} {
			for i, l := range layers {
				if slices.Contains(l.packages, entry) {
					return i, entry
				}
			}
		}
	}
	return 0, ""
}

// noun returns the first folder of a package's path.
func noun(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return first
}

func TestImportsPointDownwards(t *testing.T) {
	for name, p := range packages(t) {
		if isTestHelper(name) || slices.Contains(testsOnly, noun(name)) {
			continue
		}
		at, known := layerOf(name)
		if !known {
			t.Errorf("package %s is in no layer: add it to layers_test.go and to the picture in docs/ARCHITECTURE.md", name)
			continue
		}
		for _, used := range p.imports(t) {
			below, known := layerOf(used)
			switch {
			case isTestHelper(used):
				t.Errorf("package %s imports %s, which is for tests", name, used)
			case known && noun(name) == noun(used):
			case !known || below >= at:
				t.Errorf("package %s (%s) imports %s (%s): imports point to lower layers", name, layers[at].name, used, layers[below].name)
			}
		}
	}
}

// TestEveryPackageIsUsed: a tool, a wire or a store that no table lists is built, and
// nobody can use it.
func TestEveryPackageIsUsed(t *testing.T) {
	all := packages(t)
	used := map[string]bool{}
	for name, p := range all {
		if !isTestHelper(name) {
			for _, imported := range p.imports(t) {
				used[imported] = true
			}
		}
	}
	for name, p := range all {
		if used[name] || isTestHelper(name) || slices.Contains(testsOnly, noun(name)) || p.isProgram() {
			continue
		}
		_, entry := findLayer(name)
		what := lists[entry]
		if what == "" {
			what = "use it or remove it"
		}
		t.Errorf("no package imports %s: %s", name, what)
	}
}

// TestEveryImplementationRunsTheSuiteOfItsPort: what the port promises is tested for each.
func TestEveryImplementationRunsTheSuiteOfItsPort(t *testing.T) {
	for name, p := range packages(t) {
		_, entry := findLayer(name)
		for _, s := range suites {
			if s.packages != entry || path.Dir(name)+"/*" != entry || isTestHelper(name) || s.imports != "" && !slices.Contains(p.imports(t), s.imports) {
				continue
			}
			if !testsContain(t, name, s.calls+"(") {
				t.Errorf("no test of internal/%s calls %s, which every package %s that implements the port has to pass", name, s.calls, s.packages)
			}
		}
	}
}

// testsContain reports whether a test file of a package contains a text.
func testsContain(t *testing.T, name, text string) bool {
	tests, err := filepath.Glob(filepath.Join(root, "internal", name, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(tests, func(file string) bool {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(data, []byte(text))
	})
}

func TestEveryLayerIsThere(t *testing.T) {
	all := packages(t)
	for _, l := range layers {
		for _, name := range l.packages {
			below := func(p string) bool { return p == name || strings.HasPrefix(p, strings.TrimSuffix(name, "/*")+"/") }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), below) {
				t.Errorf("layer %q has %s, which is no package: remove it", l.name, name)
			}
		}
	}
}

func TestEveryPackageIsInThePicture(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## The picture")
	_, rest, _ = strings.Cut(rest, "```\n")
	picture, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md has no picture")
	}
	words := strings.FieldsFunc(expand(picture), func(r rune) bool { return r == ' ' || r == '\n' || r == ',' })
	for name := range packages(t) {
		if !isTestHelper(name) && !slices.Contains(words, name) && !strings.Contains(name, "/") {
			t.Errorf("the picture in docs/ARCHITECTURE.md lacks package %s", name)
		}
	}
	for _, l := range layers {
		for _, name := range l.packages {
			if part := slices.Contains(l.packages, path.Dir(name)); !part && !slices.Contains(words, name) {
				t.Errorf("the picture in docs/ARCHITECTURE.md lacks %s", name)
			}
		}
	}
}

// expand writes out model/{openai,offline} as model/openai,model/offline.
func expand(picture string) string {
	return regexp.MustCompile(`(\S*)\{([^}]*)\}`).ReplaceAllStringFunc(picture, func(m string) string {
		prefix, list, _ := strings.Cut(strings.TrimSuffix(m, "}"), "{")
		var all []string
		for _, name := range strings.Split(list, ",") {
			all = append(all, prefix+strings.TrimSpace(name))
		}
		return strings.Join(all, ",")
	})
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for name, p := range packages(t) {
		docs := 0
		for file, f := range p {
			if f.Doc == nil {
				continue
			}
			docs++
			want := "Package " + f.Name.Name + " "
			if f.Name.Name == "main" {
				want = "Command " + path.Base(name) + " "
			}
			if !strings.HasPrefix(f.Doc.Text(), want) {
				t.Errorf("%s: the package comment does not begin with %q", file, want)
			}
		}
		if docs != 1 {
			t.Errorf("package %s has %d package comments, want one that says what it promises", name, docs)
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	files(t, func(name string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return // not a text
		}
		for _, word := range []string{"TO" + "DO", "FIX" + "ME"} {
			if i := bytes.Index(text, []byte(word)); i >= 0 {
				t.Errorf("%s:%d: %s: do it now, or open an issue", name, bytes.Count(text[:i], []byte("\n"))+1, word)
			}
		}
	})
}

// The auditor is worth something only as long as it cannot be wrong together with
// the engine. Beside the standard library it uses a driver to read the file, and the
// documents that say what clients are promised.
func TestTheAuditorSharesNothingWithTheEngine(t *testing.T) {
	for name, p := range packages(t) {
		if name != "audit" && !strings.HasPrefix(name, "audit/") {
			continue
		}
		for file, f := range p {
			for _, spec := range f.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(imported, ".") && imported != "modernc.org/sqlite" && imported != module+"docs" && !strings.HasPrefix(imported, module+"internal/audit/") {
					t.Errorf("%s imports %s: the auditor has its own eyes", file, imported)
				}
			}
		}
	}
}
