package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
)

// These methods attach clients to sessions and detach them.
var _ = register(map[string]method{
	api.SessionCreate:  on((*conn).create),
	api.SessionResume:  on((*conn).resume),
	api.SessionDestroy: on((*conn).destroy),
	api.SessionDetach:  on((*conn).destroy),
	api.Attach:         on((*conn).attach),
	api.ContinueAll:    on((*conn).continueAll),
})

// create makes a session. The answer comes before its first event.
func (c *conn) create(ctx context.Context, p api.OpenParams) (any, error) {
	if p.SessionID == "" {
		p.SessionID = event.SessionID(event.NewID())
	}
	spec, err := c.spec(p)
	if err != nil {
		return nil, err
	}
	if err := c.place(ctx, &spec, p); err != nil {
		return nil, err
	}
	client := c.client(p)
	c.hold(p.SessionID)
	view, err := c.server.host.Create(ctx, p.SessionID, spec, client)
	answer, err := c.opened(ctx, p.SessionID, client, view, err)
	if err == nil {
		c.warnUnsupported(ctx, p)
	}
	return answer, err
}

// resume comes back to a session.
func (c *conn) resume(ctx context.Context, p api.OpenParams) (any, error) {
	spec, err := c.spec(p)
	if err != nil {
		return nil, err
	}
	if p.WorkingDirectory == "" {
		spec.Config.WorkingDirectory = "" // the session has one
		spec.Env, spec.SpareEnv = nil, spec.Env
	}
	spec.Wanted = wantedWorkspace(p)
	client := c.client(p)
	open := c.unanswered(ctx, p)
	c.hold(p.SessionID)
	view, err := c.server.patiently(ctx, func() (*session.View, error) {
		return c.server.host.Resume(ctx, p.SessionID, session.Resume{
			Spec: spec, Keep: p.Abide != nil && p.Abide.Keep, Continue: p.ContinuePending, Quiet: p.DisableResumeEvent, Key: p.Key, After: p.After, Shown: open,
		}, client)
	})
	answer, err := c.opened(ctx, p.SessionID, client, view, err)
	if err == nil {
		if err = errors.Join(c.remind(ctx, p.SessionID, open), c.offerOpen(ctx, p, client)); err != nil {
			c.release(p.SessionID)
		}
		c.warnUnsupported(ctx, p)
	}
	return answer, err
}

// These are the time that a client waits for its tools when it connects again, and the pause
// between two attempts. Its tools belong to its old connection until the server notices
// that the old connection was cut.
const (
	clashPatience = time.Second
	clashPause    = 20 * time.Millisecond
)

// patiently tries again while the client's tools are somebody else's.
func (s *Server) patiently(ctx context.Context, attach func() (*session.View, error)) (*session.View, error) {
	for patience := clashPatience; ; patience -= clashPause {
		view, err := attach()
		if !errors.Is(err, session.ErrClash) || patience <= 0 {
			return view, err
		}
		select {
		case <-time.After(clashPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// attach goes on where a lost connection stopped. Only processes of ours lose
// connections without their clients' knowledge.
func (c *conn) attach(ctx context.Context, p api.AttachParams) (any, error) {
	if !c.door.Private {
		return nil, jsonrpc.MethodNotFound(api.Attach)
	}
	p.Params.SessionID = p.SessionID
	client := c.client(p.Params)
	c.hold(p.SessionID)
	view, err := c.server.host.Attach(ctx, p.SessionID, client, p.After)
	return c.opened(ctx, p.SessionID, client, view, err)
}

// continueAll lets every unfinished turn go on, because a process that is there to stay
// has come. Only processes of ours may ask for that.
func (c *conn) continueAll(ctx context.Context, _ struct{}) (struct{}, error) {
	if !c.door.Private {
		return struct{}{}, jsonrpc.MethodNotFound(api.ContinueAll)
	}
	return struct{}{}, c.server.host.Start(ctx)
}

// opened answers a client that was attached. It watches from now on, but what it
// is shown comes after the answer.
func (c *conn) opened(ctx context.Context, id event.SessionID, client *session.Client, view *session.View, err error) (any, error) {
	if err != nil {
		c.release(id)
		return nil, notFound(id, err)
	}
	c.mu.Lock()
	before := c.sessions[id]
	c.sessions[id] = &attached{client: client, view: view, from: view.Position(), since: time.Now()}
	c.mu.Unlock()
	if before != nil {
		c.server.host.Detach(id, before.client, false)
	}
	c.back(id)
	result := api.OpenResult{SessionID: id}
	result.Capabilities.UI.Elicitation, _ = c.server.host.Clients.Abilities(id)
	if c.door.Private {
		result.Position = view.Position()
	}
	if c.server.opts.Workspace != nil && !c.server.host.Settings.Bare(id) {
		result.WorkspacePath = c.server.opts.Workspace(id)
	}
	if err := view.CatchUp(context.WithoutCancel(ctx)); err != nil {
		c.server.log.Error("a client could not be shown a session", "session", id, "err", err)
	}
	return jsonrpc.Answer{Result: result, After: func() { c.release(id) }}, nil
}

// client is this connection as a client of a session.
func (c *conn) client(p api.OpenParams) *session.Client {
	client := &session.Client{
		Viewer: c, Tools: p.Tools, Permission: p.RequestPermission, Streaming: p.Streaming,
		Forms: p.RequestElicitation, Commands: p.Commands, Remind: c.sendAgain,
	}
	if c.door.Private {
		client.Lost = c.hangUp // the relay connects again, and finds the server that goes on
	}
	if c.infers() {
		client.Transport = courier{c, p.SessionID}
	}
	if p.RequestExitPlan {
		client.ExitPlan = c.askExitPlan
	}
	if endpoints := tokenEndpoints(p); len(endpoints) > 0 {
		client.Token, client.TokenFor = c.token, endpoints
	}
	if p.RequestUserInput {
		client.AskUser = c.askUser
	}
	if p.Hooks {
		client.Hook = c.hook
	}
	if transforms(p.SystemMessage) {
		client.Transform = c.transform
	}
	return client
}

// askUser puts a question to the person behind the client.
func (c *conn) askUser(ctx context.Context, id event.SessionID, q event.UserInputAskedData) (turn.UserReply, error) {
	var reply turn.UserReply
	err := c.rpc.Call(ctx, api.UserInput, api.UserInputParams{
		SessionID: id, RequestID: q.RequestID, Question: q.Question, Choices: q.Choices, AllowFreeform: q.AllowFreeform,
	}, &reply)
	if c.repliedWithError(ctx, id, err) {
		return turn.UserReply{Answer: "The user was unable to respond due to an error", WasFreeform: true, Unable: true}, nil
	}
	return reply, err
}

// repliedWithError reports whether a client that is still there has answered a request with
// an error, or with something that is no answer.
func (c *conn) repliedWithError(ctx context.Context, id event.SessionID, err error) bool {
	if fault, refused := errors.AsType[*jsonrpc.Error](err); refused {
		return fault.Code != jsonrpc.CodeClosing && !lacksSession(fault, id)
	}
	return err != nil && ctx.Err() == nil && c.rpc.Err() == nil && !errors.Is(err, jsonrpc.ErrClosed)
}

// lacksSession reports whether a client says that it does not have the session. Programs
// that stop forget their sessions first and close their connections afterwards: whoever is
// asked in between has not been asked at all. Each SDK has its own words for it.
func lacksSession(fault *jsonrpc.Error, id event.SessionID) bool {
	said, name := strings.ToLower(fault.Message), strings.ToLower(string(id))
	return strings.Contains(said, "unknown session "+name) || strings.Contains(said, "session not found: "+name)
}

// spec is what the client wants the session to be like.
func (c *conn) spec(p api.OpenParams) (session.Spec, error) {
	c.mu.Lock()
	defaults := c.defaults
	c.mu.Unlock()
	s := session.Spec{
		Config: event.SessionConfiguredData{
			WorkingDirectory: p.WorkingDirectory, Model: p.Model, ReasoningEffort: p.ReasoningEffort, Streaming: p.Streaming,
			SystemMessage: p.SystemMessage, AvailableTools: p.AvailableTools, ExcludedTools: p.ExcludedTools, ClientName: p.ClientName,
		},
		Env: defaults.Env,
	}
	s.Name, s.Config.Approve, s.Config.MaxSteps = defaults.Name, defaults.Approve, defaults.MaxSteps
	s.Config.Scope, s.Config.Permissions = defaults.Scope, defaults.Permissions
	s.Config.ExtraTools = defaults.ExtraTools
	s.Config.Memory, s.Config.Compaction, s.Config.Outage = defaults.Memory, defaults.Compaction, defaults.Outage
	s.Config.Budget = defaults.Budget
	more(&s.Config, p.OpenMore)
	guide(&s.Config, defaults)
	var err error
	if s.Config.Managed, err = managedRules(p.ManagedSettings); err != nil {
		return s, err
	}
	if s.Config.Directories, err = additionalDirectories(p.AdditionalDirectories); err != nil {
		return s, err
	}
	if err := customAgents(&s.Config, p.OpenMore); err != nil {
		return s, err
	}
	if err := c.mcpSpec(&s, p.OpenMore); err != nil {
		return s, err
	}
	if s.Config.WorkingDirectory == "" {
		s.Config.WorkingDirectory = defaults.Cwd
	}
	if p.Provider == nil && defaults.Provider != nil {
		own := *defaults.Provider
		own.Default = true
		p.Provider = &own
	}
	if s.Config.Model == "" && (p.Provider == nil || p.Provider.Default) {
		s.Config.Model = defaults.Model
	}
	if a := p.Abide; a != nil {
		s.Name, s.Config.Approve = cmp.Or(a.Name, s.Name), cmp.Or(a.Approve, s.Config.Approve)
		s.Config.MaxSteps = cmp.Or(a.MaxSteps, s.Config.MaxSteps)
		s.Config.Sealed, s.Config.Limit = a.Sealed, a.Limit
		if a.Env != nil {
			s.Env = a.Env
		}
	}
	for i, t := range p.Tools {
		if t.Name == "" {
			return s, errBadParams{fmt.Errorf("tools[%d].name: it is empty", i)}
		}
	}
	for i, d := range p.Commands {
		if d.Name == "" {
			return s, errBadParams{fmt.Errorf("commands[%d].name: it is empty", i)}
		}
	}
	s.Config.ClientHTTP = c.infers()
	if p.Providers == nil && p.Models == nil && p.Provider != nil {
		p.Providers, p.Models = defaults.Providers, defaults.Models
	}
	return s, providers(&s, p)
}

// providers takes a client's providers and models. Their keys are kept apart.
func providers(s *session.Spec, p api.OpenParams) (err error) {
	var brought provider.Set
	if p.Provider != nil {
		if brought.Own, err = ownProvider(*p.Provider); err != nil {
			return err
		}
	}
	if err = addListed(&brought, p.Providers, p.Models); err != nil {
		return err
	}
	s.Keys, err = brought.Record(&s.Config)
	return err
}

// destroy detaches this connection from a session. The work goes on.
func (c *conn) destroy(_ context.Context, p api.SessionParams) (api.Success, error) {
	c.detach(p.SessionID, false)
	c.leave(p.SessionID)
	return api.Success{Success: true}, nil
}

func (c *conn) detach(id event.SessionID, vanished bool) {
	c.mu.Lock()
	a := c.sessions[id]
	delete(c.sessions, id)
	c.mu.Unlock()
	if a != nil {
		c.server.host.Detach(id, a.client, vanished)
	}
}

// detachAll is what becomes of the sessions when the connection is lost.
func (c *conn) detachAll() {
	c.mu.Lock()
	all := c.sessions
	c.sessions = make(map[event.SessionID]*attached)
	c.mu.Unlock()
	for id, a := range all {
		c.server.host.Detach(id, a.client, true)
	}
}
