package rpc

import (
	"context"
	"net/http"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// These methods are about the runtime itself.
var _ = register(map[string]method{
	api.Ping:          on((*conn).ping),
	api.StatusGet:     on((*conn).runtimeStatus),
	api.AuthGetStatus: on((*conn).authStatus),
	api.ModelsList:    on((*conn).models),
	api.Shutdown:      on((*conn).shutdown),
})

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

// models lists the models of the client's process, and those that need none.
func (c *conn) models(ctx context.Context, _ struct{}) (api.ModelsResult, error) {
	c.mu.Lock()
	provider := c.defaults.Provider
	c.mu.Unlock()
	list, err := c.known(ctx, "", provider)
	return api.ModelsResult{Models: list}, err
}

// known lists the models that can be named with a provider, which may be nil.
func (c *conn) known(ctx context.Context, id event.SessionID, provider *api.Provider) ([]api.Model, error) {
	list := []api.Model{}
	if c.server.opts.Models == nil {
		return list, nil
	}
	var transport http.RoundTripper
	if c.infers() {
		transport = courier{c, id}
	}
	found, err := c.server.opts.Models(ctx, provider, transport)
	return append(list, found...), err
}

// shutdown makes sure that nothing is left to be written. Whoever started the
// process ends it.
func (c *conn) shutdown(ctx context.Context, _ struct{}) (any, error) {
	if c.server.opts.Shutdown == nil {
		return nil, nil
	}
	return nil, c.server.opts.Shutdown(ctx)
}
