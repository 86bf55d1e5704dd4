package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// These methods are about the files that a session has of its own.
var _ = register(map[string]method{
	api.WorkspaceGet:             on((*conn).workspace),
	api.WorkspaceEnsure:          on((*conn).ensureWorkspace),
	api.WorkspaceListFiles:       on((*conn).listFiles),
	api.WorkspaceReadFile:        on((*conn).readFile),
	api.WorkspaceCreateFile:      on((*conn).createFile),
	api.WorkspaceSavePaste:       on((*conn).savePaste),
	api.WorkspaceListCheckpoints: on((*conn).listCheckpoints),
	api.WorkspaceReadCheckpoint:  on((*conn).readCheckpoint),
	api.WorkspaceDiff:            on((*conn).diff),
})

// own is the folder of a session; empty if sessions have no files.
func (c *conn) own(ctx context.Context, id event.SessionID) (string, error) {
	_, err := c.server.host.Status(ctx, id)
	if err != nil || c.server.opts.Workspace == nil {
		return "", noSession(id, err)
	}
	return c.server.opts.Workspace(id), nil
}

func (c *conn) workspace(ctx context.Context, p api.SessionParams) (api.GetWorkspaceResult, error) {
	dir, err := c.own(ctx, p.SessionID)
	if err != nil || dir == "" {
		return api.GetWorkspaceResult{}, err
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.GetWorkspaceResult{}, noSession(p.SessionID, err)
	}
	s, err := c.server.host.Info(ctx, p.SessionID)
	if err != nil {
		return api.GetWorkspaceResult{}, noSession(p.SessionID, err)
	}
	info := api.WorkspaceInfo{
		ID: st.ID, Cwd: st.Config.WorkingDirectory, Name: st.Name, UserNamed: st.Name != "" && !st.AutoNamed, ClientName: st.Config.ClientName,
		SummaryCount: len(checkpoints(dir)), CreatedAt: event.FormatTime(s.Created), UpdatedAt: event.FormatTime(s.Modified),
	}
	if at := places.Locate(info.Cwd); at.Kind == "repo" {
		info.GitRoot = at.Key
	}
	return api.GetWorkspaceResult{Path: dir, Workspace: &info}, nil
}

// ensureWorkspace makes the folder, if it is not there.
func (c *conn) ensureWorkspace(ctx context.Context, p api.SessionParams) (api.GetWorkspaceResult, error) {
	root, err := c.files(ctx, p.SessionID)
	if err != nil {
		return api.GetWorkspaceResult{}, err
	}
	root.Close()
	return c.workspace(ctx, p)
}

// files opens the folder of a session's files, which nothing leads out of.
func (c *conn) files(ctx context.Context, id event.SessionID) (*os.Root, error) {
	dir, err := c.own(ctx, id)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, said("This session has no folder for files")
	}
	dir = filepath.Join(dir, "files")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of files: %w", err)
	}
	return os.OpenRoot(dir)
}

// inside checks the name of a file.
func inside(path string) (string, error) {
	if path == "" {
		return "", errBadParams{errors.New("path: it is empty")}
	}
	name := filepath.FromSlash(path)
	if !filepath.IsLocal(name) || filepath.Clean(name) == "." {
		return "", said("Path must be within the workspace files directory")
	}
	return filepath.Clean(name), nil
}

func (c *conn) listFiles(ctx context.Context, p api.SessionParams) (api.FilesResult, error) {
	result := api.FilesResult{Files: []string{}}
	dir, err := c.own(ctx, p.SessionID)
	if err != nil || dir == "" {
		return result, err
	}
	err = fs.WalkDir(os.DirFS(filepath.Join(dir, "files")), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), tempPrefix) {
			result.Files = append(result.Files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return result, err
}

func (c *conn) readFile(ctx context.Context, p api.FileParams) (api.ContentResult, error) {
	name, err := inside(p.Path)
	if err != nil {
		return api.ContentResult{}, err
	}
	root, err := c.files(ctx, p.SessionID)
	if err != nil {
		return api.ContentResult{}, err
	}
	defer root.Close()
	b, err := readRegular(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return api.ContentResult{}, said("File not found: %s", p.Path)
	}
	if err != nil {
		return api.ContentResult{}, err
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	return api.ContentResult{Content: &text}, nil
}

// readRegular reads a file that was opened without waiting, and closes it. Commands of the
// session can put anything in its folder: nobody waits for the writer of a pipe.
func readRegular(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "read", Path: f.Name(), Err: errors.New("it is no file")}))
	}
	return io.ReadAll(f)
}

func (c *conn) createFile(ctx context.Context, p api.FileParams) (any, error) {
	if p.Content == nil {
		return nil, missing("content")
	}
	return nil, c.writeFile(ctx, p.SessionID, p.Path, []byte(*p.Content))
}

// tempPrefix begins the names of files that are being written.
const tempPrefix = ".abide-new-"

// writeFile writes a file in one step, and then tells of it.
func (c *conn) writeFile(ctx context.Context, id event.SessionID, path string, content []byte) error {
	name, err := inside(path)
	if err != nil {
		return err
	}
	root, err := c.files(ctx, id)
	if err != nil {
		return err
	}
	defer root.Close()
	operation := "update"
	if _, err := root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		operation = "create"
	}
	if err := replaceIn(root, name, content); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = c.server.host.Log.Note(ctx, id, event.WorkspaceFileChangedData{Path: filepath.ToSlash(name), Operation: operation}, false)
	return noSession(id, err)
}

// replaceIn writes a file of a folder in one step, through to the disk.
func replaceIn(root *os.Root, name string, content []byte) error {
	dir := filepath.Dir(name)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary := filepath.Join(dir, tempPrefix+event.NewID())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer root.Remove(temporary) // the draft is gone if all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// savePaste keeps a long text in a file of its own.
func (c *conn) savePaste(ctx context.Context, p api.PasteParams) (api.PasteResult, error) {
	dir, err := c.own(ctx, p.SessionID)
	if err != nil || dir == "" {
		return api.PasteResult{}, err
	}
	name := "paste-" + event.NewID() + ".txt"
	if err := c.writeFile(ctx, p.SessionID, name, []byte(p.Content)); err != nil {
		return api.PasteResult{}, err
	}
	return api.PasteResult{Saved: &api.SavedPaste{Filename: name, FilePath: filepath.Join(dir, "files", name), SizeBytes: len(p.Content)}}, nil
}

// checkpointName is how compactions name what they write down.
var checkpointName = lazyregexp.New(`^(\d+)-(.+)\.md$`)

// checkpoints are the summaries in the folder of a session, in order.
func checkpoints(dir string) []api.CheckpointInfo {
	list := []api.CheckpointInfo{}
	entries, _ := os.ReadDir(filepath.Join(dir, "checkpoints")) // none if it cannot be read
	for _, e := range entries {
		m := checkpointName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			list = append(list, api.CheckpointInfo{Number: n, Title: strings.ReplaceAll(m[2], "-", " "), Filename: e.Name()})
		}
	}
	slices.SortStableFunc(list, func(a, b api.CheckpointInfo) int { return a.Number - b.Number })
	return list
}

func (c *conn) listCheckpoints(ctx context.Context, p api.SessionParams) (api.CheckpointsResult, error) {
	dir, err := c.own(ctx, p.SessionID)
	if err != nil || dir == "" {
		return api.CheckpointsResult{Checkpoints: []api.CheckpointInfo{}}, err
	}
	return api.CheckpointsResult{Checkpoints: checkpoints(dir)}, nil
}

func (c *conn) readCheckpoint(ctx context.Context, p api.CheckpointParams) (api.ContentResult, error) {
	if p.Number == nil {
		return api.ContentResult{}, missing("number")
	}
	dir, err := c.own(ctx, p.SessionID)
	if err != nil || dir == "" {
		return api.ContentResult{}, err
	}
	for _, k := range checkpoints(dir) {
		if int64(k.Number) == *p.Number {
			b, err := os.ReadFile(filepath.Join(dir, "checkpoints", k.Filename))
			text := string(b)
			return api.ContentResult{Content: &text}, err
		}
	}
	return api.ContentResult{}, nil
}
