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
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
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

// files calls visit for every file of the module, with its path from the root.
func files(t *testing.T, visit func(name string)) {
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			visit(name)
		case name == "bin" || d.Name() == ".git" || strings.HasSuffix(name, "testdata/fuzz") || name != "." && isModule(name):
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

func TestPackagesImportEachOtherAsInTheDiagram(t *testing.T) {
	all := packages(t)
	for name, p := range all {
		allowed, known := diagram[name]
		if !known && !isTestHelper(name) {
			t.Errorf("package %s is not in the diagram: add it to diagram_test.go with what it may import", name)
			continue
		}
		for _, used := range p.imports(t) {
			switch {
			case isTestHelper(name):
			case isTestHelper(used):
				t.Errorf("package %s imports %s, which is for tests", name, used)
			case !slices.Contains(allowed, used):
				t.Errorf("package %s imports %s, which the diagram does not allow: imports point downwards, and each one is argued for", name, used)
			}
		}
	}
	for name := range diagram {
		if all[name] == nil {
			t.Errorf("the diagram has %s, which is no package: remove it", name)
		}
	}
}

func TestTheDiagramPointsOneWay(t *testing.T) {
	const visiting, visited = 1, 2
	state := map[string]int{}
	var visit func(name string, via []string)
	visit = func(name string, via []string) {
		via = append(via, name)
		if state[name] == visiting {
			t.Errorf("the diagram goes in a circle: %s", strings.Join(via, " → "))
		}
		if state[name] != 0 {
			return
		}
		state[name] = visiting
		for _, below := range diagram[name] {
			if diagram[below] == nil {
				t.Errorf("the diagram lets %s import %s, which is not in it", name, below)
			}
			visit(below, via)
		}
		state[name] = visited
	}
	for name := range diagram {
		visit(name, nil)
	}
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
