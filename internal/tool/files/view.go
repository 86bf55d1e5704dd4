package files

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/workspace/text"
)

//go:embed view.md
var viewText string

var viewSpec = tool.Spec{
	Name:        "view",
	Description: viewText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Absolute path of the file or directory."},` +
		`"view_range":{"type":"array","items":{"type":"integer"},"description":"First and last line to show, from 1; -1 as the last is the end of the file."},` +
		`"forceReadLargeFiles":{"type":"boolean","description":"Read a file of more than 20 KB as a whole. Use view_range instead where you can."}},` +
		`"required":["path"]}`),
	Replay: tool.Pure,
	Looks:  true,
}

const (
	maxShown   = 20 << 10 // maximum bytes of an answer
	maxFile    = 10 << 20 // maximum bytes of a file that is read as a whole
	maxEntries = 1000     // maximum number of entries of a folder
)

// view is the tool that shows a file, some of its lines, an image, or the names in a
// folder.
type view struct{ *files }

func (v *view) Spec() tool.Spec { return viewSpec }

// A viewCall is the parsed arguments of a call of view.
type viewCall struct {
	path        string
	ranged      bool
	first, last int64 // numbers of the lines; a last of 0 is the end of the file
	force       bool
}

func readViewCall(call tool.Call) (viewCall, error) {
	a := argument.Read(call.Arguments)
	path := a.Needed("path")
	lines, ranged := a.Integers("view_range")
	c := viewCall{absolute(call, path), ranged, 1, 0, a.Flag("forceReadLargeFiles")}
	if err := a.Err(); err != nil {
		return c, err
	}
	if path == "" {
		return c, fail("", "A path parameter is required, and must be a non-empty string.")
	}
	if ranged {
		return c, c.limit(lines)
	}
	return c, nil
}

// limit sets the range of lines.
func (c *viewCall) limit(lines []int64) error {
	const short = "Invalid view_range"
	if len(lines) < 1 || len(lines) > 2 {
		return fail(short, "Invalid view_range: it must have the first line and the last line, not %d numbers.", len(lines))
	}
	c.first = lines[0]
	if len(lines) == 2 && lines[1] != -1 {
		c.last = lines[1]
	}
	switch {
	case c.first < 1:
		return fail(short, "Invalid view_range: start line (%d) must be greater than or equal to 1.", c.first)
	case len(lines) == 2 && lines[1] != -1 && c.last < c.first:
		return fail(short, "Invalid view_range: end line (%d) must be greater than or equal to start line (%d).", c.last, c.first)
	}
	return nil
}

func (v *view) Permission(call tool.Call) (*approval.Request, error) {
	c, err := readViewCall(call)
	if err != nil {
		return nil, err
	}
	return v.requestRead(call, []string{c.path}, func(isFolder bool) string {
		if isFolder {
			return "List directory: "
		}
		return "Read file: "
	})
}

func (v *view) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	c, err := readViewCall(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	s, err := v.allowed(call, scope.Read, c.path)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	info, err := s.Stat(c.path)
	switch {
	case err != nil:
		return finish(tool.Result{}, unusable(c.path, err))
	case info.Kind == scope.Folder:
		return finish(list(s, c.path))
	}
	f, err := s.Open(c.path)
	if err != nil {
		return finish(tool.Result{}, unusable(c.path, err))
	}
	defer func() { _ = f.Close() }()
	return finish(c.show(ctx, f))
}

// show shows an open file.
func (c viewCall) show(ctx context.Context, f *scope.File) (tool.Result, error) {
	start := make([]byte, 16)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return tool.Result{}, unusable(c.path, err)
	}
	rest := io.MultiReader(bytes.NewReader(start[:n]), f)
	if kind := imageKind(start[:n]); kind != "" {
		return image(c.path, kind, rest, f.Size())
	}
	decoded, err := text.Reader(rest)
	if err != nil {
		return tool.Result{}, unusable(c.path, err)
	}
	if c.ranged {
		return c.lines(ctx, decoded)
	}
	return c.whole(decoded, f.Size())
}

// whole shows a whole file, if it is not too large.
func (c viewCall) whole(r io.Reader, size int64) (tool.Result, error) {
	const advice = "Consider using the grep tool to search within the file, or view with view_range to read specific sections."
	most := int64(maxShown)
	if c.force {
		most = maxFile
	}
	var data []byte
	if size <= most {
		var err error
		if data, err = io.ReadAll(io.LimitReader(r, most+1)); err != nil {
			return tool.Result{}, unusable(c.path, err)
		}
		size = max(size, int64(len(data)))
	}
	switch {
	case size > maxFile:
		return tool.Result{}, fail("File too large", "File is too large to view (%s). Maximum file size is 10MB. Use shell tool with head/tail commands or specify a line range with view_range parameter to view specific sections.", megabytes(size))
	case size > most:
		return tool.Result{Text: fmt.Sprintf("File too large to read at once (%s). %s", kilobytes(size), advice)}, nil
	}
	shown := text.Valid(data)
	return tool.Result{Text: shown, Detailed: unchanged(c.path, 1, shown)}, nil
}

func kilobytes(n int64) string { return strconv.FormatFloat(float64(n)/1024, 'f', 1, 64) + " KB" }

func megabytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "MB" }

// lines shows some lines of a file of any size.
func (c viewCall) lines(ctx context.Context, r io.Reader) (tool.Result, error) {
	e, err := readExcerpt(ctx, r, c.first, c.last)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.Result{}, unusable(c.path, err)
	case e.seen < c.first:
		return tool.Result{}, fail("view_range out of bounds", "Invalid view_range: start line (%d) is beyond the end of the file. The file has %d lines.", c.first, e.seen)
	}
	shown, note := e.show()
	return tool.Result{Text: shown + note, Detailed: unchanged(c.path, c.first, shown)}, nil
}

// list shows the sorted names in a folder; only the first ones if there are many.
func list(s *scope.Scope, path string) (tool.Result, error) {
	d, err := s.OpenDir(path)
	if err != nil {
		return tool.Result{}, unusable(path, err)
	}
	defer func() { _ = d.Close() }()
	var names []string
	count := 0
	if err := d.Each(make([]byte, 1<<15), func(name []byte, _ scope.Kind) bool {
		names = append(names, string(name))
		if count++; len(names) == 2*maxEntries {
			names = firstNames(names)
		}
		return true
	}); err != nil {
		return tool.Result{}, unusable(path, err)
	}
	names = firstNames(names)
	for i, name := range names {
		names[i] = plainName(name)
	}
	out := strings.Join(names, "\n")
	if count > len(names) {
		out += fmt.Sprintf("\n\n[The first %d of %d entries by name. Use glob with a pattern to find others.]", len(names), count)
	}
	return tool.Result{Text: out}, nil
}

func firstNames(names []string) []string {
	slices.Sort(names)
	return names[:min(len(names), maxEntries)]
}

// plainName returns a name on one line, as UTF-8.
func plainName(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return text.Valid([]byte(name))
}
