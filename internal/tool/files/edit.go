package files

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/workspace/text"
)

//go:embed edit.md
var editText string

var editSpec = tool.Spec{
	Name:        "edit",
	Description: editText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Absolute path of the file."},` +
		`"old_str":{"type":"string","description":"The text to be replaced. It must stand in the file exactly once."},` +
		`"new_str":{"type":"string","description":"The text that takes its place. It may be empty."}},` +
		`"required":["path","old_str","new_str"]}`),
	Replay: tool.Keyed,
	Looks:  true,
}

// edit is the tool that replaces a part of a file.
type edit struct{ *files }

func (e *edit) Spec() tool.Spec { return editSpec }

// An editCall is the parsed arguments of a call of edit.
type editCall struct {
	path, old, new string
}

func (e *edit) writer(call tool.Call) (writer, error) {
	a := argument.Read(call.Arguments)
	name := a.Needed("path")
	old, _ := a.Text("old_str")
	now, given := a.Text("new_str")
	c := editCall{absolute(call, name), old, now}
	if err := a.Err(); err != nil {
		return writer{}, err
	}
	switch {
	case name == "":
		return writer{}, fail("", "A path parameter is required, and must be a non-empty string.")
	case old == "":
		return writer{}, fail("", "Invalid inputs: old_str is required")
	case !given:
		return writer{}, fail("", "Invalid inputs: new_str is required")
	case old == now:
		return writer{}, succeed("No changes made: old_str and new_str are the same")
	}
	return writer{path: c.path, intention: "Edit file", done: "File " + c.path + " updated with changes.", most: maxFile, plan: c.plan}, nil
}

func (e *edit) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	w, err := e.writer(call)
	if err != nil {
		return nil, err
	}
	return e.requestWrite(ctx, call, w)
}

func (e *edit) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	w, err := e.writer(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(e.write(ctx, call, w))
}

// plan finds the text and replaces it.
func (c editCall) plan(p place) (change, error) {
	data := p.file.Content
	if p.file.Err != nil {
		return change{}, c.unreadable(p.file.Err)
	}
	if err := editable(c.path, data); err != nil {
		return change{}, err
	}
	places, count := occurrences(data, c.old)
	switch count {
	case 0:
		return change{}, c.missing(data)
	case 1:
		return change{data, replace(data, places[0], c.old, c.new)}, nil
	}
	return change{}, c.ambiguous(data, places, count)
}

// unreadable returns the error that the file cannot be read, in words that models know.
func (c editCall) unreadable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.systemError("ENOENT: no such file or directory, open '" + c.path + "'")
	case errors.Is(err, syscall.EISDIR):
		return c.systemError("EISDIR: illegal operation on a directory, read")
	case errors.Is(err, scope.ErrTooLarge):
		return fail("File too large", "File %s is too large to edit. Maximum file size is %s. Use a shell command.", c.path, megabytes(maxFile))
	}
	return unusable(c.path, err)
}

// systemError returns an error of the system in the form that models know.
func (c editCall) systemError(what string) error {
	args, err := json.Marshal(struct {
		Path    string `json:"path"`
		Old     string `json:"old_str"`
		New     string `json:"new_str"`
		Command string `json:"command"`
	}{c.path, brief(c.old, 500), brief(c.new, 500), "edit"})
	if err != nil {
		return err
	}
	return fail("", "Failed to execute with arguments: %s due to error: Error: %s", args, what)
}

// brief cuts a text that only has to be recognised.
func brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return text.Cut(s, most) + "…"
}

// editable refuses files that are binary or UTF-16.
func editable(path string, data []byte) error {
	switch {
	case text.IsUTF16(data):
		return fail("", "File %s is UTF-16 and cannot be edited here; no changes made. Convert it to UTF-8 first, or use a shell command.", path)
	case bytes.IndexByte(data, 0) >= 0:
		return fail("", "File %s is binary and cannot be edited here; no changes made.", path)
	}
	return nil
}

func (c editCall) missing(data []byte) error {
	hint := ""
	if !utf8.Valid(data) && strings.ContainsRune(c.old, utf8.RuneError) {
		hint = " The file has bytes that are not UTF-8, which are shown as \ufffd: choose an old_str without them."
	}
	return fail("No match found", "No match found: old_str not found in %s; no changes made; you might want to try again with correct old_str%s", c.path, hint)
}

func (c editCall) ambiguous(data []byte, places []span, count int) error {
	var lines []string
	for _, p := range places {
		lines = append(lines, fmt.Sprint(bytes.Count(data[:p.start], []byte{'\n'})+1))
	}
	where := strings.Join(lines, ", ")
	if count > len(places) {
		where += fmt.Sprintf(" and %d more", count-len(places))
	}
	start, _, _ := strings.Cut(strings.TrimLeft(c.old, "\r\n"), "\n")
	return fail("Multiple matches found", "Ambiguous match for old_str in %s: pattern starting with \"%s\" matched at lines %s. No changes made; try again with a more specific old_str.", c.path, brief(start, 60), where)
}
