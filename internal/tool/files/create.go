package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unicode/utf16"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
)

//go:embed create.md
var createText string

var createSpec = tool.Spec{
	Name:        "create",
	Description: createText,
	Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"Absolute path of the file. It must not exist, and its directory must."},` +
		`"file_text":{"type":"string","description":"The content of the file."}},` +
		`"required":["path","file_text"]}`),
	Replay: tool.Keyed,
	Looks:  true,
}

// create is the tool that creates a file.
type create struct{ *files }

func (c *create) Spec() tool.Spec { return createSpec }

func (c *create) writer(call tool.Call) (writer, error) {
	a := argument.Read(call.Arguments)
	name, content := a.Needed("path"), a.Needed("file_text")
	if err := a.Err(); err != nil {
		return writer{}, err
	}
	if name == "" {
		return writer{}, fail("", "A path parameter is required, and must be a non-empty string.")
	}
	path := absolute(call, name)
	done := fmt.Sprintf("Created file %s with %d characters", path, len(utf16.Encode([]rune(content))))
	return writer{path: path, intention: "Create file", done: done, plan: func(p place) (change, error) {
		return change{nil, []byte(content)}, checkFree(p, path)
	}}, nil
}

// checkFree checks that a file can be created: it does not exist, and its folder does.
func checkFree(p place, path string) error {
	kind := "file"
	if p.file.Kind == scope.Folder {
		kind = "directory"
	}
	switch err := p.file.Err; {
	case err == nil:
		return fail("Path already exists", "Path %s already exists as a %s. Use `view` to check contents then edit it.", path, kind)
	case !errors.Is(err, fs.ErrNotExist):
		return unusable(path, err)
	case p.above.Path == "":
		return unusable(path, p.above.Err)
	case p.above.Err != nil || p.above.Kind != scope.Folder:
		return fail("Parent directory does not exist", "Parent directory %s does not exist. You need to create it before creating the file.", filepath.Dir(path))
	}
	return nil
}

func (c *create) Permission(ctx context.Context, call tool.Call) (*approval.Request, error) {
	w, err := c.writer(call)
	if err != nil {
		return nil, err
	}
	return c.requestWrite(ctx, call, w)
}

func (c *create) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	w, err := c.writer(call)
	if err != nil {
		return finish(tool.Result{}, err)
	}
	return finish(c.write(ctx, call, w))
}
