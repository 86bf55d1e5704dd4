package rpc

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// maxBulk is the number of large answers of a connection that are in memory at the same
// time, beside those that are queued for the client. Further requests for some wait: a
// client that asks for much and reads nothing holds little memory.
const maxBulk = 2

// bulk are the methods whose answers can be large. None of them waits for another request
// of the same client while it has a slot, so that requests never wait for each other.
var bulk = map[string]bool{
	api.SessionGetMessages: true, api.Events: true, api.EventLogRead: true, api.Search: true,
	api.SessionList: true, api.SessionsList: true, api.SessionsIDs: true, api.SessionsEnrich: true, api.SessionsSizes: true,
	api.WorkspaceReadFile: true, api.WorkspaceListFiles: true, api.WorkspaceReadCheckpoint: true, api.WorkspaceDiff: true,
	api.PlanRead: true, api.PlanReadTodos: true, api.PlanReadTodosDeps: true, api.QueuePending: true, api.QueueSnapshot: true,
	api.Tasks: true, api.TaskOutput: true, api.Questions: true, api.PendingPermissions: true, api.PreviewRewind: true, api.Snapshot: true,
}

// A slot is the right of one request to have a large answer in memory.
type slot struct {
	pool chan struct{} // holds a token for each slot that is taken
	held bool
}

type slotKey struct{}

// answerBulk handles a request whose answer can be large. Its slot is free again when the
// answer was queued.
func (c *conn) answerBulk(ctx context.Context, m method, req *jsonrpc.Request) (any, error) {
	s := &slot{pool: c.bulk}
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	result, err := m(c, context.WithValue(ctx, slotKey{}, s), req)
	if err != nil {
		s.free()
		return nil, err
	}
	return jsonrpc.Answer{Result: result, After: s.free}, nil
}

func (s *slot) take(ctx context.Context) error {
	select {
	case s.pool <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *slot) free() {
	if s.held {
		s.held = false
		<-s.pool
	}
}

// withoutSlot calls a function that waits. The request that it belongs to has no slot
// meanwhile.
func withoutSlot(ctx context.Context, wait func() error) error {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return wait()
	}
	s.free()
	if err := wait(); err != nil {
		return err
	}
	return s.take(ctx)
}
