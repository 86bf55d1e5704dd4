package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp/syntax"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/tool/files/walk"
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

func (g *grep) Permission(call tool.Call) (*approval.Request, error) {
	c, err := readGrepCall(call)
	if err != nil {
		return nil, err
	}
	return g.requestRead(call, pathsOf(c.roots), func(isFolder bool) string {
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
	s, err := g.allowed(call, scope.Read, pathsOf(c.roots)...)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(c.run(ctx, s))
}

func (c *grepCall) run(ctx context.Context, s *scope.Scope) (tool.Result, error) {
	pattern, err := search.Compile(c.pattern, c.options)
	if err != nil {
		return tool.Result{}, c.badPattern(err)
	}
	filter, err := newFilter(c.glob, c.kind)
	if err != nil {
		return tool.Result{}, err
	}
	missing, err := statRoots(s, c.roots)
	if err != nil {
		return tool.Result{}, err
	}
	if len(missing) > 0 {
		return tool.Result{}, fail("", "Error: Search paths do not exist: %s", strings.Join(missing, ", "))
	}
	j := newGrepSearch(c, pattern)
	for _, p := range c.roots {
		if err := j.search(ctx, s, p, filter); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.Result{Text: c.answer(j.found) + problemNote(j.problems)}, nil
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

// A grepSearch is one search of grep in all places.
type grepSearch struct {
	*grepCall
	pattern   *search.Pattern
	searchers []*search.Searcher // one searcher for each worker
	found     *results
	problems  walk.Problems
}

func newGrepSearch(c *grepCall, pattern *search.Pattern) *grepSearch {
	most := max(maxPlain, c.limit)
	j := &grepSearch{grepCall: c, pattern: pattern, found: &results{groupsKept: most, itemsKept: most}}
	for range walk.Workers() {
		j.searchers = append(j.searchers, pattern.Searcher())
	}
	return j
}

// search searches in one place. The filter applies to the files of a folder, but not to
// a file that the call names.
func (j *grepSearch) search(ctx context.Context, s *scope.Scope, p searchRoot, filter *filter) error {
	if !p.folder {
		f, err := s.Open(p.path)
		if err == nil {
			name := filepath.Base(p.given)
			err = j.file(ctx, 0, f, strings.TrimSuffix(p.given, name), name)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return unusable(p.path, err)
		}
		return nil
	}
	dir, err := s.OpenDir(p.path)
	if err != nil {
		return unusable(p.path, err)
	}
	prefix := p.prefix()
	o := walk.Options{Honour: true, Ignore: walk.Above(s, dir.Path()), Filter: filter.in(j.dir, p.path)}
	more, err := walk.Tree(ctx, dir, o, func(worker int, w walk.File) error {
		f, err := w.Dir.Open(w.Name)
		if err != nil {
			return err
		}
		if err := j.file(ctx, worker, f, prefix+w.Path, w.Name); err != nil {
			return fmt.Errorf("%s%s%s: %w", prefix, w.Path, w.Name, err)
		}
		return nil
	})
	j.problems.Join(more)
	return err
}

// file searches a file and closes it.
func (j *grepSearch) file(ctx context.Context, worker int, f *scope.File, folder, name string) error {
	defer func() { _ = f.Close() }()
	var lines []item
	q := search.Query{Size: f.Size(), First: j.mode == modeFiles}
	if j.mode == modeContent {
		q.Before, q.After, q.Show = j.before, j.after, j.collect(&lines)
	}
	report, err := j.searchers[worker].File(stoppable{ctx, f}, q)
	if err != nil || report.Count == 0 {
		return err
	}
	if j.mode == modeContent {
		j.found.put(folder+name, report.Count, func(g *group) { g.items = lines })
	} else {
		j.found.putPath(folder, name, report.Count)
	}
	return nil
}

// A stoppable file returns an error when its context ends.
type stoppable struct {
	ctx  context.Context
	file *scope.File
}

func (s stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.file.Read(p)
}

// collect returns a function that keeps the first lines of a file.
func (j *grepSearch) collect(lines *[]item) func(search.Line) bool {
	left := j.found.itemsKept
	return func(l search.Line) bool {
		it := item{j.excerpt(l), l.Number, !l.Match, l.Match && !l.More}
		if it.counts {
			left--
		}
		if left < 0 {
			return false
		}
		*lines = append(*lines, it)
		return true
	}
}
