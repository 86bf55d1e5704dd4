package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// fileTools are the packages of the file tools. Those below them that keep something in
// the engine's own data folder are not among them.
var fileTools = []string{module + "internal/tool/files"}

// lexical are the functions of path/filepath that look only at the letters of a path.
var lexical = []string{"Base", "Clean", "Dir", "Ext", "IsAbs", "IsLocal", "Join", "Rel"}

// opening are the functions and methods of package scope that follow a path on this
// machine.
var opening = []string{"Apply", "Judge", "New", "Open", "OpenDir", "ReadFile", "Stat"}

// TestFileToolsReachFilesThroughTheWorkspace: the files of a session may be on another
// machine, so the tools neither open a path nor judge where it leads.
func TestFileToolsReachFilesThroughTheWorkspace(t *testing.T) {
	listed, seen := list(t), 0
	for _, p := range listed {
		if !slices.Contains(fileTools, p.path) {
			continue
		}
		seen++
		fset := token.NewFileSet()
		found, err := reaches(fset, p.parse(t, fset), exported(fset, listed))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range found {
			t.Error(line)
		}
	}
	if seen != len(fileTools) {
		t.Errorf("%d of the packages %v are there", seen, fileTools)
	}
}

// TestReachesAreFound: the check sees every way past the workspace.
func TestReachesAreFound(t *testing.T) {
	listed := list(t)
	scoped, local := `import "`+module+`internal/approval/scope"; `, `import "`+module+`internal/workspace/local"; `
	for text, want := range map[string]string{
		`import "os"; var _ = os.Stat`:                                 "uses os.Stat",
		`import "os"; func f(x *os.File) { x.Sync() }`:                 "uses os.Sync",
		`import "os/exec"; var _ = exec.Command`:                       "uses os/exec.Command",
		`import "golang.org/x/sys/unix"; var _ = unix.Open`:            "uses golang.org/x/sys/unix.Open",
		`import "syscall"; var _ = syscall.Open`:                       "uses syscall.Open",
		`import sys "syscall"; var _ = sys.EISDIR`:                     "",
		`import "path/filepath"; var _ = filepath.EvalSymlinks`:        "uses path/filepath.EvalSymlinks",
		`import p "path/filepath"; var _ = p.Abs`:                      "uses path/filepath.Abs",
		`import . "path/filepath"; var _ = Abs`:                        "uses path/filepath.Abs",
		`import "path/filepath"; var _ = filepath.Join`:                "",
		local + `var _ = local.New`:                                    "workspace/local.New",
		scoped + `var _ = scope.New`:                                   "scope.New",
		scoped + `var _ = (*scope.Scope).Judge`:                        "scope.Judge",
		scoped + `func f(x *scope.Scope) { x.With("/", 0).Stat("x") }`: "scope.Stat",
		scoped + `func f(x struct{ *scope.Dir }) { x.Open("x") }`:      "scope.Open",
		scoped + `func f(x *scope.Scope) { x.With("x", scope.Read) }`:  "",
		scoped + `func f(x scope.Refusal) string { return x.Error() }`: "",
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\n"+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found, err := reaches(fset, []*ast.File{f}, exported(fset, listed))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
}

// exported returns an importer of packages that the go command has built.
func exported(fset *token.FileSet, listed []listedPackage) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		for _, p := range listed {
			if p.path == path {
				return os.Open(p.export)
			}
		}
		return nil, errors.New("it is not in the list of packages")
	})
}

// reaches checks the types of a package and returns where it reaches past the workspace.
func reaches(fset *token.FileSet, sources []*ast.File, from types.Importer) ([]string, error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: from}).Check("x", fset, sources, info); err != nil {
		return nil, err
	}
	var found []string
	for at, used := range info.Uses {
		if used.Pkg() == nil || !touchesFiles(used) {
			continue
		}
		if _, isPackage := used.(*types.PkgName); isPackage {
			continue
		}
		where := fset.Position(at.Pos())
		found = append(found, fmt.Sprintf("%s:%d uses %s.%s: the file may be on another machine, so ask workspace.Files", where.Filename, where.Line, used.Pkg().Path(), used.Name()))
	}
	slices.Sort(found)
	return found, nil
}

// touchesFiles reports whether an object reads, writes or follows paths of this machine.
func touchesFiles(used types.Object) bool {
	_, isConst := used.(*types.Const)
	_, isFunc := used.(*types.Func)
	switch path := used.Pkg().Path(); {
	case path == "os", strings.HasPrefix(path, "os/"), path == "io/ioutil", strings.HasPrefix(path, "golang.org/x/sys"),
		strings.HasPrefix(path+"/", module+"internal/workspace/local/"):
		return true
	case path == "syscall":
		return !isConst // errors may be compared
	case path == "path/filepath":
		return isFunc && !slices.Contains(lexical, used.Name())
	case path == module+"internal/approval/scope":
		return isFunc && slices.Contains(opening, used.Name())
	}
	return false
}
