package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// These methods are about the plan of a session, which is a file among its own.
var _ = register(map[string]method{
	api.PlanRead:          on((*conn).readPlan),
	api.PlanUpdate:        on((*conn).updatePlan),
	api.PlanDelete:        on((*conn).deletePlan),
	api.PlanReadTodos:     on((*conn).todos),
	api.PlanReadTodosDeps: on((*conn).todosAndDependencies),
})

// plan is where the plan of a session is; nowhere if sessions have no files.
func (c *conn) plan(ctx context.Context, id event.SessionID) (string, error) {
	if _, err := c.server.host.Status(ctx, id); err != nil {
		return "", noSession(id, err)
	}
	if c.server.opts.Workspace == nil {
		return "", nil
	}
	return filepath.Join(c.server.opts.Workspace(id), "plan.md"), nil
}

func (c *conn) readPlan(ctx context.Context, p api.SessionParams) (api.PlanResult, error) {
	path, err := c.plan(ctx, p.SessionID)
	if err != nil || path == "" {
		return api.PlanResult{}, err
	}
	b, err := readRegular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return api.PlanResult{Path: &path}, nil
	}
	content := string(b)
	return api.PlanResult{Exists: err == nil, Content: &content, Path: &path}, err
}

var errNoPlan = said("This session has no folder for a plan")

// updatePlan writes the plan. It is on the disk when the answer goes out.
func (c *conn) updatePlan(ctx context.Context, p api.PlanParams) (any, error) {
	if p.Content == nil {
		return nil, errBadParams{errors.New("content: it is missing")}
	}
	path, err := c.plan(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, errNoPlan
	}
	c.server.planning.Lock()
	defer c.server.planning.Unlock()
	operation := "update"
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		operation = "create"
	}
	if err := replaceFile(path, []byte(*p.Content)); err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	_, err = c.server.host.Log.Note(ctx, p.SessionID, event.PlanChangedData{Operation: operation}, false)
	return nil, noSession(p.SessionID, err)
}

func (c *conn) deletePlan(ctx context.Context, p api.SessionParams) (any, error) {
	path, err := c.plan(ctx, p.SessionID)
	if err != nil || path == "" {
		return nil, err
	}
	c.server.planning.Lock()
	defer c.server.planning.Unlock()
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("delete the plan: %w", err)
	}
	_, err = c.server.host.Log.Note(ctx, p.SessionID, event.PlanChangedData{Operation: "delete"}, false)
	return nil, noSession(p.SessionID, err)
}

// replaceFile writes a file in one step, through to the disk.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // the draft is gone if all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// todos is the model's own list, in the protocol's words. It has none for what
// will not be done.
func (c *conn) todos(ctx context.Context, p api.SessionParams) (api.TodosResult, error) {
	all, err := c.server.host.Todos.List(ctx, p.SessionID)
	result := api.TodosResult{Rows: []api.Todo{}}
	for _, t := range all {
		row := api.Todo{ID: strconv.Itoa(t.ID), Title: t.Subject, Description: t.Description, Status: t.Status}
		switch t.Status {
		case event.TodoCancelled:
			continue
		case event.TodoCompleted:
			row.Status = "done"
		}
		result.Rows = append(result.Rows, row)
	}
	return result, noSession(p.SessionID, err)
}

// todosAndDependencies is the same: no entry depends on another.
func (c *conn) todosAndDependencies(ctx context.Context, p api.SessionParams) (api.TodosResult, error) {
	result, err := c.todos(ctx, p)
	result.Dependencies = []json.RawMessage{}
	return result, err
}
