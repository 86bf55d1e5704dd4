package rpc

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods are about what the model sees of a conversation.
var _ = register(map[string]method{
	api.HistoryCompact:   on((*conn).compact),
	api.HistoryCancel:    on((*conn).cancelCompaction),
	api.HistoryAbort:     on((*conn).abortCompaction),
	api.HistoryHandoff:   on((*conn).handoff),
	api.HistoryUncompact: on((*conn).uncompact),
	api.HistoryContext:   on((*conn).context),
})

// compact compacts a session. That it could not be done is a result, not an error.
func (c *conn) compact(ctx context.Context, p api.CompactParams) (api.CompactResult, error) {
	d, err := c.server.host.Context.Compact(ctx, p.SessionID, session.Squeeze{Instructions: p.CustomInstructions, Limit: p.TokenLimit, Key: p.Key})
	if err != nil {
		return api.CompactResult{}, noSession(p.SessionID, err)
	}
	r := api.CompactResult{
		Success: d.Outcome != event.OutcomeFailed, MessagesRemoved: d.MessagesRemoved, TokensRemoved: d.TokensRemoved,
		SummaryContent: d.SummaryContent, Outcome: d.Outcome, Error: d.Error, EpochID: d.EpochID, Digest: d.Digest,
	}
	f, err := c.server.host.Context.Fill(ctx, p.SessionID)
	if err == nil {
		w := contextWindow(f)
		r.ContextWindow = &w
	}
	return r, noSession(p.SessionID, err)
}

func contextWindow(f session.Fill) api.ContextWindow {
	return api.ContextWindow{
		ConversationTokens: f.Reading.Messages, CurrentTokens: f.Tokens, MessagesLength: f.Messages,
		SystemTokens: f.System, TokenLimit: f.Policy.Limit, ToolDefinitionsTokens: f.Tools,
	}
}

func (c *conn) cancelCompaction(ctx context.Context, p api.SessionParams) (api.CancelledResult, error) {
	done, err := c.server.host.Context.CancelCompaction(ctx, p.SessionID, false)
	return api.CancelledResult{Cancelled: done}, noSession(p.SessionID, err)
}

func (c *conn) abortCompaction(ctx context.Context, p api.SessionParams) (api.AbortedResult, error) {
	done, err := c.server.host.Context.CancelCompaction(ctx, p.SessionID, true)
	return api.AbortedResult{Aborted: done}, noSession(p.SessionID, err)
}

func (c *conn) handoff(ctx context.Context, p api.HandoffParams) (api.HandoffResult, error) {
	text, err := c.server.host.Context.Handoff(ctx, p.SessionID, p.Key)
	return api.HandoffResult{Summary: text}, noSession(p.SessionID, err)
}

func (c *conn) uncompact(ctx context.Context, p api.SessionParams) (api.UncompactResult, error) {
	d, err := c.server.host.Context.Uncompact(ctx, p.SessionID)
	return api.UncompactResult{EpochID: d.EpochID}, noSession(p.SessionID, err)
}

// context tells what fills the window of the session's model.
func (c *conn) context(ctx context.Context, p api.SessionParams) (api.ContextResult, error) {
	f, err := c.server.host.Context.Fill(ctx, p.SessionID)
	return api.ContextResult{
		ContextWindow: contextWindow(f), Model: f.Model, Source: string(f.Source), Window: f.Limits.Window, Reserved: f.Limits.Output,
		Summary: f.Head, Asked: f.Asked, Answered: f.Answered, Gave: f.Gave, Tail: f.Tail, Pruned: f.Pruned,
		EpochID: f.EpochID, Epoch: f.Epoch, BeforeRun: f.Policy.Before, Between: f.Policy.Between, Ahead: f.Policy.Background,
	}, noSession(p.SessionID, err)
}
