package files

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/workspace"
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

func (v *view) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	c, err := readViewCall(call)
	if err != nil {
		return nil, err
	}
	return v.requestRead(ctx, call, []string{c.path}, func(isFolder bool) string {
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
	at, err := v.allowed(ctx, call, scope.Read, c.path)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	shown, err := at.files.Show(ctx, at.scope, workspace.ShowRequest{
		Path: c.path, Lines: c.ranged, First: c.first, Last: c.last,
		MaxWhole: c.maxWhole(), MaxImage: maxImage, MaxLines: maxShown, MaxNames: maxEntries,
	})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return finish(tool.Result{}, unusable(c.path, err))
	}
	return finish(c.show(shown))
}

// maxWhole returns the maximum size of a file that is shown as a whole.
func (c viewCall) maxWhole() int64 {
	if c.force {
		return maxFile
	}
	return maxShown
}

// show shows what the workspace has returned.
func (c viewCall) show(shown workspace.Shown) (tool.Result, error) {
	switch {
	case shown.Folder:
		return list(shown), nil
	case shown.Image != "":
		return image(c.path, shown)
	case c.ranged:
		return c.lines(shown)
	}
	return c.whole(shown)
}

// whole shows a whole file, if it is not too large.
func (c viewCall) whole(f workspace.Shown) (tool.Result, error) {
	const advice = "Consider using the grep tool to search within the file, or view with view_range to read specific sections."
	switch size := max(f.Size, int64(len(f.Content))); {
	case size > maxFile:
		return tool.Result{}, fail("File too large", "File is too large to view (%s). Maximum file size is 10MB. Use shell tool with head/tail commands or specify a line range with view_range parameter to view specific sections.", megabytes(size))
	case size > c.maxWhole():
		return tool.Result{Text: fmt.Sprintf("File too large to read at once (%s). %s", kilobytes(size), advice)}, nil
	}
	shown := f.Text()
	return tool.Result{Text: shown, Detailed: unchanged(c.path, 1, shown)}, nil
}

func kilobytes(n int64) string { return strconv.FormatFloat(float64(n)/1024, 'f', 1, 64) + " KB" }

func megabytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "MB" }

// lines shows some lines of a file of any size.
func (c viewCall) lines(f workspace.Shown) (tool.Result, error) {
	if f.Seen < c.first {
		return tool.Result{}, fail("view_range out of bounds", "Invalid view_range: start line (%d) is beyond the end of the file. The file has %d lines.", c.first, f.Seen)
	}
	shown, note := excerpt(c.first, f)
	return tool.Result{Text: shown + note, Detailed: unchanged(c.path, c.first, shown)}, nil
}

// excerpt returns lines as text, and a note if some are left out.
func excerpt(first int64, f workspace.Shown) (shown, note string) {
	if !f.Full {
		return text.Valid(f.Content), ""
	}
	end := bytes.LastIndexByte(f.Content[:min(maxShown+1, len(f.Content))], '\n')
	if end < 0 {
		return text.Cut(text.Valid(f.Content), maxShown), "\n\n[Output truncated. Use other tools to examine the file's contents. File may be a single long line.]"
	}
	next := first + int64(bytes.Count(f.Content[:end], []byte{'\n'})) + 1
	return text.Valid(f.Content[:end]), fmt.Sprintf("\n\n[Output truncated. Use view_range=[%d, ...] to continue reading. In your next response, you may batch this with other view calls. File has at least %d lines.]", next, f.Seen)
}

// list shows the sorted names in a folder; only the first ones if there are many.
func list(f workspace.Shown) tool.Result {
	names := make([]string, len(f.Names))
	for i, name := range f.Names {
		names[i] = plainName(name)
	}
	out := strings.Join(names, "\n")
	if f.Count > int64(len(names)) {
		out += fmt.Sprintf("\n\n[The first %d of %d entries by name. Use glob with a pattern to find others.]", len(names), f.Count)
	}
	return tool.Result{Text: out}
}

// plainName returns a name on one line, as UTF-8.
func plainName(name string) string {
	if strings.ContainsAny(name, "\n\r") {
		return strconv.Quote(name)
	}
	return text.Valid([]byte(name))
}
