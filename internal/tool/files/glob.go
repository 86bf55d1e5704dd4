package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/workspace"
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

func (f *find) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	c, err := readFindCall(call)
	if err != nil {
		return nil, err
	}
	return f.requestRead(ctx, call, pathsOf(c.roots), func(bool) string { return "Search for files matching pattern in: " })
}

func (f *find) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	c, err := readFindCall(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	at, err := f.allowed(ctx, call, scope.Read, pathsOf(c.roots)...)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(c.run(ctx, at))
}

func (c findCall) run(ctx context.Context, at access) (tool.Result, error) {
	if _, err := glob.Compile(c.pattern); err != nil {
		return tool.Result{}, fail("", "Error: rg: error parsing glob '%s': %v", c.pattern, err)
	}
	found, err := at.files.Glob(ctx, at.scope, workspace.GlobQuery{Pattern: c.pattern, Roots: queryRoots(c.roots), Limits: limits(maxPlain)})
	if err != nil {
		return tool.Result{}, unsearchable(ctx, err)
	}
	if len(found.Missing) > 0 {
		return tool.Result{}, fail("", "Error: rg: %s: IO error for operation on %s: No such file or directory (os error 2)", found.Missing[0], found.Missing[0])
	}
	setFolders(c.roots, found)
	return tool.Result{Text: c.answer(&found) + problemNote(found)}, nil
}

func (c findCall) answer(found *workspace.Found) string {
	if found.Count == 0 {
		return "No files matched the pattern."
	}
	if found.Count <= maxPlain {
		if out, ok := plainPaths(found, maxPlain, false); ok {
			return out
		}
	}
	return compact(found, layout{
		head: fmt.Sprintf("glob: %d path(s) under %s; grouped by directory", found.Count, rootNames(c.roots)),
		unit: "path(s)", group: "directory", groups: "directories",
		name: func(g *workspace.Group) string { return plainName(g.Name) },
		show: func(it workspace.Item) string { return itemPath(it, "", false) },
	})
}

// plainPaths lists the first paths one by one, with their counts if requested. It
// reports false if they are too long for an answer.
func plainPaths(s *workspace.Found, most int, counts bool) (string, bool) {
	var p boundedText
	for _, g := range s.Groups {
		for _, it := range g.Items {
			if p.lines == most {
				return p.String(), true
			}
			if !p.line("%s", itemPath(it, g.Name, counts)) {
				return p.String(), false
			}
		}
	}
	return p.String(), true
}

// itemPath returns an item as a path in a folder, with its count if requested.
func itemPath(it workspace.Item, folder string, counted bool) string {
	if counted {
		return fmt.Sprintf("%s:%d", plainName(folder+it.Text), it.Number)
	}
	return plainName(folder + it.Text)
}
