package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
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
		read, fields := readFields(t, c.read, c.declared, c.typ)
		if len(fields) == 0 {
			t.Errorf("internal/%s has no type %s with fields", c.declared, c.typ)
		}
		for _, field := range fields {
			if !read[field] {
				t.Errorf("no code in internal/%s reads the field %s of %s.%s: use it where the setting takes effect", c.read, field, c.declared, c.typ)
			}
		}
	}
}

// readFields checks the types of a package and returns which fields of a struct its code
// selects, and the names of all fields. A field that only a composite literal sets is not
// selected, nor is one of the same name in another struct.
func readFields(t *testing.T, reader, declared, typ string) (read map[string]bool, fields []string) {
	t.Helper()
	fset := token.NewFileSet()
	listed := list(t)
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	var checked *types.Package
	for _, p := range listed {
		if p.path != module+"internal/"+reader {
			continue
		}
		var err error
		if checked, err = (&types.Config{Importer: exported(fset, listed)}).Check(p.path, fset, p.parse(t, fset), info); err != nil {
			t.Fatal(err)
		}
	}
	read, of := map[string]bool{}, map[*types.Var]bool{}
	for _, p := range append(checked.Imports(), checked) {
		if p.Path() != module+"internal/"+declared || p.Scope().Lookup(typ) == nil {
			continue
		}
		if s, ok := p.Scope().Lookup(typ).Type().Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				fields, of[f] = append(fields, f.Name()), true
			}
		}
	}
	for _, s := range info.Selections {
		if f, ok := s.Obj().(*types.Var); ok && of[f] {
			read[f.Name()] = true
		}
	}
	return read, fields
}
