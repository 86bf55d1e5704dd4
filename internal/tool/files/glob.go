package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/tool/files/walk"
)

//go:embed glob.md
var globText string

var globSpec = tool.Spec{
	Name:        "glob",
	Description: globText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"The pattern that paths must match."},` +
		`"paths":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"description":"Where to search; the working directory if absent."}},` +
		`"required":["pattern"]}`),
	Replay: tool.Pure,
	Looks:  true,
}

// maxPlain is the maximum number of paths that are listed one by one.
const maxPlain = 200

// find is the tool glob: it finds files by name.
type find struct{ *files }

func (f *find) Spec() tool.Spec { return globSpec }

// A findCall is the parsed arguments of a call of glob.
type findCall struct {
	pattern string
	roots   []searchRoot
}

func readFindCall(call tool.Call) (findCall, error) {
	a := argument.Read(call.Arguments)
	c := findCall{pattern: a.Needed("pattern"), roots: searchRoots(call, a.Texts("paths", "path"))}
	return c, a.Err()
}

func (f *find) Permission(call tool.Call) (*approval.Request, error) {
	c, err := readFindCall(call)
	if err != nil {
		return nil, err
	}
	return f.requestRead(call, pathsOf(c.roots), func(bool) string { return "Search for files matching pattern in: " })
}

func (f *find) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	c, err := readFindCall(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	s, err := f.allowed(call, scope.Read, pathsOf(c.roots)...)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(c.run(ctx, s))
}

func (c findCall) run(ctx context.Context, s *scope.Scope) (tool.Result, error) {
	pattern, err := glob.Compile(c.pattern)
	if err != nil {
		return tool.Result{}, fail("", "Error: rg: error parsing glob '%s': %v", c.pattern, err)
	}
	missing, err := statRoots(s, c.roots)
	if err != nil {
		return tool.Result{}, err
	}
	if len(missing) > 0 {
		return tool.Result{}, fail("", "Error: rg: %s: IO error for operation on %s: No such file or directory (os error 2)", missing[0], missing[0])
	}
	found := &results{groupsKept: maxPlain, itemsKept: maxPlain}
	var problems walk.Problems
	for _, p := range c.roots {
		more, err := c.search(ctx, s, p, pattern, found)
		if err != nil {
			return tool.Result{}, err
		}
		problems.Join(more)
	}
	return tool.Result{Text: c.answer(found) + problemNote(problems)}, nil
}

// search searches for files in one place.
func (c findCall) search(ctx context.Context, s *scope.Scope, p searchRoot, pattern *glob.Pattern, found *results) (walk.Problems, error) {
	if !p.folder {
		if name := filepath.Base(p.path); pattern.Match(name) {
			found.putPath(strings.TrimSuffix(p.given, name), name, 0)
		}
		return walk.Problems{}, nil
	}
	dir, err := s.OpenDir(p.path)
	if err != nil {
		return walk.Problems{}, unusable(p.path, err)
	}
	deep, prefix := strings.Contains(c.pattern, "/"), p.prefix()
	return walk.Tree(ctx, dir, walk.Options{Filter: c.prune()}, func(_ int, f walk.File) error {
		subject := f.Name
		if deep {
			subject = f.Path + f.Name
		}
		if pattern.Match(subject) {
			found.putPath(prefix+f.Path, f.Name, 0)
		}
		return nil
	})
}

// prune returns a filter that skips the folders in which nothing can match, and enters
// .git if the pattern names it.
func (c findCall) prune() func(path, name string, isFolder bool) walk.Choice {
	fixed := fixedFolders(c.pattern)
	git := strings.Contains(c.pattern, ".git")
	return func(path, name string, isFolder bool) walk.Choice {
		depth := strings.Count(path, "/")
		switch {
		case isFolder && depth < len(fixed) && name != fixed[depth]:
			return walk.Leave
		case git && name == ".git":
			return walk.Take
		}
		return walk.Neither
	}
}

// fixedFolders returns the folders that a pattern begins with.
func fixedFolders(pattern string) []string {
	names := strings.Split(pattern, "/")
	for i, name := range names {
		if i == len(names)-1 || name == "" || strings.ContainsAny(name, `*?[]{}\`) {
			return names[:i]
		}
	}
	return nil
}

func (c findCall) answer(found *results) string {
	if found.count == 0 {
		return "No files matched the pattern."
	}
	if found.count <= maxPlain {
		if out, ok := found.plainPaths(maxPlain, false); ok {
			return out
		}
	}
	return found.compact(layout{
		head: fmt.Sprintf("glob: %d path(s) under %s; grouped by directory", found.count, rootNames(c.roots)),
		unit: "path(s)", group: "directory", groups: "directories",
		name: func(g *group) string { return plainName(g.name) },
		show: func(it item) string { return it.path("", false) },
	})
}

// plainPaths lists the first paths one by one, with their counts if requested. It
// reports false if they are too long for an answer.
func (s *results) plainPaths(most int, counts bool) (string, bool) {
	var p boundedText
	for _, g := range s.groups {
		for _, it := range g.items {
			if p.lines == most {
				return p.String(), true
			}
			if !p.line("%s", it.path(g.name, counts)) {
				return p.String(), false
			}
		}
	}
	return p.String(), true
}

// path returns an item as a path in a folder, with its count if requested.
func (it item) path(folder string, counted bool) string {
	if counted {
		return fmt.Sprintf("%s:%d", plainName(folder+it.text), it.number)
	}
	return plainName(folder + it.text)
}
