package archtest

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Regular expressions in variables of packages are compiled at their first use, because
// every process makes these variables. Here they are all compiled, so that none of them is
// found to be wrong when it is used.
func TestRegularExpressionsOfPackagesAreLazyAndValid(t *testing.T) {
	valid := 0
	files(t, func(name string) {
		if !strings.HasPrefix(name, "internal/") || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "test/") || strings.Contains(name, "testdata/") {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calledByVariables(f) {
			switch at := fset.Position(call.Pos()).Line; calledName(call) {
			case "regexp.MustCompile":
				t.Errorf("%s:%d: every process compiles this expression at its start; make it with lazyregexp.New", name, at)
			case "lazyregexp.New":
				if pattern, ok := literal(call.Args[0]); !ok {
					t.Errorf("%s:%d: the pattern is not a literal, so it is not known whether it is valid", name, at)
				} else if _, err := regexp.Compile(pattern); err != nil {
					t.Errorf("%s:%d: %v", name, at, err)
				} else {
					valid++
				}
			}
		}
	})
	if valid < 30 {
		t.Errorf("%d expressions were found, want at least 30", valid)
	}
}

// calledByVariables returns the calls that make the variables of a package, without those
// in functions.
func calledByVariables(f *ast.File) (calls []*ast.CallExpr) {
	for _, d := range f.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl, *ast.FuncLit:
				return false
			case *ast.CallExpr:
				calls = append(calls, n)
			}
			return true
		})
	}
	return calls
}

func calledName(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// literal returns the text of string literals that are joined with plus signs.
func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		v := constant.MakeFromLiteral(x.Value, x.Kind, 0)
		return constant.StringVal(v), v.Kind() == constant.String
	case *ast.BinaryExpr:
		left, ok := literal(x.X)
		right, also := literal(x.Y)
		return left + right, ok && also && x.Op == token.ADD
	}
	return "", false
}
