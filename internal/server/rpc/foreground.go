package rpc

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// These methods are about a terminal that shows one of the sessions. A
// server has none.
var _ = register(map[string]method{
	api.GetForeground: on((*conn).foreground),
	api.SetForeground: on((*conn).setForeground),
})

func (c *conn) foreground(context.Context, struct{}) (api.ForegroundResult, error) {
	return api.ForegroundResult{}, nil
}

func (c *conn) setForeground(context.Context, api.SessionParams) (api.Success, error) {
	return api.Success{Error: "Not running in TUI+server mode"}, nil
}

// These methods tell and change whether sessions are in use.
var _ = register(map[string]method{
	api.CheckInUse:     on((*conn).checkInUse),
	api.SessionSuspend: on((*conn).suspend),
})

func (c *conn) checkInUse(_ context.Context, p api.InUseParams) (api.InUseResult, error) {
	result := api.InUseResult{InUse: []event.SessionID{}}
	for _, id := range p.SessionIDs {
		if c.server.host.Clients.InUse(id) {
			result.InUse = append(result.InUse, id)
		}
	}
	return result, nil
}

func (c *conn) suspend(ctx context.Context, p api.SessionParams) (any, error) {
	return nil, noSession(p.SessionID, c.server.host.Suspend(ctx, p.SessionID))
}
