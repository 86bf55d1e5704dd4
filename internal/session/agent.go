package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/tool"
)

// Agents runs the agents that sessions start, and lets sessions answer as a custom
// agent.
type Agents struct{ host *Host }

// Run gives work to an agent and returns the agent's answer. The agent is a session
// like any other, with the key of the call as its id: it is stored, it goes on after
// a crash, and a call that is made again finds it. Its questions are put to the
// clients of the session that started it.
func (as Agents) Run(ctx context.Context, call tool.Call, work tool.AgentWork) (tool.Result, error) {
	parent := as.host.get(call.Session)
	spec, client, err := as.host.agentSpec(ctx, parent, work)
	if err != nil {
		return tool.Result{}, err
	}
	return as.host.runAgent(ctx, parent, call, work, spec, client)
}

// WorksFor reports whether a session is another one, or that of an agent that works or
// worked for it. An agent can have agents of its own.
func (as Agents) WorksFor(ctx context.Context, id, session event.SessionID) bool {
	for id != session {
		var of *event.AgentOf
		err := as.host.inspect(ctx, id, func(tx *txn) error {
			of = tx.State.Setup.Config.Agent
			return nil
		})
		as.host.Unload(id) // the caller asks about many sessions
		if err != nil || of == nil {
			return false
		}
		id = of.Session
	}
	return true
}

// agentSpec describes the session of an agent: it is like the session that starts the
// agent, except for what the kind of agent says.
func (h *Host) agentSpec(ctx context.Context, parent *Session, work tool.AgentWork) (Spec, *Client, error) {
	spec, client := Spec{}, &Client{}
	err := h.inspectAny(ctx, parent.id, func(tx *txn) error {
		spec.Config = tx.State.Setup.Config
		spec.Config.Permissions.Deny = tx.State.Denials()
		client.Permission, client.Tools = tx.State.Setup.Declared.Permission, tx.State.Setup.Tools
		if tx.State.Setup.Declared.Hooks {
			client.Hook = tx.s.hookOfAgent
		}
		if err := tx.exists(); err != nil {
			return err
		}
		return tx.shareSecrets(&spec)
	})
	if err != nil {
		return spec, nil, err
	}
	c := &spec.Config
	c.Instructions, c.SystemMessage, c.Streaming = work.Brief, nil, false
	c.AgentExcluded, c.Agent = nil, &event.AgentOf{Session: parent.id, Type: work.Type, Root: c.Agent.Counted()}
	described := c.Custom(work.Type)
	c.Agents, c.Selected, c.Before = nil, "", nil
	switch {
	case described != nil:
		applyAgent(c, *described)
	case work.Tools != nil:
		c.AvailableTools, client.Tools = work.Tools, nil
	}
	if parent.clients.find(tokens) != nil {
		client.Token = parent.tokenOfAgent
	}
	if a := parent.clients.find(transports); a != nil {
		client.Transport = a.spec.Transport
	}
	return spec, client, nil
}

// shareSecrets gives an agent the environment and the keys that belong to its
// configuration.
func (tx *txn) shareSecrets(spec *Spec) error {
	providers, err := provider.Of(tx.State.ReadSettings())
	if err != nil {
		return err
	}
	keys, err := tx.keys()
	if err != nil {
		return err
	}
	spec.Keys = keys.Usable(providers)
	if spec.MCP, err = tx.s.mcpSecrets(tx.s.host.ctx); err != nil {
		return err
	}
	spec.Env, err = tx.s.environment(tx.s.host.ctx)
	return err
}

// hookOfAgent asks the hooks of this session about what an agent does. It waits for a client
// that vanished as the hooks of the session itself do, because the agent does not see who
// comes and goes here.
func (s *Session) hookOfAgent(ctx context.Context, _ event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
	switch kind {
	case event.HookPreToolUse, event.HookPostToolUse, event.HookPostToolFailure, event.HookPreMCPToolCall:
	default:
		return nil, nil // hooks about prompts and ends concern the call in this session
	}
	for {
		clients := s.awaitHookClients(ctx)
		if len(clients) == 0 {
			return nil, errors.New("there is no client to ask")
		}
		if output, err := s.askHookClients(ctx, kind, input, clients); !errors.Is(err, ErrLeft) {
			return output, err
		}
	}
}

// awaitHookClients returns the clients whose hooks can be asked. If there are none, it waits
// for one as long as hooks of the session wait.
func (s *Session) awaitHookClients(ctx context.Context) []*attachment {
	ctx, cancel := context.WithDeadline(ctx, s.awaitHooksUntil())
	defer cancel()
	return s.clients.awaitHooks(ctx)
}

// tokenOfAgent asks the clients of this session for a token that an agent needs.
func (s *Session) tokenOfAgent(ctx context.Context, _ event.SessionID, provider, endpoint string) (string, error) {
	return s.askToken(ctx, provider, endpoint)
}

// runAgent runs the agent's session until the agent has an answer.
func (h *Host) runAgent(ctx context.Context, parent *Session, call tool.Call, work tool.AgentWork, spec Spec, client *Client) (tool.Result, error) {
	id := event.SessionID(call.Key)
	w := &agentViewer{parent: parent, child: id, done: make(chan struct{}), old: call.Attempt > 1}
	client.Viewer = w
	view, err := h.Create(ctx, id, spec, client)
	if err != nil {
		return tool.Result{}, err
	}
	defer h.Detach(id, client, false)
	if err := view.CatchUp(ctx); err != nil {
		return tool.Result{}, err
	}
	w.live()
	told := event.SubagentData{ToolCallID: call.ID, Name: work.Type, DisplayName: work.Name, Description: work.Description}
	parent.publishAlone(told.As(event.SubagentStarted, ""))
	// Whoever has stopped the call has found no turn of the agent to stop, and may have been told so.
	isStopped := func() error { return context.Cause(ctx) }
	if _, err := h.sendUnless(ctx, id, event.InputAcceptedData{Prompt: work.Prompt, Key: call.Key}, nil, isStopped); err != nil {
		return tool.Result{}, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if h.ctx.Err() == nil { // the call was stopped, and not the engine
			err = h.Abort(context.WithoutCancel(ctx), id, stoppedWithCall)
		}
		return tool.Result{}, errors.Join(ctx.Err(), err)
	}
	if failure := w.failure(); failure != "" {
		parent.publishAlone(told.As(event.SubagentFailed, failure))
		return tool.Fail("The agent failed: " + failure), nil
	}
	parent.publishAlone(told.As(event.SubagentCompleted, ""))
	return tool.Result{Text: w.answer()}, nil
}

// publishAlone sends the clients of the session an event that is not stored and has
// no parent.
func (s *Session) publishAlone(p event.Payload) {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Ephemeral: true}, p)
	if err == nil {
		s.feed.send(e)
	}
}

// An agentViewer watches the session of an agent: it passes questions on to the
// clients of the session that started the agent, and keeps the answer.
type agentViewer struct {
	parent *Session
	child  event.SessionID
	done   chan struct{} // closed when the agent is idle

	mu    sync.Mutex
	old   bool // true while events are shown that happened before
	over  bool
	text  string
	error string
}

func (w *agentViewer) Event(_ event.SessionID, e event.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case event.PermissionAsked, event.PermissionDone, event.ExternalAsked, event.ExternalDone:
		if !w.old {
			w.parent.feed.send(e.OfAgent(w.child))
		}
	case event.AssistantMessage:
		if d, err := event.As[event.AssistantMessageData](e); err == nil && d.Content != "" {
			w.text, w.error = d.Content, ""
		}
	case event.SessionError:
		if d, err := event.As[event.SessionErrorData](e); err == nil && d.EndsTurn {
			w.error = d.Message
		}
	case event.SessionIdle:
		if !w.over {
			w.over = true
			close(w.done)
		}
	}
	return true
}

// live tells the viewer that the events from now on are new.
func (w *agentViewer) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = false
}

func (w *agentViewer) answer() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

func (w *agentViewer) failure() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.error
}

// ErrAgent means that there is no such agent.
var ErrAgent = errors.New("there is no such agent")

// Choose makes a custom agent answer in a session from the next turn on, with the
// agent's prompt, tools and model.
func (as Agents) Choose(ctx context.Context, id event.SessionID, name string) (event.CustomAgent, error) {
	var chosen event.CustomAgent
	err := as.host.change(ctx, id, func(tx *txn) error {
		a := tx.State.Setup.Config.Custom(name)
		if a == nil {
			return fmt.Errorf("agent %s: %w", name, ErrAgent)
		}
		chosen = *a
		if tx.State.Setup.Config.Selected == name {
			return nil
		}
		if err := tx.dropAgent(); err != nil {
			return err
		}
		to := tx.State.Setup.Config
		to.Selected = name
		return errors.Join(tx.record(to), tx.useAgentModel(a), tx.record(event.SubagentSelectedData{
			Name: a.Name, DisplayName: cmp.Or(a.DisplayName, a.Name), Tools: a.Tools,
		}))
	})
	return chosen, err
}

// useAgentModel switches to the model of the chosen agent, if it has one, and
// remembers the model before it.
func (tx *txn) useAgentModel(a *event.CustomAgent) error {
	if a.Model == "" && a.ReasoningEffort == "" {
		return nil
	}
	had := &event.Own{Model: tx.State.Setup.Model, ReasoningEffort: tx.State.Setup.Config.ReasoningEffort}
	if err := tx.setModel(Choice{Model: cmp.Or(a.Model, had.Model), Effort: cmp.Or(a.ReasoningEffort, had.ReasoningEffort)}); err != nil {
		return err
	}
	to := tx.State.Setup.Config
	to.Before = had
	return tx.record(to)
}

// Dismiss ends the use of the chosen agent: the session answers as it did before.
func (as Agents) Dismiss(ctx context.Context, id event.SessionID) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		if tx.State.Setup.Config.Selected == "" {
			return nil
		}
		return errors.Join(tx.dropAgent(), tx.record(event.Empty(event.SubagentDeselected)))
	})
}

// dropAgent undoes what the chosen agent changed in the configuration.
func (tx *txn) dropAgent() error {
	to := tx.State.Setup.Config
	if to.Selected == "" {
		return nil
	}
	had := to.Before
	to.Selected, to.Before = "", nil
	if err := tx.record(to); err != nil || had == nil {
		return err
	}
	return tx.setModel(Choice{Model: had.Model, Effort: had.ReasoningEffort})
}

// SetPrompt replaces the prompt of a custom agent.
func (as Agents) SetPrompt(ctx context.Context, id event.SessionID, name, prompt string) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		to := tx.State.Setup.Config
		if to.Custom(name) == nil {
			return fmt.Errorf("agent %s: %w", name, ErrAgent)
		}
		to.Agents = slices.Clone(to.Agents)
		to.Custom(name).Prompt = prompt
		return tx.record(to)
	})
}

// Announce tells the clients of a session which agents there are.
func (as Agents) Announce(ctx context.Context, id event.SessionID, d event.CustomAgentsUpdatedData) error {
	return as.host.change(ctx, id, func(tx *txn) error {
		tx.send(d)
		return nil
	})
}

// applyAgent configures the session of an agent by the agent's description.
func applyAgent(c *event.SessionConfiguredData, a event.CustomAgent) {
	c.Instructions = a.Prompt
	if a.Tools != nil {
		c.AvailableTools = a.Tools
	}
	c.Model, c.ReasoningEffort = cmp.Or(a.Model, c.Model), cmp.Or(a.ReasoningEffort, c.ReasoningEffort)
}
