package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/argument"
	"github.com/abide-run/abide/internal/turn"
)

// agents is the tool that gives work to an agent. An agent is a session like any
// other, under the key of the call: it is stored, goes on after a crash, and the
// call that is made again finds it. Its questions are put to the clients of the
// session that started it, and answered there.
type agents struct{ host *Host }

// briefs is what an agent is told beside its work.
var briefs = map[string]string{
	"explore":         "You find out how things are, and say so. You change nothing.",
	"task":            "You carry out one task, and say what came of it.",
	"general-purpose": "You work on your own until what was asked for is done.",
	"code-review":     "You review changes: look for what is wrong in them, and name each place.",
	"research":        "You gather what is known about a question, and name where it comes from.",
	"security-review": "You look for ways in which the code can be abused, and name each place.",
}

// readers are the tools of an agent that only reads.
var readers = []string{"view", "grep", "glob"}

func (a agents) Spec() tool.Spec { return turn.TaskSpec(turn.AgentTypes) }

func (a agents) Permission(call tool.Call) (*approval.Request, error) {
	_, err := readOrder(call.Arguments)
	return nil, err
}

// An order is what an agent is started for.
type order struct{ description, prompt, kind, name string }

func readOrder(raw json.RawMessage) (order, error) {
	args := argument.Read(raw)
	o := order{args.Needed("description"), args.Needed("prompt"), args.Needed("agent_type"), args.Needed("name")}
	return o, args.Err()
}

func (a agents) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	o, err := readOrder(call.Arguments)
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	parent := a.host.get(call.Session)
	spec, client, err := a.plan(ctx, parent, o)
	var unknown errAgent
	if errors.As(err, &unknown) {
		return tool.Fail(unknown.Error()), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return a.run(ctx, parent, call, o, spec, client)
}

// errAgent means that there is no such agent.
type errAgent struct {
	name  string
	valid []string
}

func (e errAgent) Error() string {
	return fmt.Sprintf("Unknown agent_type: %s. Valid types are: %s", e.name, strings.Join(e.valid, ", "))
}

// plan is what the agent's session is like: as the one that starts it, but for
// what the kind of agent says.
func (a agents) plan(ctx context.Context, parent *Session, o order) (Spec, *Client, error) {
	spec, client := Spec{}, &Client{}
	err := a.host.look(ctx, parent.id, func(tx *txn) error {
		if valid := tx.State.Agents(); !slices.Contains(valid, o.kind) {
			return errAgent{o.kind, valid}
		}
		spec.Config = tx.State.Config
		client.Permission, client.Tools = tx.State.Declared.Permission, tx.State.Tools
		if tx.State.Declared.Hooks {
			client.Hook = tx.s.hookOfAgent
		}
		return tx.exists()
	})
	if err != nil {
		return spec, nil, err
	}
	c := &spec.Config
	c.Instructions, c.SystemMessage, c.Streaming = briefs[o.kind], nil, false
	c.AgentExcluded, c.Agent = nil, &event.AgentOf{Session: parent.id, Type: o.kind}
	described := c.Custom(o.kind)
	c.Agents, c.Selected, c.Before = nil, "", nil
	switch {
	case described != nil:
		custom(c, *described)
	case o.kind == "explore":
		c.AvailableTools, client.Tools = readers, nil
	}
	if parent.client(tokens) != nil {
		client.Token = parent.tokenOfAgent
	}
	if c := parent.client(transports); c != nil {
		client.Transport = c.Transport
	}
	return spec, client, a.secrets(ctx, parent.id, &spec)
}

// secrets takes over what is kept beside the log of a session.
func (a agents) secrets(ctx context.Context, id event.SessionID, spec *Spec) (err error) {
	if spec.Provider, err = a.host.store.Secret(ctx, id, SecretProvider); err != nil {
		return err
	}
	env, err := a.host.store.Secret(ctx, id, SecretEnv)
	if err != nil || env == nil {
		return err
	}
	return json.Unmarshal(env, &spec.Env)
}

// hookOfAgent asks the hooks of this session about what an agent does.
func (s *Session) hookOfAgent(ctx context.Context, _ event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
	switch kind {
	case event.HookPreToolUse, event.HookPostToolUse, event.HookPostToolFailure:
		return s.hearAll(ctx, kind, input, s.hookClients())
	}
	return nil, nil // its prompts and its end are the call's
}

// tokenOfAgent asks the clients of this session for a token that an agent needs.
func (s *Session) tokenOfAgent(ctx context.Context, _ event.SessionID, provider string) (string, error) {
	return s.token(ctx, provider)
}

// run lets the agent work until it has an answer.
func (a agents) run(ctx context.Context, parent *Session, call tool.Call, o order, spec Spec, client *Client) (tool.Result, error) {
	id := event.SessionID(call.Key)
	w := &witness{parent: parent, child: id, done: make(chan struct{}), old: call.Attempt > 1}
	client.Viewer = w
	view, err := a.host.Create(ctx, id, spec, client)
	if err != nil {
		return tool.Result{}, err
	}
	defer a.host.Detach(id, client, false)
	if err := view.CatchUp(ctx); err != nil {
		return tool.Result{}, err
	}
	w.live()
	told := event.SubagentData{ToolCallID: call.ID, Name: o.kind, DisplayName: o.name, Description: o.description}
	parent.tellOf(told.As(event.SubagentStarted, ""))
	if _, err := a.host.Send(ctx, id, event.InputAcceptedData{Prompt: o.prompt, Key: call.Key}); err != nil {
		return tool.Result{}, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if a.host.ctx.Err() == nil { // it was stopped, and not the engine
			err = a.host.Abort(context.WithoutCancel(ctx), id, "the call that started it was stopped")
		}
		return tool.Result{}, errors.Join(ctx.Err(), err)
	}
	if failure := w.failure(); failure != "" {
		parent.tellOf(told.As(event.SubagentFailed, failure))
		return tool.Fail("The agent failed: " + failure), nil
	}
	parent.tellOf(told.As(event.SubagentCompleted, ""))
	return tool.Result{Text: w.answer()}, nil
}

// tellOf tells the clients of the session something that is not stored.
func (s *Session) tellOf(p event.Payload) {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Ephemeral: true}, p)
	if err == nil {
		s.feed.tell(e)
	}
}

// A witness sees what an agent does: it passes questions on to the clients of the
// session that started it, and knows the answer in the end.
type witness struct {
	parent *Session
	child  event.SessionID
	done   chan struct{} // closed when the agent is idle

	mu    sync.Mutex
	old   bool // what is shown now happened before
	over  bool
	text  string
	error string
}

func (w *witness) Event(_ event.SessionID, e event.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Type {
	case event.PermissionAsked, event.PermissionDone, event.ExternalAsked, event.ExternalDone:
		if !w.old {
			w.parent.feed.tell(e.OfAgent(w.child))
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

// live tells the witness that what it sees from now on is new.
func (w *witness) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = false
}

func (w *witness) answer() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text
}

func (w *witness) failure() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.error
}

// dismissAll removes the sessions of the agents that a session has ever started.
func (h *Host) dismissAll(ctx context.Context, id event.SessionID) {
	tasks, keys := map[string]bool{}, []event.SessionID{}
	for e, err := range h.store.Read(ctx, id, 0) {
		if err != nil {
			return // what is damaged tells nothing
		}
		switch e.Type {
		case event.ToolStart:
			if d, err := event.As[event.ToolStartData](e); err == nil && d.ToolName == turn.StartAgent {
				tasks[d.ToolCallID] = true
			}
		case event.ToolBegun:
			if d, err := event.As[event.ToolBegunData](e); err == nil && tasks[d.ToolCallID] {
				keys = append(keys, event.SessionID(d.Key))
			}
		}
	}
	for _, key := range keys {
		if err := h.Delete(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
			h.log.Warn("the session of an agent could not be deleted", "session", key, "err", err)
		}
	}
}
