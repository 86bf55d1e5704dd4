package rpc

import (
	"context"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/turn"
)

// These methods put forms to people.
var _ = register(map[string]method{
	api.UIElicitation:     on((*conn).elicit),
	api.AnswerElicitation: on((*conn).answerElicitation),
})

// elicit puts a form to a person behind one of the session's clients, and waits
// for what becomes of it.
func (c *conn) elicit(ctx context.Context, p api.ElicitationParams) (api.ElicitationResult, error) {
	if p.Message == "" {
		return api.ElicitationResult{}, errBadParams{errors.New("message: it is empty")}
	}
	if !jsonrpc.IsObject(p.Schema) {
		return api.ElicitationResult{}, errBadParams{errors.New("requestedSchema: want object")}
	}
	filled, err := c.server.host.Questions.Elicit(ctx, p.SessionID, event.ElicitationAskedData{
		Message: p.Message, Schema: p.Schema, Mode: p.Mode, Key: p.Key,
	}, func() bool { return c.asksAgain(ctx) })
	return api.ElicitationResult(filled), noSession(p.SessionID, err)
}

// asksAgain reports whether a request that is over before it was answered will
// be made again: the server is leaving, or a relay has lost this connection.
func (c *conn) asksAgain(ctx context.Context) bool {
	return c.serving.Err() != nil || (c.door.Private && errors.Is(context.Cause(ctx), jsonrpc.ErrClosed))
}

func (c *conn) answerElicitation(ctx context.Context, p api.AnswerElicitationParams) (api.Success, error) {
	switch p.Result.Action {
	case turn.Accept, turn.Dismiss, turn.Cancel:
	default:
		return api.Success{}, errBadParams{errors.New("result.action: use accept, decline or cancel")}
	}
	if err := c.unchanged(ctx, p.SessionID, p.RequestID, p.Digest); err != nil {
		return api.Success{}, err
	}
	won, err := c.server.host.Questions.FillIn(ctx, p.SessionID, p.RequestID, p.Key, turn.Filled(p.Result))
	return api.Success{Success: won}, noSession(p.SessionID, err)
}
