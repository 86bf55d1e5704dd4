package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shared is the file of package turn that may assign the fields of every part.
const shared = "lifecycle.go"

// TestOnlyAPartsOwnFileAssignsIt: every part of turn.State has a file that decides
// about it. Its fields are assigned there and in lifecycle.go, and nowhere else.
func TestOnlyAPartsOwnFileAssignsIt(t *testing.T) {
	listed := list(t)
	fset := token.NewFileSet()
	from := exported(fset, listed)
	for _, p := range listed {
		if isTestHelper(p.path) || p.path != module+"internal/turn" && !slices.Contains(p.imports, module+"internal/turn") {
			continue
		}
		found, err := foreign(fset, p.path, p.parse(t, fset), from)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range found {
			t.Error(line)
		}
	}
}

// TestAssignmentsAreFound: the check sees every way to assign a part of the state.
func TestAssignmentsAreFound(t *testing.T) {
	const state = `package turn
type State struct { Queue Queue; Turn *Turn }
type Queue struct { Inputs []Input; Held bool; ByID map[string]Input; Count int }
type Input struct { ID string; Tags [2]string }
type Turn struct { Calls []*Call; last recent }
type Call struct { Stage int }
type recent []string
func (q *Queue) add(in Input) { q.Inputs = append(q.Inputs, in) }`
	for statement, want := range map[string]string{
		"s.Queue.Held = true":                               "Queue.Held",
		"s.Queue = Queue{}":                                 "State.Queue",
		"*s = State{}":                                      "State",
		"s.Queue.Count++":                                   "Queue.Count",
		"s.Queue.Count += 2":                                "Queue.Count",
		"s.Queue.Inputs[0].ID = `x`":                        "Input.ID",
		"s.Queue.Inputs[0].Tags[1] = `x`":                   "Input.Tags",
		"s.Queue.ByID[`x`] = Input{}":                       "Queue.ByID",
		"delete(s.Queue.ByID, `x`)":                         "Queue.ByID",
		"clear(s.Queue.Inputs)":                             "Queue.Inputs",
		"copy(s.Queue.Inputs[1:], s.Queue.Inputs)":          "Queue.Inputs",
		"q := &s.Queue; q.Held = true":                      "Queue.Held",
		"held := &s.Queue.Held; *held = true":               "Queue.Held",
		"for _, c := range s.Turn.Calls { c.Stage = 1 }":    "Call.Stage",
		"for s.Queue.Count = range 3 {}":                    "Queue.Count",
		"_, (s.Turn).Calls = 0, nil":                        "Turn.Calls",
		"s.Queue.add(Input{})":                              "",
		"held := s.Queue.Held; held = !held; _ = held":      "",
		"list := append(s.Queue.Inputs, Input{}); _ = list": "",
	} {
		fset := token.NewFileSet()
		var sources []*ast.File
		for name, text := range map[string]string{"turn/state.go": state, "turn/other.go": "package turn\nfunc do(s *State) { " + statement + " }"} {
			f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, f)
		}
		found, err := foreign(fset, module+"internal/turn", sources, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found, "\n"); (want == "" && got != "") || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want an assignment to %q", statement, got, want)
		}
	}
}

// A listedPackage is what the go command says of a package.
type listedPackage struct {
	path, export, dir string
	files, imports    []string
}

// parse returns the syntax of the package.
func (p listedPackage) parse(t *testing.T, fset *token.FileSet) []*ast.File {
	t.Helper()
	var sources []*ast.File
	for _, name := range p.files {
		f, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, f)
	}
	return sources
}

// list asks the go command for all packages that the module is built from.
func list(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles ","}}|{{join .Imports ","}}`, "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []listedPackage
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		all = append(all, listedPackage{f[0], f[1], f[2], strings.Split(f[3], ","), strings.Split(f[4], ",")})
	}
	return all
}

// foreign checks the types of a package and returns its assignments to parts of
// the state from files other than the part's own.
func foreign(fset *token.FileSet, name string, sources []*ast.File, from types.Importer) ([]string, error) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: from}).Check(name, fset, sources, info)
	if err != nil {
		return nil, err
	}
	c := checker{fset: fset, info: info, parts: map[*types.Var]string{}, types: map[*types.TypeName]bool{}}
	for _, p := range append(checked.Imports(), checked) {
		if state := p.Scope().Lookup("State"); p.Name() == "turn" && state != nil {
			c.collect(state.Type())
		}
	}
	for _, f := range sources {
		ast.Inspect(f, c.look)
	}
	return c.found, nil
}

// A checker looks for assignments to parts of the state.
type checker struct {
	fset  *token.FileSet
	info  *types.Info
	parts map[*types.Var]string    // the fields of the state and all that it is made of, with the names of their types
	types map[*types.TypeName]bool // the types that the state is made of
	found []string
}

// collect finds the fields of a type and of all types of its package that it is
// made of.
func (c *checker) collect(t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		c.collect(t.Elem())
	case *types.Slice:
		c.collect(t.Elem())
	case *types.Map:
		c.collect(t.Elem())
	case *types.Named:
		if t.Obj().Pkg() == nil || t.Obj().Pkg().Name() != "turn" || c.types[t.Obj()] {
			return
		}
		c.types[t.Obj()] = true
		if s, ok := t.Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				c.parts[f] = t.Obj().Name()
				c.collect(f.Type())
			}
		} else {
			c.collect(t.Underlying())
		}
	}
}

// look finds all that a node assigns.
func (c *checker) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, to := range n.Lhs {
			c.assign(to)
		}
	case *ast.IncDecStmt:
		c.assign(n.X)
	case *ast.RangeStmt:
		c.assign(n.Key)
		c.assign(n.Value)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			c.address(n.X)
		}
	case *ast.CallExpr:
		c.call(n)
	}
	return true
}

// call looks at what a call may change: what is cleared or deleted from, and what
// is not of package turn and has a method called that can change it.
func (c *checker) call(n *ast.CallExpr) {
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		if b, ok := c.info.Uses[fun].(*types.Builtin); ok && (b.Name() == "delete" || b.Name() == "clear" || b.Name() == "copy") {
			c.assign(n.Args[0])
		}
	case *ast.SelectorExpr:
		method := c.info.Selections[fun]
		if method == nil || method.Kind() != types.MethodVal {
			return
		}
		if _, changes := method.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer); changes {
			c.address(fun.X)
		}
	}
}

// address looks at a field whose address is taken. A part itself guards its fields,
// and the conversation is no part of package turn.
func (c *checker) address(x ast.Expr) {
	sel, ok := ast.Unparen(x).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if _, pointer := c.info.Types[x].Type.Underlying().(*types.Pointer); pointer {
		return
	}
	field, ok := c.field(sel)
	if named, isNamed := types.Unalias(c.info.Types[x].Type).(*types.Named); ok && c.parts[field] != "State" && !(isNamed && c.types[named.Obj()]) {
		c.assign(x)
	}
}

// field is the field of the state that a selector is for.
func (c *checker) field(sel *ast.SelectorExpr) (*types.Var, bool) {
	s := c.info.Selections[sel]
	if s == nil || s.Kind() != types.FieldVal {
		return nil, false
	}
	field := s.Obj().(*types.Var)
	return field, c.parts[field] != ""
}

// assign notes that an expression is assigned, if it is in a part of the state and
// this is not the part's own file. What is assigned is the last field of the state
// in a chain of selectors.
func (c *checker) assign(x ast.Expr) {
	for x != nil {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			if named, ok := types.Unalias(c.info.Types[x].Type).(*types.Named); ok && c.types[named.Obj()] {
				c.note(x, named.Obj().Pos(), named.Obj().Name())
				return
			}
			x = e.X
		case *ast.SelectorExpr:
			if field, ok := c.field(e); ok {
				c.note(x, field.Pos(), c.parts[field]+"."+field.Name())
				return
			}
			x = e.X
		default:
			return
		}
	}
}

func (c *checker) note(at ast.Expr, declared token.Pos, name string) {
	owner := path.Base(filepath.ToSlash(c.fset.Position(declared).Filename))
	here := c.fset.Position(at.Pos())
	inTurn := path.Base(path.Dir(filepath.ToSlash(here.Filename))) == "turn"
	if file := filepath.Base(here.Filename); inTurn && (file == owner || file == shared) {
		return
	}
	c.found = append(c.found, fmt.Sprintf("%s:%d assigns %s: only turn/%s and turn/%s may, so call a method there", here.Filename, here.Line, name, owner, shared))
}
