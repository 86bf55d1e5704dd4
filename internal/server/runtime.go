package server

import (
	"context"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// serverMethods are about the runtime itself.
var serverMethods = map[string]method{
	api.Ping:          on((*conn).ping),
	api.StatusGet:     on((*conn).runtimeStatus),
	api.AuthGetStatus: on((*conn).authStatus),
	api.ModelsList:    on((*conn).models),
	api.Shutdown:      on((*conn).shutdown),
}

func (c *conn) ping(_ context.Context, p api.PingParams) (api.PingResult, error) {
	text := "pong"
	if p.Message != "" {
		text += ": " + p.Message
	}
	return api.PingResult{Message: text, Timestamp: event.FormatTime(time.Now()), ProtocolVersion: api.ProtocolVersion}, nil
}

func (c *conn) runtimeStatus(context.Context, struct{}) (api.RuntimeStatus, error) {
	return api.RuntimeStatus{Version: c.server.opts.Version, ProtocolVersion: api.ProtocolVersion}, nil
}

func (c *conn) authStatus(context.Context, struct{}) (api.AuthStatus, error) {
	return api.AuthStatus{IsAuthenticated: true, AuthType: "token", StatusMessage: "abide needs no account; models use their own keys"}, nil
}

func (c *conn) models(context.Context, struct{}) (api.ModelsResult, error) {
	result := api.ModelsResult{Models: []api.Model{}}
	if c.server.opts.Models != nil {
		result.Models = append(result.Models, c.server.opts.Models()...)
	}
	return result, nil
}

// shutdown makes sure that nothing is left to be written. Whoever started the
// process ends it.
func (c *conn) shutdown(ctx context.Context, _ struct{}) (any, error) {
	if c.server.opts.Shutdown == nil {
		return nil, nil
	}
	return nil, c.server.opts.Shutdown(ctx)
}
