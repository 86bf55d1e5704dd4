package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// configured are the types through which settings reach the engine, and the folders with
// the code that reads them.
var configured = []struct{ typ, declared, read string }{
	{"Config", "daemon", "daemon"},
	{"Commands", "daemon", "daemon"},
	{"Defaults", "api", "server/rpc"},
}

// TestEveryConfiguredFieldIsRead: a setting that is handed to the engine and that nothing
// reads there looks as if it worked.
func TestEveryConfiguredFieldIsRead(t *testing.T) {
	for _, c := range configured {
		fields := fieldsOf(parseFolder(t, c.declared), c.typ)
		if len(fields) == 0 {
			t.Errorf("internal/%s has no type %s with fields", c.declared, c.typ)
		}
		read := selected(parseFolder(t, c.read))
		for _, field := range fields {
			if !read[field] {
				t.Errorf("no code in internal/%s reads the field %s of %s.%s: use it where the setting takes effect", c.read, field, c.declared, c.typ)
			}
		}
	}
}

// parseFolder parses the files of a package, without tests.
func parseFolder(t *testing.T, name string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "internal", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	return parsed
}

// fieldsOf returns the names of the fields of a struct.
func fieldsOf(files []*ast.File, typ string) (names []string) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != typ {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						names = append(names, name.Name)
					}
				}
			}
			return false
		})
	}
	return names
}

// selected returns the names that are selected from a value or a package anywhere in the
// files. A field that a composite literal sets is not among them.
func selected(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
			}
			return true
		})
	}
	return names
}
