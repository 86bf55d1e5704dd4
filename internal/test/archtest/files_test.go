package archtest

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inWorkspace are the packages that use files of a session's workspace, beside all tools. The
// packages below them that keep something in the engine's own data folder are not among them,
// and neither are the files of a package that are named here.
var inWorkspace = map[string][]string{
	"internal/project/instructions": nil,
	"internal/project/skills":       nil,
	// The copies of summaries, a copy of a log and the plan are in the data folder.
	"internal/session": {"checkpoint.go", "log.go", "planfile.go"},
	// What was asked about commands, and the copies of protected files, are in the data folder.
	"internal/tool/bash":  {"notes.go"},
	"internal/tool/guard": {"store.go"},
}

// usesWorkspace reports whether a package uses files of a session's workspace. Every tool
// does: it is one that is in the folder of tools.
func usesWorkspace(name string) bool {
	_, listed := inWorkspace[name]
	return listed || path.Dir(name) == "internal/tool"
}

// lexical are the functions of path/filepath that look only at the letters of a path.
var lexical = []string{"Base", "Clean", "Dir", "Ext", "FromSlash", "IsAbs", "IsLocal", "Join", "Rel", "Split", "SplitList"}

// opening are the functions and methods of package scope that follow a path on this
// machine.
var opening = []string{"Apply", "Judge", "New", "Open", "OpenDir", "ReadFile", "Stat"}

// TestFilesOfSessionsAreReachedThroughTheWorkspace: the files of a session may be on another
// machine, so nothing opens a path or judges where it leads but the workspace itself.
func TestFilesOfSessionsAreReachedThroughTheWorkspace(t *testing.T) {
	all, seen := list(t), 0
	fset := token.NewFileSet()
	from := exported(fset, all)
	for _, p := range all {
		name := strings.TrimPrefix(p.path, module)
		if !usesWorkspace(name) {
			continue
		}
		except, listed := inWorkspace[name]
		if listed {
			seen++
		}
		found, err := reaches(fset, p.parse(t, fset), from)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range except {
			if !slices.Contains(p.files, file) {
				t.Errorf("%s has no file %s", p.path, file)
			}
		}
		for _, r := range found {
			if !slices.Contains(except, filepath.Base(r.file)) {
				t.Error(r)
			}
		}
	}
	if seen != len(inWorkspace) {
		t.Errorf("%d of the packages %v are there", seen, slices.Collect(maps.Keys(inWorkspace)))
	}
}

// TestReachesAreFound: the check sees every way past the workspace.
func TestReachesAreFound(t *testing.T) {
	listed := list(t)
	scoped, local := `import "`+module+`internal/approval/scope"; `, `import "`+module+`internal/workspace/local"; `
	for text, want := range map[string]string{
		`import "os"; var _ = os.Stat`:                                    "uses os.Stat",
		`import "os"; func f(x *os.File) { x.Sync() }`:                    "uses os.Sync",
		`import "os/exec"; var _ = exec.Command`:                          "uses os/exec.Command",
		`import "golang.org/x/sys/unix"; var _ = unix.Open`:               "uses golang.org/x/sys/unix.Open",
		`import "syscall"; var _ = syscall.Open`:                          "uses syscall.Open",
		`import sys "syscall"; var _ = sys.EISDIR`:                        "",
		`import "path/filepath"; var _ = filepath.EvalSymlinks`:           "uses path/filepath.EvalSymlinks",
		`import p "path/filepath"; var _ = p.Abs`:                         "uses path/filepath.Abs",
		`import . "path/filepath"; var _ = Abs`:                           "uses path/filepath.Abs",
		`import "path/filepath"; var _ = filepath.Join`:                   "",
		`import "` + module + `internal/project/file"; var _ = file.Read`: "project/file.Read",
		local + `var _ = local.New`:                                       "workspace/local.New",
		scoped + `var _ = scope.New`:                                      "scope.New",
		scoped + `var _ = (*scope.Scope).Judge`:                           "scope.Judge",
		scoped + `func f(x *scope.Scope) { x.With("/", 0).Stat("x") }`:    "scope.Stat",
		scoped + `func f(x struct{ *scope.Dir }) { x.Open("x") }`:         "scope.Open",
		scoped + `func f(x *scope.Scope) { x.With("x", scope.Read) }`:     "",
		scoped + `func f(x scope.Refusal) string { return x.Error() }`:    "",
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
		got := ""
		for _, r := range found {
			got += r.String() + "\n"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
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

// A reach is a place where a package reaches past the workspace.
type reach struct {
	file string
	line int
	uses string
}

func (r reach) String() string {
	return fmt.Sprintf("%s:%d uses %s: the file may be on another machine, so ask workspace.Files", r.file, r.line, r.uses)
}

// reaches checks the types of a package and returns where it reaches past the workspace.
func reaches(fset *token.FileSet, sources []*ast.File, from types.Importer) ([]reach, error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: from}).Check("x", fset, sources, info); err != nil {
		return nil, err
	}
	var found []reach
	for at, used := range info.Uses {
		if used.Pkg() == nil || !touchesFiles(used) {
			continue
		}
		if _, isPackage := used.(*types.PkgName); isPackage {
			continue
		}
		where := fset.Position(at.Pos())
		found = append(found, reach{where.Filename, where.Line, used.Pkg().Path() + "." + used.Name()})
	}
	slices.SortFunc(found, func(a, b reach) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return found, nil
}

// touchesFiles reports whether an object reads, writes or follows paths of this machine.
func touchesFiles(used types.Object) bool {
	_, isConst := used.(*types.Const)
	_, isFunc := used.(*types.Func)
	switch path := used.Pkg().Path(); {
	case path == "os", strings.HasPrefix(path, "os/"), path == "io/ioutil", strings.HasPrefix(path, "golang.org/x/sys"),
		strings.HasPrefix(path+"/", module+"internal/workspace/local/"), path == module+"internal/project/file":
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
