package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryFieldHasAName: a field without a json tag would be sent under its name in Go,
// which no client reads.
func TestEveryFieldHasAName(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				checkFields(t, name, s)
			}
			return true
		})
	}
}

func checkFields(t *testing.T, file string, s *ast.StructType) {
	t.Helper()
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			if name.IsExported() && (f.Tag == nil || !strings.Contains(f.Tag.Value, `json:"`)) {
				t.Errorf("the field %s in internal/api/%s has no json tag", name.Name, file)
			}
		}
	}
}
