package rpc

import (
	"context"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods give a session something to do.
var _ = register(map[string]method{
	api.SessionSend:     on((*conn).send),
	api.SessionAbort:    on((*conn).abort),
	api.SessionLog:      on((*conn).logRemark),
	api.ModelSwitchTo:   on((*conn).switchModel),
	api.ModelGetCurrent: on((*conn).currentModel),
	api.NameSet:         on((*conn).setName),
})

// send gives a session an input. It is stored when the answer goes out.
func (c *conn) send(ctx context.Context, p api.SendParams) (api.SendResult, error) {
	form, err := outputSchema(p.OutputSchema)
	if err != nil {
		return api.SendResult{}, err
	}
	attached, err := c.attachments(ctx, p)
	if err != nil {
		return api.SendResult{}, err
	}
	id, err := c.server.host.SendWith(ctx, p.SessionID, event.InputAcceptedData{
		Prompt: p.Prompt, DisplayPrompt: p.DisplayPrompt, Attachments: attached,
		Mode: p.Mode, AgentMode: p.AgentMode, Source: p.Source, Key: p.Key, OutputSchema: form,
	}, p.RequestHeaders)
	if err == nil {
		c.offerUnseen(ctx, p.SessionID)
	}
	return api.SendResult{MessageID: id}, noSession(p.SessionID, err)
}

// abort stops the turn of a session. It is stored, and its commands have ended, when
// the answer goes out.
func (c *conn) abort(ctx context.Context, p api.AbortParams) (api.AbortResult, error) {
	d := event.AbortFor(p.Reason)
	d.KeepQueue, d.Hold, d.Key = p.KeepQueue, p.KeepQueue, p.Key
	stopped, err := c.server.host.Stop(ctx, p.SessionID, d)
	r := api.AbortResult{Success: err == nil, Turn: stopped.Turn, Compaction: stopped.Compaction, Queued: stopped.Queued, Dropped: stopped.Dropped, Background: stopped.Background}
	if c.server.opts.Tasks != nil {
		for _, call := range stopped.Calls {
			list, _ := c.server.opts.Tasks.Of(ctx, call.Session, []string{call.Key}) // the call is stopped, whether or not its command can be described
			r.Stopped = append(r.Stopped, list...)
		}
	}
	return r, noSession(p.SessionID, err)
}

func (c *conn) logRemark(ctx context.Context, p api.LogParams) (api.LogResult, error) {
	var remark event.Payload
	switch p.Level {
	case "", "info":
		remark = event.SessionInfoData{InfoType: "notification", Message: p.Message, URL: p.URL}
	case "warning":
		remark = event.SessionWarningData{WarningType: "notification", Message: p.Message, URL: p.URL}
	case "error":
		remark = event.SessionErrorData{ErrorType: "notification", Message: p.Message}
	default:
		return api.LogResult{}, errBadParams{fmt.Errorf("level: %q is unknown; use info, warning or error", p.Level)}
	}
	id, err := c.server.host.Log.Note(ctx, p.SessionID, remark, p.Ephemeral)
	return api.LogResult{EventID: id}, noSession(p.SessionID, err)
}

func (c *conn) switchModel(ctx context.Context, p api.SwitchParams) (api.ModelResult, error) {
	if p.ModelID == "" {
		return api.ModelResult{}, errBadParams{fmt.Errorf("modelId: it is empty")}
	}
	err := c.server.host.SetModel(ctx, p.SessionID, session.Choice{
		Model: p.ModelID, Effort: p.ReasoningEffort,
		Vision: p.ModelCapabilities.Supports.Vision, Window: p.ModelCapabilities.Limits.MaxContextWindowTokens,
	})
	return api.ModelResult{ModelID: p.ModelID, ReasoningEffort: p.ReasoningEffort}, noSession(p.SessionID, err)
}

func (c *conn) currentModel(ctx context.Context, p api.SessionParams) (api.ModelResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.ModelResult{ModelID: st.Model, ReasoningEffort: st.Config.ReasoningEffort}, noSession(p.SessionID, err)
}

func (c *conn) setName(ctx context.Context, p api.NameParams) (any, error) {
	if strings.TrimSpace(p.Name) == "" {
		return nil, said("Session name cannot be empty")
	}
	return nil, noSession(p.SessionID, c.server.host.Rename(ctx, p.SessionID, p.Name))
}
