package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
)

// These methods tell what a session is like, and change that.
var _ = register(map[string]method{
	api.ModeGet:            on((*conn).mode),
	api.ModeSet:            on((*conn).setMode),
	api.NameGet:            on((*conn).name),
	api.NameSetAuto:        on((*conn).suggestName),
	api.IsProcessing:       on((*conn).isProcessing),
	api.Activity:           on((*conn).activity),
	api.Snapshot:           on((*conn).snapshot),
	api.ContextInfo:        on((*conn).contextInfo),
	api.RecomputeContext:   on((*conn).recomputeContext),
	api.SetDirectory:       on((*conn).setDirectory),
	api.RecordContext:      on((*conn).recordContext),
	api.ModelList:          on((*conn).sessionModels),
	api.SetReasoningEffort: on((*conn).setEffort),
	api.ProviderAdd:        on((*conn).addProviders),
	api.ProviderEndpoint:   on((*conn).endpoint),
	api.SendMessages:       on((*conn).sendMessages),
	api.InterruptTurn:      on((*conn).interrupt),
	api.SessionShutdown:    on((*conn).shutdownSession),
	api.ToolsList:          on((*conn).builtinTools),
	api.CurrentTools:       on((*conn).currentTools),
	api.AnswerExitPlan:     on((*conn).answerExitPlan),
	api.UsageMetrics:       on((*conn).usage),
})

func (c *conn) mode(ctx context.Context, p api.SessionParams) (string, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return st.Mode, noSession(p.SessionID, err)
}

func (c *conn) setMode(ctx context.Context, p api.ModeParams) (api.ModeSetResult, error) {
	switch p.Mode {
	case event.ModeInteractive, event.ModePlan, event.ModeAutopilot:
	default:
		return api.ModeSetResult{}, errBadParams{fmt.Errorf("mode: %q is unknown; use interactive, plan or autopilot", p.Mode)}
	}
	err := c.server.host.Settings.SetMode(ctx, p.SessionID, p.Mode)
	return api.ModeSetResult{Status: "ok", ModeApplied: err == nil}, noSession(p.SessionID, err)
}

func (c *conn) name(ctx context.Context, p api.SessionParams) (api.NameResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil || st.Name == "" {
		return api.NameResult{}, noSession(p.SessionID, err)
	}
	return api.NameResult{Name: &st.Name}, nil
}

func (c *conn) suggestName(ctx context.Context, p api.SetAutoParams) (api.AppliedNameResult, error) {
	name := strings.TrimSpace(p.Summary)
	if name == "" {
		return api.AppliedNameResult{}, errBadParams{errors.New("summary: it is empty")}
	}
	taken, err := c.server.host.Settings.SuggestName(ctx, p.SessionID, name)
	return api.AppliedNameResult{Applied: taken}, noSession(p.SessionID, err)
}

func (c *conn) isProcessing(ctx context.Context, p api.SessionParams) (api.ProcessingResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.ProcessingResult{Processing: st.Active}, noSession(p.SessionID, err)
}

func (c *conn) activity(ctx context.Context, p api.SessionParams) (api.ActivityResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.ActivityResult{HasActiveWork: st.Active, Abortable: st.Active}, noSession(p.SessionID, err)
}

func (c *conn) snapshot(ctx context.Context, p api.SessionParams) (api.SnapshotResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.SnapshotResult{}, noSession(p.SessionID, err)
	}
	info, err := c.server.host.Info(ctx, p.SessionID)
	if err != nil {
		return api.SnapshotResult{}, noSession(p.SessionID, err)
	}
	r := api.SnapshotResult{
		SessionID: p.SessionID, StartTime: event.FormatTime(st.Started), ModifiedTime: event.FormatTime(info.Modified),
		CurrentMode: st.Mode, SelectedModel: st.Model, WorkingDirectory: st.Config.WorkingDirectory,
		ClientName: st.Config.ClientName, Summary: st.Summary, SessionLimits: json.RawMessage("null"),
	}
	if c.server.opts.Workspace != nil && !st.Config.Infinite.Off() {
		path := c.server.opts.Workspace(p.SessionID)
		r.WorkspacePath = &path
		r.Workspace = &api.WorkspaceResult{ID: p.SessionID, Cwd: st.Config.WorkingDirectory, Name: st.Name}
	}
	return r, nil
}

func (c *conn) usage(ctx context.Context, p api.SessionParams) (api.MetricsResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	t := st.Totals
	return api.MetricsResult{
		SessionStartTime: event.FormatTime(st.Started), APIDuration: t.DurationMs, UserRequests: t.Turns, CurrentModel: st.Model,
		Changes: event.CodeChanges{Files: []string{}}, Models: map[string]struct{}{},
		Tokens: map[string]api.TokenMetric{
			"input": {Count: t.InputTokens}, "output": {Count: t.OutputTokens}, "cacheRead": {Count: t.CacheReadTokens}, "cacheWrite": {Count: t.CacheWriteTokens},
		},
	}, noSession(p.SessionID, err)
}

// contextInfo tells how full the context of a session is. What a client says of
// the limits counts.
func (c *conn) contextInfo(ctx context.Context, p api.ContextInfoParams) (api.ContextInfoResult, error) {
	f, err := c.server.host.Context.Fill(ctx, p.SessionID)
	u := api.ContextUse{
		Model: cmp.Or(p.Model, f.Model), Total: f.Tokens, System: f.System, Conversation: f.Reading.Messages, Tools: f.Tools,
		Prompt: cmp.Or(p.Prompt, f.Policy.Limit), Compaction: f.Policy.Before,
	}
	u.Limit = u.Prompt + cmp.Or(p.Output, f.Limits.Output)
	u.Buffer = max(0, u.Prompt-u.Compaction)
	return api.ContextInfoResult{Info: u}, noSession(p.SessionID, err)
}

// recomputeContext counts what a session takes. We count alike for all models.
func (c *conn) recomputeContext(ctx context.Context, p api.RecomputeParams) (api.RecomputeResult, error) {
	f, err := c.server.host.Context.Fill(ctx, p.SessionID)
	system := f.System + f.Tools
	return api.RecomputeResult{System: system, Messages: f.Reading.Messages, Total: system + f.Reading.Messages}, noSession(p.SessionID, err)
}

func (c *conn) setDirectory(ctx context.Context, p api.DirectoryParams) (api.DirectoryResult, error) {
	if !filepath.IsAbs(p.WorkingDirectory) {
		return api.DirectoryResult{}, errBadParams{errors.New("workingDirectory: want an absolute path")}
	}
	dir := filepath.Clean(p.WorkingDirectory)
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.DirectoryResult{}, noSession(p.SessionID, err)
	}
	if info, err := os.Stat(dir); st.Config.Workspace == nil && (err != nil || !info.IsDir()) {
		return api.DirectoryResult{}, said("workingDirectory %s: there is no such directory", dir)
	}
	err = c.server.host.Configure(ctx, p.SessionID, func(to *event.SessionConfiguredData) error {
		to.WorkingDirectory = dir
		return nil
	})
	return api.DirectoryResult{WorkingDirectory: dir}, noSession(p.SessionID, err)
}

// recordContext takes what a client knows of the working directory. Of another
// one, it is no news.
func (c *conn) recordContext(ctx context.Context, p api.ContextParams) (nothing api.Nothing, err error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return nothing, noSession(p.SessionID, err)
	}
	if p.Context.Cwd == "" {
		return nothing, errBadParams{errors.New("context.cwd: it is empty")}
	}
	if followed(p.Context.Cwd) == followed(st.Config.WorkingDirectory) {
		_, err = c.server.host.Log.Note(ctx, p.SessionID, p.Context, false)
	}
	return nothing, noSession(p.SessionID, err)
}

// sessionModels lists the models that a session can name: those of its own
// providers first.
func (c *conn) sessionModels(ctx context.Context, p api.SessionParams) (api.ModelListResult, error) {
	result := api.ModelListResult{List: []any{}}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return result, noSession(p.SessionID, err)
	}
	own, err := provider.Of(&st.Config)
	if err != nil {
		return result, err
	}
	for _, m := range own.Models {
		result.List = append(result.List, selectable(m))
	}
	used, err := c.server.host.Settings.Provider(ctx, p.SessionID, "")
	if err != nil {
		return result, noSession(p.SessionID, err)
	}
	known, err := c.known(ctx, p.SessionID, used)
	for _, m := range known {
		result.List = append(result.List, m)
	}
	return result, err
}

// selectable is a model of a client's own provider as it can be chosen: under the
// name of its provider.
func selectable(m provider.Model) api.Model {
	capable := m.Capabilities
	if capable == nil {
		capable = json.RawMessage("{}")
	}
	id := m.Provider + "/" + m.ID
	return api.Model{ID: id, Name: cmp.Or(m.Name, id), Capabilities: capable}
}

func (c *conn) setEffort(ctx context.Context, p api.EffortParams) (api.EffortResult, error) {
	if p.ReasoningEffort == "" {
		return api.EffortResult{}, errBadParams{errors.New("reasoningEffort: it is empty")}
	}
	err := c.server.host.Configure(ctx, p.SessionID, func(to *event.SessionConfiguredData) error {
		to.ReasoningEffort = p.ReasoningEffort
		return nil
	})
	return api.EffortResult{ReasoningEffort: p.ReasoningEffort}, noSession(p.SessionID, err)
}

// addProviders adds to what a session was opened with. What has the same name is
// replaced.
func (c *conn) addProviders(ctx context.Context, p api.ProviderAddParams) (api.ProviderAddResult, error) {
	err := c.changeProviders(ctx, p.SessionID, provider.Set{Listed: p.Providers}, func(to *provider.Set) error {
		return addListed(to, p.Providers, p.Models)
	})
	result := api.ProviderAddResult{Models: []api.Model{}}
	for _, m := range p.Models {
		result.Models = append(result.Models, selectable(m))
	}
	return result, noSession(p.SessionID, err)
}

// endpoint tells a client where the session's model is, so that it can ask it
// itself.
func (c *conn) endpoint(ctx context.Context, p api.EndpointParams) (api.EndpointResult, error) {
	used, err := c.server.host.Settings.Provider(ctx, p.SessionID, p.ModelID)
	if err != nil {
		return api.EndpointResult{}, noSession(p.SessionID, err)
	}
	if used == nil {
		return api.EndpointResult{}, said("This session has no provider")
	}
	r := api.EndpointResult{
		Type: cmp.Or(used.Type, provider.DefaultType), WireAPI: used.WireAPI, BaseURL: used.BaseURL,
		APIKey: cmp.Or(used.BearerToken, used.APIKey), Headers: used.Headers,
	}
	if r.Headers == nil {
		r.Headers = map[string]string{}
	}
	return r, nil
}

// sendMessages gives a session several inputs, in their order.
func (c *conn) sendMessages(ctx context.Context, p api.SendMessagesParams) (api.SendMessagesResult, error) {
	result := api.SendMessagesResult{MessageIDs: []string{}}
	if len(p.Messages) == 0 {
		return result, errBadParams{errors.New("messages: it is empty")}
	}
	for i, m := range p.Messages {
		m.SessionID, m.Key = p.SessionID, p.Key
		if m.Key != "" {
			m.Key += "/" + strconv.Itoa(i)
		}
		m.Mode, m.AgentMode = cmp.Or(m.Mode, p.Mode), cmp.Or(m.AgentMode, p.AgentMode)
		if m.RequestHeaders == nil {
			m.RequestHeaders = p.RequestHeaders
		}
		sent, err := c.send(ctx, m)
		if err != nil {
			return result, err
		}
		result.MessageIDs = append(result.MessageIDs, sent.MessageID)
	}
	return result, nil
}

func (c *conn) interrupt(ctx context.Context, p api.InterruptParams) (api.InterruptResult, error) {
	done, err := c.server.host.Interrupt(ctx, p.SessionID, p.FlushQueued)
	return api.InterruptResult{Interrupted: done}, noSession(p.SessionID, err)
}

// shutdownSession ends the use of a session for everybody.
func (c *conn) shutdownSession(ctx context.Context, p api.ShutdownParams) (any, error) {
	kind := cmp.Or(p.Type, "routine")
	if kind != "routine" && kind != "error" {
		return nil, errBadParams{fmt.Errorf("type: %q is unknown; use routine or error", kind)}
	}
	d := event.ShutdownData{Kind: kind}
	if kind == "error" {
		d.Reason = p.Reason
	}
	if err := c.server.host.End(ctx, p.SessionID, d); err != nil {
		return nil, noSession(p.SessionID, err)
	}
	c.detach(p.SessionID, false)
	c.leave(p.SessionID)
	return nil, nil
}

func (c *conn) builtinTools(ctx context.Context, _ struct{}) (api.ToolsResult, error) {
	result := api.ToolsResult{Tools: []api.ToolInfo{}}
	list, err := c.server.host.Settings.OfferedTools(ctx, "")
	for _, t := range list {
		result.Tools = append(result.Tools, api.ToolInfo{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return result, err
}

func (c *conn) currentTools(ctx context.Context, p api.SessionParams) (api.ToolsResult, error) {
	result := api.ToolsResult{Tools: []api.ToolInfo{}}
	if p.SessionID == "" {
		return result, noSession(p.SessionID, session.ErrNotFound)
	}
	list, err := c.server.host.Settings.OfferedTools(ctx, p.SessionID)
	for _, t := range list {
		result.Tools = append(result.Tools, api.ToolInfo{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
	}
	return result, noSession(p.SessionID, err)
}

// askExitPlan asks the person behind the client whether a plan may be carried
// out. A client that cannot say has not approved.
func (c *conn) askExitPlan(ctx context.Context, id event.SessionID, q event.ExitPlanAskedData) (turn.PlanReply, error) {
	var reply turn.PlanReply
	if written, err := c.readPlan(ctx, api.SessionParams{SessionID: id}); err == nil && written.Content != nil {
		q.PlanContent = *written.Content
	}
	err := c.rpc.Call(ctx, api.ExitPlan, api.ExitPlanParams{SessionID: id, ExitPlanAskedData: q}, &reply)
	if c.repliedWithError(ctx, id, err) {
		return turn.PlanReply{Feedback: "The user was unable to respond due to an error"}, nil
	}
	return reply, err
}

func (c *conn) answerExitPlan(ctx context.Context, p api.AnswerExitPlanParams) (api.Success, error) {
	if p.Response.Approved == nil {
		return api.Success{}, missing("response.approved")
	}
	if err := c.unchanged(ctx, p.SessionID, p.RequestID, p.Digest); err != nil {
		return api.Success{}, err
	}
	return c.answer(ctx, p.SessionID, turn.Answer{RequestID: p.RequestID, Key: p.Key, Plan: &turn.PlanReply{
		Approved: *p.Response.Approved, Action: p.Response.SelectedAction, Feedback: p.Response.Feedback,
	}})
}
