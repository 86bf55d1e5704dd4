package rpc

import (
	"context"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// Memory is what is remembered, and the jobs that see to it.
type Memory interface {
	Show(ctx context.Context, p api.MemoryParams) (api.MemoryResult, error)
	Search(ctx context.Context, p api.MemorySearchParams) (api.MemorySearchResult, error)
	Edit(ctx context.Context, p api.MemoryEditParams) (api.MemoryEdited, error)
	History(ctx context.Context, p api.MemoryParams) (api.MemoryHistoryResult, error)
	Revert(ctx context.Context, p api.MemoryParams) (api.MemoryEdited, error)
	Forget(ctx context.Context, p api.MemoryForgetParams) (api.MemoryForgotten, error)
	Consolidate(ctx context.Context, id event.SessionID) (jobID string, err error)
	Jobs(ctx context.Context, id event.SessionID) (api.JobsResult, error)
	Retry(ctx context.Context, jobID string) error
	Wait(ctx context.Context, jobID string) error
}

// These methods look at what is remembered, change it, and have it made.
var _ = register(map[string]method{
	api.MemoryShow:        remembered(Memory.Show),
	api.MemorySearch:      remembered(Memory.Search),
	api.MemoryEdit:        remembered(Memory.Edit),
	api.MemoryHistory:     remembered(Memory.History),
	api.MemoryRevert:      remembered(Memory.Revert),
	api.MemoryForget:      remembered(forget),
	api.MemoryConsolidate: remembered(consolidate),
	api.Jobs:              remembered(jobs),
	api.JobRetry:          remembered(retry),
	api.JobWait:           remembered(wait),
})

// remembered makes a method of what memory can do. Where there is none, there are no
// such methods.
func remembered[P, R any](f func(Memory, context.Context, P) (R, error)) method {
	return func(c *conn, ctx context.Context, req *jsonrpc.Request) (any, error) {
		if c.server.opts.Memory == nil {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		p, err := params[P](req)
		if err != nil {
			return nil, err
		}
		return f(c.server.opts.Memory, ctx, p)
	}
}

func forget(m Memory, ctx context.Context, p api.MemoryForgetParams) (api.MemoryForgotten, error) {
	if p.SessionID == "" {
		return api.MemoryForgotten{}, errBadParams{errors.New("sessionId: it is empty")}
	}
	return m.Forget(ctx, p)
}

func consolidate(m Memory, ctx context.Context, p api.SessionParams) (api.JobParams, error) {
	id, err := m.Consolidate(ctx, p.SessionID)
	return api.JobParams{JobID: id}, notFound(p.SessionID, err)
}

func jobs(m Memory, ctx context.Context, p api.SessionParams) (api.JobsResult, error) {
	return m.Jobs(ctx, p.SessionID)
}

func retry(m Memory, ctx context.Context, p api.JobParams) (api.Success, error) {
	err := m.Retry(ctx, p.JobID)
	return api.Success{Success: err == nil}, err
}

func wait(m Memory, ctx context.Context, p api.JobParams) (api.Success, error) {
	err := m.Wait(ctx, p.JobID)
	return api.Success{Success: err == nil}, err
}
