package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// A configuredType is a struct through which settings reach the engine.
type configuredType struct {
	declared, typ string   // its package and its name
	read          []string // the packages with the code that reads its fields
}

// configured are the types through which settings reach the engine.
var configured = []configuredType{
	{"daemon", "Config", []string{"daemon"}},
	{"daemon", "Commands", []string{"daemon"}},
	{"daemon", "Memory", []string{"daemon"}},
	{"daemon", "ModelSettings", []string{"daemon"}},
	{"daemon", "Notify", []string{"daemon"}},
	{"daemon/workspaces", "Options", []string{"daemon/workspaces"}},
	{"project/instructions", "Rules", []string{"project/instructions"}},
	{"api", "Defaults", []string{"server/rpc"}},
	{"event", "BudgetRules", []string{"turn"}},
	{"event", "CompactionRules", []string{"session"}},
	{"event", "MemoryRules", []string{"session", "memory/worker"}},
	{"event", "OutageRules", []string{"session", "turn"}},
	{"event", "PermissionRules", []string{"approval"}},
	{"event", "ScopeRules", []string{"daemon"}},
}

// TestEveryConfiguredFieldIsRead: a setting that is handed to the engine and that nothing
// reads there looks as if it worked.
func TestEveryConfiguredFieldIsRead(t *testing.T) {
	fset, checked := token.NewFileSet(), map[string]checkedPackage{}
	from := exported(fset, list(t))
	for _, c := range configured {
		var fields []*types.Var
		read := map[string]bool{}
		for _, reader := range c.read {
			if checked[reader].pkg == nil {
				checked[reader] = checkPackage(t, fset, reader, from)
			}
			fields = checked[reader].readFields(c.declared, c.typ, read)
		}
		if len(fields) == 0 {
			t.Errorf("%s use no type %s with fields of internal/%s", strings.Join(c.read, ", "), c.typ, c.declared)
		}
		for _, field := range fields {
			if !read[field.Name()] {
				t.Errorf("no code in internal/%s reads the field %s of %s.%s: use it where the setting takes effect", strings.Join(c.read, " or internal/"), field.Name(), c.declared, c.typ)
			}
			part := ourStruct(field.Type())
			if part != "" && !slices.ContainsFunc(configured, func(k configuredType) bool { return k.declared+"."+k.typ == part }) {
				t.Errorf("the field %s of %s.%s is a part of the configuration: add %s to configured in settings_test.go, with the packages that read its fields", field.Name(), c.declared, c.typ, part)
			}
		}
	}
}

// ourStruct returns the package and the name of a type that is a struct of this module; empty
// if it is something else.
func ourStruct(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	pkg, ours := strings.CutPrefix(named.Obj().Pkg().Path(), module+"internal/")
	if _, ok := named.Underlying().(*types.Struct); !ok || !ours {
		return ""
	}
	return pkg + "." + named.Obj().Name()
}

// A checkedPackage is a package and the fields that its code selects.
type checkedPackage struct {
	pkg      *types.Package
	selected []*types.Selection
}

// checkPackage checks the types of a package below internal.
func checkPackage(t *testing.T, fset *token.FileSet, name string, from types.Importer) (c checkedPackage) {
	t.Helper()
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	for _, p := range list(t) {
		if p.path != module+"internal/"+name {
			continue
		}
		var err error
		if c.pkg, err = (&types.Config{Importer: from}).Check(p.path, fset, p.parse(t, fset), info); err != nil {
			t.Fatal(err)
		}
	}
	if c.pkg == nil {
		t.Fatalf("there is no package internal/%s", name)
	}
	for _, s := range info.Selections {
		c.selected = append(c.selected, s)
	}
	return c
}

// readFields returns the fields of a struct and adds the names of those that the package
// selects to read. A field that only a composite literal sets is not selected, nor is one of
// the same name in another struct.
func (c checkedPackage) readFields(declared, typ string, read map[string]bool) (fields []*types.Var) {
	for _, p := range append(c.pkg.Imports(), c.pkg) {
		if p.Path() != module+"internal/"+declared || p.Scope().Lookup(typ) == nil {
			continue
		}
		if s, ok := p.Scope().Lookup(typ).Type().Underlying().(*types.Struct); ok {
			fields = slices.Collect(s.Fields())
		}
	}
	for _, s := range c.selected {
		if f, ok := s.Obj().(*types.Var); ok && slices.Contains(fields, f) {
			read[f.Name()] = true
		}
	}
	return fields
}
