package local

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local/walk"
	"github.com/abide-run/abide/internal/workspace/search"
	"github.com/abide-run/abide/internal/workspace/text"
)

// maxContext is the maximum number of lines around a match.
const maxContext = 100

// Grep implements workspace.Files.
func (w *files) Grep(ctx context.Context, s *scope.Scope, q workspace.GrepQuery) (workspace.Found, error) {
	pattern, err := search.Compile(q.Pattern, search.Options{IgnoreCase: q.IgnoreCase, Multiline: q.Multiline})
	if err != nil {
		return workspace.Found{}, invalidQuery(err)
	}
	filter, err := newFilter(q.Glob, q.Type)
	if err != nil {
		return workspace.Found{}, invalidQuery(err)
	}
	q.Before, q.After, q.Columns = clamp(q.Before, maxContext), clamp(q.After, maxContext), clamp(q.Columns, workspace.MaxText)
	s = w.scopeHere(s)
	j := &grepSearch{GrepQuery: q, searched: newSearched(q.Limits), pattern: pattern}
	for range walk.Workers() {
		j.searchers = append(j.searchers, pattern.Searcher())
	}
	return j.in(ctx, s, q.Roots, func(p searchRoot) (walk.Problems, error) { return j.root(ctx, s, p, filter) })
}

// invalidQuery returns the error of a pattern that cannot be understood.
func invalidQuery(err error) error { return fmt.Errorf("%w: %w", fs.ErrInvalid, err) }

// A grepSearch is one search of grep in all places.
type grepSearch struct {
	workspace.GrepQuery
	*searched
	pattern   *search.Pattern
	searchers []*search.Searcher // one searcher for each worker
}

// root searches in one place. The filter applies to the files of a folder, but not to a
// file that the query names.
func (j *grepSearch) root(ctx context.Context, s *scope.Scope, p searchRoot, filter *filter) (walk.Problems, error) {
	if !p.folder {
		f, err := s.Open(p.Path)
		if err != nil {
			return walk.Problems{}, err
		}
		name := filepath.Base(p.Given)
		return walk.Problems{}, j.file(ctx, 0, f, strings.TrimSuffix(p.Given, name), name)
	}
	dir, err := s.OpenDir(p.Path)
	if err != nil {
		return walk.Problems{}, err
	}
	prefix := p.prefix()
	o := walk.Options{Honour: true, Ignore: walk.Above(s, dir.Path()), Filter: filter.in(j.Dir, p.Path)}
	return walk.Tree(ctx, dir, o, func(worker int, w walk.File) error {
		f, err := w.Dir.Open(w.Name)
		if err != nil {
			return err
		}
		if err := j.file(ctx, worker, f, prefix+w.Path, w.Name); err != nil {
			return fmt.Errorf("%s%s%s: %w", prefix, w.Path, w.Name, err)
		}
		return nil
	})
}

// file searches a file and closes it.
func (j *grepSearch) file(ctx context.Context, worker int, f *scope.File, folder, name string) error {
	defer func() { _ = f.Close() }()
	var lines []workspace.Item
	q := search.Query{Size: f.Size(), First: j.Mode == workspace.GrepFiles}
	if j.Mode == workspace.GrepLines {
		q.Before, q.After, q.Show = j.Before, j.After, j.collect(&lines)
	}
	report, err := j.searchers[worker].File(stoppable{ctx, f}, q)
	if err != nil || report.Count == 0 {
		return err
	}
	if j.Mode == workspace.GrepLines {
		j.found.put(folder+name, report.Count, func(g *workspace.Group) { g.Items = lines })
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
func (j *grepSearch) collect(lines *[]workspace.Item) func(search.Line) bool {
	left := j.found.itemsKept
	return func(l search.Line) bool {
		it := workspace.Item{Text: j.excerpt(l), Number: l.Number, Context: !l.Match, Counts: l.Match && !l.More}
		if it.Counts {
			left--
		}
		if left < 0 {
			return false
		}
		*lines = append(*lines, it)
		return true
	}
}

// excerpt returns the part of a line that is shown: the whole line, or the part around
// the match if the line is long.
func (j *grepSearch) excerpt(l search.Line) string {
	line := strings.TrimSuffix(text.Valid(l.Text), "\r")
	if len(line) <= j.Columns {
		return line
	}
	at := 0
	if loc := j.pattern.Find(l.Text); l.Match && loc != nil {
		at = len(text.Valid(l.Text[:loc[0]]))
	}
	start := max(0, min(at-j.Columns/4, len(line)-j.Columns))
	for !utf8.RuneStart(line[start]) {
		start--
	}
	shown := text.Cut(line[start:], j.Columns)
	return cutMark(start) + shown + cutMark(len(line)-start-len(shown))
}

func cutMark(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("[… %d bytes …]", n)
}
