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
	"sync"
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
	const prelude = `package turn
import ("encoding/json"; "fmt"; "maps"; "slices"; "sort")
var _, _, _, _, _ = json.Marshal, fmt.Sscan, maps.Copy[map[int]int, map[int]int], slices.Sort[[]int], sort.Strings
func set[T any](to *T, v T) { *to = v }
`
	const state = `package turn
import "net/url"
type State struct { Queue Queue; Turn *Turn }
type Queue struct { Inputs []Input; Held bool; ByID map[string]Input; Count int; Names []string; Lists [][]string; ByName map[string][]string; Other *url.URL }
type Input struct { ID string; Tags [2]string }
type Turn struct { Calls []*Call; last recent }
type Call struct { Stage int }
type recent []string
func (q *Queue) add(in Input) { q.Inputs = append(q.Inputs, in) }`
	from := exported(token.NewFileSet(), list(t))
	for statement, want := range map[string]string{
		"s.Queue.Held = true":                                                "Queue.Held",
		"s.Queue = Queue{}":                                                  "State.Queue",
		"*s = State{}":                                                       "State",
		"s.Queue.Count++":                                                    "Queue.Count",
		"s.Queue.Count += 2":                                                 "Queue.Count",
		"s.Queue.Inputs[0].ID = `x`":                                         "Input.ID",
		"s.Queue.Inputs[0].Tags[1] = `x`":                                    "Input.Tags",
		"s.Queue.ByID[`x`] = Input{}":                                        "Queue.ByID",
		"delete(s.Queue.ByID, `x`)":                                          "Queue.ByID",
		"clear(s.Queue.Inputs)":                                              "Queue.Inputs",
		"copy(s.Queue.Inputs[1:], s.Queue.Inputs)":                           "Queue.Inputs",
		"q := &s.Queue; q.Held = true":                                       "Queue.Held",
		"held := &s.Queue.Held; *held = true":                                "Queue.Held",
		"for _, c := range s.Turn.Calls { c.Stage = 1 }":                     "Call.Stage",
		"for s.Queue.Count = range 3 {}":                                     "Queue.Count",
		"_, (s.Turn).Calls = 0, nil":                                         "Turn.Calls",
		"p := &s.Queue; *p = Queue{}":                                        "Queue",
		"list := s.Queue.Inputs; list[0] = Input{}":                          "Queue.Inputs",
		"list := s.Queue.Inputs[1:]; clear(list)":                            "Queue.Inputs",
		"var list = s.Queue.Inputs; clear(list)":                             "Queue.Inputs",
		"byID := s.Queue.ByID; again := byID; again[`x`] = Input{}":          "Queue.ByID",
		"byID := s.Queue.ByID; delete(byID, `x`)":                            "Queue.ByID",
		"q := s.Queue; q.Names[0] = `x`":                                     "Queue.Names",
		"for _, names := range s.Queue.Lists { names[0] = `x` }":             "Queue.Lists",
		"if names, ok := s.Queue.ByName[`x`]; ok { names[0] = `x` }":         "Queue.ByName",
		"other := s.Queue.Other; other.Path = `x`":                           "Queue.Other",
		"name := &s.Queue.Names[0]; *name = `x`":                             "Queue.Names",
		"slices.Sort(s.Queue.Names)":                                         "Queue.Names",
		"names := s.Queue.Names; slices.Reverse(names)":                      "Queue.Names",
		"_ = slices.Delete(s.Queue.Names, 0, 1)":                             "Queue.Names",
		"maps.Copy(s.Queue.ByID, s.Queue.ByID)":                              "Queue.ByID",
		"sort.Strings(s.Queue.Names)":                                        "Queue.Names",
		"_ = append(s.Queue.Inputs[:0], Input{})":                            "Queue.Inputs",
		"list := s.Queue.Inputs[:0]; list = append(list, Input{}); _ = list": "Queue.Inputs",
		"_ = json.Unmarshal(nil, &s.Queue)":                                  "Queue",
		"_ = json.Unmarshal(nil, s.Turn)":                                    "Turn",
		"_ = json.Unmarshal(nil, s)":                                         "State",
		"_, _ = fmt.Sscan(``, s.Turn, &s.Queue)":                             "Queue",
		"p := &s.Queue; _ = json.NewDecoder(nil).Decode(p)":                  "Queue",
		"set(&s.Queue, Queue{})":                                             "Queue",
		"s.Queue.add(Input{})":                                               "",
		"list := slices.Clone(s.Queue.Names); list[0] = `x`":                 "",
		"list := append(s.Queue.Names[:1:1], `x`); list[0] = `x`":            "",
		"list := s.Queue.Names; list = nil; _ = list":                        "",
		"q := s.Queue; q.Other = nil":                                        "Queue.Other",
		"_ = slices.Contains(s.Queue.Names, `x`)":                            "",
		"_, _ = json.Marshal(s.Queue)":                                       "",
		"held := s.Queue.Held; held = !held; _ = held":                       "",
		"list := append(s.Queue.Inputs, Input{}); _ = list":                  "",
	} {
		fset := token.NewFileSet()
		var sources []*ast.File
		for name, text := range map[string]string{"turn/state.go": state, "turn/other.go": prelude + "func do(s *State) { " + statement + " }"} {
			f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, f)
		}
		found, err := foreign(fset, module+"internal/turn", sources, from)
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

// list returns all packages that the module is built from.
func list(t *testing.T) []listedPackage {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listOnce asks the go command for the packages, which takes seconds, once for all tests.
var listOnce = sync.OnceValues(func() ([]listedPackage, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles ","}}|{{join .Imports ","}}`, "./...")
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []listedPackage
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "|")
		all = append(all, listedPackage{f[0], f[1], f[2], strings.Split(f[3], ","), strings.Split(f[4], ",")})
	}
	return all, nil
})

// foreign checks the types of a package and returns its assignments to parts of
// the state from files other than the part's own.
func foreign(fset *token.FileSet, name string, sources []*ast.File, from types.Importer) ([]string, error) {
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: from}).Check(name, fset, sources, info)
	if err != nil {
		return nil, err
	}
	c := checker{fset: fset, info: info, parts: map[*types.Var]string{}, types: map[*types.TypeName]bool{}, aliases: map[types.Object]alias{}}
	for _, p := range append(checked.Imports(), checked) {
		if state := p.Scope().Lookup("State"); p.Name() == "turn" && state != nil {
			c.collect(state.Type())
		}
	}
	for known := -1; known != len(c.aliases); { // a variable may be given what another one has
		known = len(c.aliases)
		for _, f := range sources {
			ast.Inspect(f, c.name)
		}
	}
	for _, f := range sources {
		ast.Inspect(f, c.look)
	}
	return c.found, nil
}

// A checker looks for assignments to parts of the state. It does not follow what a
// function is given as an argument, except where the function can only be one that
// changes it.
type checker struct {
	fset    *token.FileSet
	info    *types.Info
	parts   map[*types.Var]string    // the fields of the state and all that it is made of, with the names of their types
	types   map[*types.TypeName]bool // the types that the state is made of
	aliases map[types.Object]alias   // variables that were given something of the state
	found   []string
}

// An alias is what a variable has of the state.
type alias struct {
	field *types.Var
	cut   bool // true if it is the beginning of a slice, so that appending overwrites the rest
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

// name remembers the variables to which a node gives something of the state.
func (c *checker) name(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, x := range n.Rhs {
			c.give(n.Lhs[i], x)
		}
	case *ast.ValueSpec:
		for i, x := range n.Values {
			c.give(n.Names[i], x)
		}
	case *ast.RangeStmt:
		c.give(n.Value, n.X)
	}
	return true
}

// give remembers that a variable was given an expression, if that is of the state.
func (c *checker) give(to, x ast.Expr) {
	if v, ok := to.(*ast.Ident); ok {
		if a := c.origin(x); a.field != nil && c.info.ObjectOf(v) != nil {
			c.aliases[c.info.ObjectOf(v)] = a
		}
	}
}

// origin returns the field of the state that an expression is in, directly or by a
// variable.
func (c *checker) origin(x ast.Expr) alias {
	cut := false
	for {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.TypeAssertExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.UnaryExpr:
			x = e.X
		case *ast.SliceExpr:
			cut = cut || e.High != nil && !e.Slice3
			x = e.X
		case *ast.SelectorExpr:
			if field, ok := c.field(e); ok {
				return alias{field, cut}
			}
			x = e.X
		case *ast.Ident:
			a := c.aliases[c.info.ObjectOf(e)]
			return alias{a.field, a.cut || cut}
		default:
			return alias{}
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

// changers are functions that change what their first argument has.
var changers = map[string][]string{
	"slices": {"Sort", "SortFunc", "SortStableFunc", "Reverse", "Delete", "DeleteFunc", "Insert", "Replace", "Compact", "CompactFunc"},
	"maps":   {"Copy", "DeleteFunc", "Insert"},
	"sort":   {"Strings", "Ints", "Float64s", "Slice", "SliceStable"},
}

// call looks at what a call may change: what is cleared, sorted or deleted from, what is
// not of package turn and has a method called that can change it, and a part that is
// passed to a function that takes everything, such as json.Unmarshal.
func (c *checker) call(n *ast.CallExpr) {
	switch fun := c.function(n).(type) {
	case *types.Builtin:
		switch fun.Name() {
		case "delete", "clear", "copy":
			c.change(n.Args[0])
		case "append":
			if a := c.origin(n.Args[0]); a.cut {
				c.change(n.Args[0])
			}
		}
	case *types.Func:
		if fun.Pkg() != nil && slices.Contains(changers[fun.Pkg().Path()], fun.Name()) {
			c.change(n.Args[0])
		}
		c.pass(fun.Signature(), n.Args)
	}
	fun, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	if method := c.info.Selections[fun]; method != nil && method.Kind() == types.MethodVal {
		if _, changes := method.Obj().(*types.Func).Signature().Recv().Type().(*types.Pointer); changes {
			c.address(fun.X)
		}
	}
}

// function returns what a call calls, or nil if that is a value.
func (c *checker) function(n *ast.CallExpr) types.Object {
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		return c.info.Uses[fun]
	case *ast.SelectorExpr:
		return c.info.Uses[fun.Sel]
	}
	return nil
}

// pass looks for a pointer to a part among arguments, where the parameter can have any
// type. A parameter with a type of ours shows by its methods and fields what it changes.
func (c *checker) pass(sig *types.Signature, args []ast.Expr) {
	for i, x := range args {
		last := sig.Params().Len() - 1
		if last < 0 {
			return
		}
		to := sig.Params().At(min(i, last)).Type()
		if sig.Variadic() && i >= last {
			to = to.(*types.Slice).Elem()
		}
		pointer, ok := types.Unalias(c.info.Types[x].Type).(*types.Pointer)
		if !ok || !takesAll(to) {
			continue
		}
		if named, ok := types.Unalias(pointer.Elem()).(*types.Named); ok && c.types[named.Obj()] {
			c.note(x, named.Obj().Pos(), named.Obj().Name())
		}
	}
}

// takesAll reports whether a parameter takes a pointer to every type.
func takesAll(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		_, all := p.Elem().(*types.TypeParam)
		return all
	}
	i, ok := types.Unalias(t).(*types.Interface)
	return ok && i.NumMethods() == 0
}

// address looks at a field whose address is taken. A part itself guards its fields,
// and the conversation is no part of package turn.
func (c *checker) address(x ast.Expr) {
	if _, pointer := c.info.Types[x].Type.Underlying().(*types.Pointer); pointer {
		return
	}
	of := ast.Unparen(x)
	if element, ok := of.(*ast.IndexExpr); ok {
		of = ast.Unparen(element.X)
	}
	sel, ok := of.(*ast.SelectorExpr)
	if !ok {
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

// change notes that what an expression refers to is changed.
func (c *checker) change(x ast.Expr) { c.assigned(x, true) }

// assign notes that an expression is assigned.
func (c *checker) assign(x ast.Expr) { c.assigned(x, false) }

// assigned notes that an expression is assigned, if it is in a part of the state and
// this is not the part's own file. What is assigned is the last field of the state
// in a chain of selectors, or the field that the variable at the beginning of the chain
// was given, if the chain refers to something. A variable that is assigned itself
// changes nothing else.
func (c *checker) assigned(x ast.Expr, refers bool) {
	for x != nil {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.IndexExpr:
			x, refers = e.X, refers || !isArray(c.info.Types[e.X].Type)
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			if named, ok := types.Unalias(c.info.Types[x].Type).(*types.Named); ok && c.types[named.Obj()] {
				c.note(x, named.Obj().Pos(), named.Obj().Name())
				return
			}
			x, refers = e.X, true
		case *ast.SelectorExpr:
			if field, ok := c.field(e); ok {
				c.note(x, field.Pos(), c.parts[field]+"."+field.Name())
				return
			}
			s := c.info.Selections[e]
			x, refers = e.X, refers || s != nil && s.Indirect()
		case *ast.Ident:
			if a := c.aliases[c.info.ObjectOf(e)]; refers && a.field != nil {
				c.note(x, a.field.Pos(), c.parts[a.field]+"."+a.field.Name())
			}
			return
		default:
			return
		}
	}
}

func isArray(t types.Type) bool {
	_, ok := t.Underlying().(*types.Array)
	return ok
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
