package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fromSeed is what tests may use of math/rand: what draws numbers from a seed.
var fromSeed = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// anyNumber are files whose random numbers decide nothing that is tested.
var anyNumber = []string{"cmd/abide/elsewhere_linux_test.go"} // a port that is free

// TestRandomTestsDrawTheSameInEveryRun: a new seed may find an old fault, and has no place
// where a change is judged.
func TestRandomTestsDrawTheSameInEveryRun(t *testing.T) {
	draws, seeded := map[string]bool{}, map[string]bool{}
	files(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			switch imported, _ := strconv.Unquote(spec.Path.Value); imported {
			case "pgregory.net/rapid":
				draws[path.Dir(name)] = true
			case "github.com/abide-run/abide/internal/test/seedtest":
				seeded[path.Dir(name)] = true
			case "testing/quick":
				t.Errorf("%s imports testing/quick, which draws other numbers in each run: use rapid", name)
			case "math/rand", "math/rand/v2":
				if used := unseeded(f); len(used) > 0 && !slices.Contains(anyNumber, name) {
					t.Errorf("%s uses rand.%s, which draws other numbers in each run: use rand.New with a seed, or with seedtest.Seed()", name, used[0])
				}
			}
		}
	})
	if len(draws) < 20 {
		t.Errorf("%d packages use rapid: are they all found?", len(draws))
	}
	for dir := range draws {
		if !seeded[dir] {
			t.Errorf("the tests of %s use rapid, which draws other numbers in each run: import internal/test/seedtest", dir)
		}
	}
}

// unseeded returns what a file uses of math/rand that needs no seed.
func unseeded(f *ast.File) (used []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "rand" && !slices.Contains(fromSeed, s.Sel.Name) {
				used = append(used, s.Sel.Name)
			}
		}
		return true
	})
	return used
}
