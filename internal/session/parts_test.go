package session

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"
)

func TestEveryActivityIsInTheList(t *testing.T) {
	listed := map[reflect.Type]bool{}
	for _, a := range new(Session).activities() {
		listed[reflect.TypeOf(a)] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Session]()) {
		if is := reflect.PointerTo(field.Type); is.Implements(reflect.TypeFor[activity]()) && !listed[is] {
			t.Errorf("%s is an activity that Session.activities lacks: it would not be stopped", field.Name)
		}
	}
}

// A host that everything hangs on is read by nobody. What belongs to a feature goes
// to the feature's service.
func TestTheHostAndItsServicesStaySmall(t *testing.T) {
	if n := reflect.TypeFor[*Host]().NumMethod(); n > 25 {
		t.Errorf("Host has %d exported methods, which is more than 25", n)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Host]()) {
		if !field.IsExported() {
			continue
		}
		if n := reflect.PointerTo(field.Type).NumMethod(); n == 0 || n > 12 {
			t.Errorf("the service %s has %d exported methods, want 1 to 12", field.Name, n)
		}
	}
}

func TestEveryServiceHasItsHost(t *testing.T) {
	h := New(nil, Options{})
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Host]()) {
		if field.IsExported() && reflect.ValueOf(h).Elem().FieldByIndex(field.Index).IsZero() {
			t.Errorf("Host.%s has no host: openServices lacks it", field.Name)
		}
	}
}

// TestEveryStepIsTaken: a step that a session cannot take would be decided on again and
// again.
func TestEveryStepIsTaken(t *testing.T) {
	files, err := filepath.Glob("../turn/*.go")
	if err != nil {
		t.Fatal(err)
	}
	taken, steps := map[string]bool{}, map[string]bool{}
	for _, file := range append(files, "session.go") {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CaseClause:
				for _, x := range n.List {
					if sel, ok := x.(*ast.SelectorExpr); ok && file == "session.go" {
						taken[sel.Sel.Name] = true
					}
				}
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "step" {
					steps[n.Recv.List[0].Type.(*ast.Ident).Name] = true
				}
			}
			return true
		})
	}
	if len(steps) == 0 {
		t.Error("package turn has no steps")
	}
	for name := range steps {
		if !taken[name] {
			t.Errorf("Session.advance has no case for the step turn.%s", name)
		}
	}
}
