package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"regexp/syntax"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/search"
)

//go:embed grep.md
var grepText string

var grepSpec = tool.Spec{
	Name:        "grep",
	Description: grepText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"pattern":{"type":"string","description":"The regular expression to search for."},` +
		`"paths":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}],"description":"Files and directories to search; the working directory if absent."},` +
		`"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"What to return; files_with_matches if absent."},` +
		`"glob":{"type":"string","description":"Search only files that match this pattern, like *.ts."},` +
		`"type":{"type":"string","description":"Search only files of this type, like js, py, go."},` +
		`"-i":{"type":"boolean","description":"Ignore case."},` +
		`"-A":{"type":"integer","description":"Lines to show after each match, with output_mode content."},` +
		`"-B":{"type":"integer","description":"Lines to show before each match, with output_mode content."},` +
		`"-C":{"type":"integer","description":"Lines to show before and after each match, with output_mode content."},` +
		`"-n":{"type":"boolean","description":"Show line numbers, with output_mode content."},` +
		`"head_limit":{"type":"integer","description":"Return at most so many matches or files."},` +
		`"multiline":{"type":"boolean","description":"Let the pattern match across lines. A dot still matches no line end."}},` +
		`"required":["pattern"]}`),
	Replay: tool.Pure,
	Looks:  true,
}

// Output modes of grep.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

const (
	maxMatches = 40   // maximum number of matches that are shown line by line
	maxLimit   = 1000 // maximum of the argument head_limit
	maxContext = 100  // maximum number of lines around a match
	maxColumns = 500  // maximum number of bytes of a line that are shown
)

// grep is the tool that searches the contents of files.
type grep struct{ *files }

func (g *grep) Spec() tool.Spec { return grepSpec }

// A grepCall is the parsed arguments of a call of grep.
type grepCall struct {
	pattern       string
	options       search.Options
	roots         []searchRoot
	mode          string
	glob, kind    string
	before, after int
	numbers       bool
	limit         int // maximum number of matches or files; 0 for no maximum
	dir           string
}

func readGrepCall(call tool.Call) (*grepCall, error) {
	a := argument.Read(call.Arguments)
	c := &grepCall{pattern: a.Needed("pattern"), roots: searchRoots(call, a.Texts("paths", "path")), dir: call.Dir}
	c.mode = a.Choice("output_mode", modeFiles, modeContent, modeCount)
	c.glob, _ = a.Text("glob")
	c.kind, _ = a.Text("type")
	c.options = search.Options{IgnoreCase: a.Flag("-i"), Multiline: a.Flag("multiline")}
	around, _ := a.Number("-C")
	after, hasAfter := a.Number("-A")
	before, hasBefore := a.Number("-B")
	if !hasAfter {
		after = around
	}
	if !hasBefore {
		before = around
	}
	c.before, c.after = int(min(before, maxContext)), int(min(after, maxContext))
	c.numbers = a.Flag("-n")
	limit, _ := a.Number("head_limit")
	c.limit = int(min(limit, maxLimit))
	return c, a.Err()
}

func (g *grep) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	c, err := readGrepCall(call)
	if err != nil {
		return nil, err
	}
	return g.requestRead(ctx, call, pathsOf(c.roots), func(isFolder bool) string {
		if isFolder {
			return "Search in directory: "
		}
		return "Search in file: "
	})
}

func (g *grep) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	c, err := readGrepCall(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	at, err := g.allowed(ctx, call, scope.Read, pathsOf(c.roots)...)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(c.run(ctx, at, call))
}

func (c *grepCall) run(ctx context.Context, at access, call tool.Call) (tool.Result, error) {
	q, err := c.query()
	if err != nil {
		return tool.Result{}, err
	}
	at, covered, err := c.withoutUnread(ctx, at, call)
	if err != nil {
		return tool.Result{}, err
	}
	found, err := at.files.Grep(ctx, at.scope, q)
	if err != nil {
		return tool.Result{}, unsearchable(ctx, err)
	}
	if len(found.Missing) > 0 {
		return tool.Result{}, fail("", "Error: Search paths do not exist: %s", strings.Join(found.Missing, ", "))
	}
	setFolders(c.roots, found)
	if covered != nil {
		c.leaveOut(&found, covered)
	}
	return tool.Result{Text: c.answer(&found) + problemNote(found)}, nil
}

// grepModes are the output modes as a workspace knows them.
var grepModes = map[string]workspace.GrepMode{modeFiles: workspace.GrepFiles, modeContent: workspace.GrepLines, modeCount: workspace.GrepCount}

// query returns the search for a workspace, or why there can be none.
func (c *grepCall) query() (workspace.GrepQuery, error) {
	q := workspace.GrepQuery{
		Pattern: c.pattern, IgnoreCase: c.options.IgnoreCase, Multiline: c.options.Multiline,
		Roots: queryRoots(c.roots), Mode: grepModes[c.mode], Dir: c.dir, Glob: c.glob,
		Before: c.before, After: c.after, Columns: maxColumns, Limits: limits(max(maxPlain, c.limit)),
	}
	if _, err := search.Compile(c.pattern, c.options); err != nil {
		return q, c.badPattern(err)
	}
	if c.kind != "" {
		names, ok := typePattern(c.kind)
		if !ok {
			return q, fail("", "Error: rg: unrecognized file type: %s", c.kind)
		}
		q.Type = names
	}
	if _, err := glob.Compile(strings.TrimPrefix(strings.TrimPrefix(c.glob, "!"), "/")); c.glob != "" && err != nil {
		return q, fail("", "Error: rg: error parsing glob '%s': %v", c.glob, err)
	}
	return q, nil
}

// badPattern returns the error of an invalid pattern.
func (c *grepCall) badPattern(err error) error {
	if errors.Is(err, search.ErrNewline) {
		return fail("", "Error: rg: %v\n\nConsider enabling multiline mode with the multiline parameter.\nWhen multiline mode is enabled, new line characters can be matched.", err)
	}
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return fail("", "Error: rg: regex parse error:\n    %s\nerror: %s: %s", brief(c.pattern, 500), wrong.Code, brief(wrong.Expr, 200))
	}
	return fail("", "Error: rg: %v", err)
}
