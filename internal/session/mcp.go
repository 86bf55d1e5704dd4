package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// MCP is the MCP servers of sessions. A session has its servers while it is in memory, and
// its agents use them too.
type MCP struct{ host *Host }

// mcpSets are the servers of all sessions in memory, by the session that they were started
// for.
type mcpSets struct {
	mu     sync.Mutex
	open   map[event.SessionID]*mcpSet
	closed bool
	work   sync.WaitGroup
	tokens map[string]chan tokenAnswer // requests for tokens that programs have not answered, by id
	calls  map[mcpCallID]mcpCall       // calls that servers were sent and whose results are not stored
}

// An mcpCallID names a call of a session.
type mcpCallID struct {
	session event.SessionID
	call    string
}

// An mcpCall is a call that a server was sent.
type mcpCall struct {
	set         *mcp.Set
	server, key string
}

// An mcpSet is the servers of a session.
type mcpSet struct {
	*mcp.Set
	rules event.MCPRules
	dir   string
	stale bool // true if the secrets have changed since the set was configured
}

// A recordedMCP is what the session in memory has recorded of its servers.
type recordedMCP struct {
	set     *mcp.Set
	version int
	state   *turn.State
}

// mcpWait is how long a turn waits for servers that are being started. Their tools are
// offered later otherwise.
const mcpWait = 30 * time.Second

// defaultWindow is the window of a model of which nothing is known, in tokens.
const defaultWindow = 128_000

// errNoMCP means that a session has no MCP servers.
var errNoMCP = errors.New("no MCP host initialized: the session has no MCP servers")

// mcpOwner returns the session whose servers a session uses: its own, or those of the
// session that it works for.
func mcpOwner(id event.SessionID, config *event.SessionConfiguredData) event.SessionID {
	return cmp.Or(config.Agent.Counted(), id)
}

// mcpServers returns the servers of a session, which are being connected then; nil if it has
// none.
func (h *Host) mcpServers(ctx context.Context, id event.SessionID, config event.SessionConfiguredData) (*mcp.Set, error) {
	owner := mcpOwner(id, &config)
	rules := config.MCP
	if h.opts.MCP == nil {
		return nil, nil
	}
	h.mcp.mu.Lock()
	defer h.mcp.mu.Unlock()
	open := h.mcp.open[owner]
	if open != nil && !open.stale && reflect.DeepEqual(open.rules, rules) && open.dir == config.WorkingDirectory {
		return open.Set, nil
	}
	if open == nil && len(rules.Servers) == 0 {
		return nil, nil
	}
	if h.mcp.closed {
		return nil, ErrClosed
	}
	servers, err := h.configuredMCP(ctx, id, rules)
	if err != nil {
		return nil, err
	}
	if open != nil && open.dir == config.WorkingDirectory {
		open.rules, open.stale = rules, false
		open.Configure(servers)
		return open.Set, nil
	}
	env, err := h.get(id).environment(ctx)
	if err != nil {
		return nil, err
	}
	if open != nil {
		open.Forget()
		h.mcp.work.Go(open.Close)
	}
	set := mcp.Open(*h.opts.MCP, mcp.Surroundings{Session: owner, Dir: config.WorkingDirectory, Env: env, Sealed: config.Sealed, Local: config.Workspace == nil}, servers, h.mcpEvents(owner))
	if h.mcp.open == nil {
		h.mcp.open = make(map[event.SessionID]*mcpSet)
	}
	h.mcp.open[owner] = &mcpSet{Set: set, rules: rules, dir: config.WorkingDirectory}
	h.mcp.work.Go(func() { h.announceMCP(owner, set) })
	return set, nil
}

// configuredMCP returns the configuration of the servers of a session with their secrets.
func (h *Host) configuredMCP(ctx context.Context, id event.SessionID, rules event.MCPRules) ([]mcp.Server, error) {
	secrets, err := h.get(id).mcpSecrets(ctx)
	if err != nil {
		return nil, err
	}
	var list []mcp.Server
	for _, s := range rules.Servers {
		s.Disabled = s.Disabled || slices.Contains(rules.Disabled, s.Name)
		list = append(list, mcp.Whole(s, secrets[s.Name]))
	}
	return list, nil
}

// announceMCP tells clients when every server was tried once.
func (h *Host) announceMCP(owner event.SessionID, set *mcp.Set) {
	set.Wait(h.ctx)
	if h.ctx.Err() != nil {
		return
	}
	data := event.MCPServersLoadedData{Servers: []event.MCPServerState{}}
	for _, s := range set.List() {
		data.Servers = append(data.Servers, s.Public())
	}
	h.tellMCP(owner, data)
}

// tellMCP sends the clients of a session an event about its servers.
func (h *Host) tellMCP(owner event.SessionID, p event.Payload) {
	if s := h.peek(owner); s != nil {
		s.publishAlone(p)
	}
}

// mcpEvents tells the clients of a session what happens to its servers.
func (h *Host) mcpEvents(owner event.SessionID) mcp.Events {
	return mcp.Events{
		Status: func(server string, status mcp.Status, why string) {
			h.tellMCP(owner, event.MCPStatusChangedData{ServerName: server, Status: string(status), Error: why})
			if status == mcp.Connected {
				h.closeLoginForms(owner, server)
			}
		},
		Changed: func(server string, what event.Type) {
			switch what {
			case event.MCPPromptsChanged:
				h.tellMCP(owner, event.MCPPromptsChangedData{ServerName: server})
			case event.MCPResourcesChanged:
				h.tellMCP(owner, event.MCPResourcesChangedData{ServerName: server})
			default:
				h.tellMCP(owner, event.MCPToolsChangedData{ServerName: server})
			}
		},
		Elicit: func(ctx context.Context, server, key string, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			return h.elicitForMCP(ctx, owner, server, key, p)
		},
		Sample: func(ctx context.Context, server, key string, q mcp.Sample) (mcp.Sampled, error) {
			return h.sampleForMCP(ctx, owner, server, key, q)
		},
		Begun: func(server string) { h.closeMCPForms(owner, server) },
		Token: func(ctx context.Context, q mcp.TokenRequest) (string, bool) { return h.askForToken(ctx, owner, q) },
		Login: func(ctx context.Context, server mcp.Server, more bool) bool {
			return h.askForLogin(ctx, owner, server, more)
		},
	}
}

// maxMCPQuestion is the maximum length of a question of a server with its form, in bytes.
const maxMCPQuestion = 64 << 10

// elicitForMCP puts a question of a server to a person, or finds the one that an earlier engine
// has put. It is an open question of the session, which anybody who may can answer; it ends
// with the connection to the server, and not with the engine if the server goes on.
func (h *Host) elicitForMCP(ctx context.Context, owner event.SessionID, server, key string, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	if p.Mode != "" && p.Mode != "form" {
		return &sdk.ElicitResult{Action: turn.Dismiss}, nil // nobody is sent to a page that a server names
	}
	schema, err := json.Marshal(p.RequestedSchema)
	if err == nil && len(schema)+len(p.Message) > maxMCPQuestion {
		err = fmt.Errorf("a question has %d bytes at most", maxMCPQuestion)
	}
	if err != nil {
		return nil, err
	}
	message := fmt.Sprintf("The MCP server %s asks: %s", server, p.Message)
	filled, err := h.Questions.Elicit(ctx, owner, event.ElicitationAskedData{Message: message, Schema: schema, Source: server, Key: key}, func() bool { return h.ctx.Err() != nil })
	if errors.Is(err, ErrNobody) {
		return &sdk.ElicitResult{Action: turn.Cancel}, nil
	}
	if err != nil {
		return nil, err
	}
	result := &sdk.ElicitResult{Action: filled.Action}
	if len(filled.Content) > 0 {
		err = json.Unmarshal(filled.Content, &result.Content)
	}
	return result, err
}

// closeMCPForms closes the questions of a server that has begun anew: it does not wait for the
// answers any more. Those for a login are no questions of the server.
func (h *Host) closeMCPForms(owner event.SessionID, server string) {
	s := h.peek(owner)
	if s == nil {
		return
	}
	s.post(func(tx *txn) error {
		for _, form := range tx.State.Exchanges.Forms() {
			d, err := event.As[event.ElicitationAskedData](form.Asked)
			if err != nil || d.Source != server || d.Budget != nil || string(d.Schema) == loginForm {
				continue
			}
			record, _, err := tx.State.FillIn(form.RequestID, "", turn.Filled{Action: turn.Cancel})
			if err == nil {
				err = tx.record(record...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// closeMCP ends the servers of a session that is no longer in memory. With done, they are not
// needed by the next engine either: those that an earlier one has left are ended, too.
func (h *Host) closeMCP(id event.SessionID, done bool) {
	h.mcp.mu.Lock()
	defer h.mcp.mu.Unlock()
	maps.DeleteFunc(h.mcp.calls, func(c mcpCallID, _ mcpCall) bool { return c.session == id })
	if open := h.mcp.open[id]; open != nil {
		delete(h.mcp.open, id)
		open.Forget()
		h.mcp.work.Go(open.Close)
		return
	}
	if !done || h.opts.MCP == nil || h.mcp.closed {
		return
	}
	if end := mcp.TakeLeft(*h.opts.MCP, id); end != nil {
		h.mcp.work.Go(func() { end(context.WithoutCancel(h.ctx)) })
	}
}

// leaveMCP leaves the servers to the next engine that are busy with a call, of this engine or of
// a turn that this one does not go on with.
func (h *Host) leaveMCP() {
	busy, open := make(map[*mcp.Set]bool), make(map[event.SessionID]*mcp.Set)
	h.mcp.mu.Lock()
	for _, c := range h.mcp.calls {
		busy[c.set] = true
	}
	for owner, o := range h.mcp.open {
		open[owner] = o.Set
	}
	h.mcp.mu.Unlock()
	for owner, set := range open {
		if busy[set] || !h.Work.GoesOn(owner) {
			set.Detach()
		}
	}
}

// noteMCPCall notes that a server is sent a call.
func (h *Host) noteMCPCall(id mcpCallID, c mcpCall) {
	h.mcp.mu.Lock()
	defer h.mcp.mu.Unlock()
	if h.mcp.calls == nil {
		h.mcp.calls = make(map[mcpCallID]mcpCall)
	}
	h.mcp.calls[id] = c
}

// callsAny reports whether a server was sent a call whose result is not stored.
func (m *mcpSets) callsAny() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls) > 0
}

// settleMCPCalls tells servers that the results of calls are stored.
func (h *Host) settleMCPCalls(id event.SessionID, stored []event.Event) {
	if !h.mcp.callsAny() {
		return
	}
	for _, e := range stored {
		if e.Type != event.ToolComplete {
			continue
		}
		d, err := event.As[event.ToolCompleteData](e)
		if err != nil {
			continue
		}
		name := mcpCallID{id, d.ToolCallID}
		h.mcp.mu.Lock()
		c, ok := h.mcp.calls[name]
		delete(h.mcp.calls, name)
		h.mcp.mu.Unlock()
		if ok {
			c.set.Settle(c.server, c.key)
		}
	}
}

// closeAllMCP ends the servers of all sessions, and waits for that.
func (h *Host) closeAllMCP() {
	h.mcp.mu.Lock()
	h.mcp.closed = true
	for id, open := range h.mcp.open {
		delete(h.mcp.open, id)
		h.mcp.work.Go(open.Close)
	}
	h.mcp.mu.Unlock()
	h.mcp.work.Wait()
}

// recordMCPTools records the tools of the MCP servers if they have changed. A turn waits for
// servers that are being started.
func (tx *txn) recordMCPTools() error {
	if tx.s.host.opts.MCP == nil || len(tx.State.Setup.Config.MCP.Servers) == 0 && len(tx.State.MCP.Tools) == 0 {
		return nil
	}
	return tx.lookForMCPTools(tx.s.host, tx.s.id, tx.State.Setup.Config)
}

// lookForMCPTools waits for the MCP servers of a session, and records their tools if they
// have changed.
func (tx *txn) lookForMCPTools(h *Host, id event.SessionID, config event.SessionConfiguredData) error {
	found, err := lookAt(tx.s, "MCP servers", config.MCP, func(ctx context.Context) foundMCP {
		ctx, cancel := context.WithTimeout(ctx, mcpWait)
		defer cancel()
		set, err := h.mcpServers(ctx, id, config)
		if set != nil {
			set.Wait(ctx)
		}
		return foundMCP{set, err}
	})
	if err != nil {
		return err
	}
	if found.err != nil {
		tx.s.warnOnce("the MCP servers could not be started", found.err)
	}
	return tx.offerMCPTools(found.set)
}

// foundMCP is what a look for MCP servers has found.
type foundMCP struct {
	set *mcp.Set
	err error
}

// recordChangedMCPTools records the tools of the MCP servers if they have changed since the
// turn began.
func (tx *txn) recordChangedMCPTools() error {
	h, owner := tx.s.host, mcpOwner(tx.s.id, tx.State.ReadSettings())
	h.mcp.mu.Lock()
	open := h.mcp.open[owner]
	h.mcp.mu.Unlock()
	if open == nil {
		return nil
	}
	return tx.offerMCPTools(open.Set)
}

// offerMCPTools records the tools of the MCP servers if they have changed. They are deferred
// if they would take more than a tenth of the model's window.
func (tx *txn) offerMCPTools(set *mcp.Set) error {
	now := recordedMCP{set: set, state: tx.State}
	if set != nil {
		now.version = set.Version()
	}
	if tx.s.recordedMCP == now {
		return nil
	}
	data := event.MCPOfferedData{Tools: []event.MCPTool{}}
	if set != nil {
		data.Tools = append(data.Tools, set.Tools(tx.s.host.opts.Tools.Reserves)...)
	}
	size := 0
	for _, t := range data.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	data.Deferred = size/bytesPerToken > cmp.Or(tx.s.currentGauge().limits.Window, defaultWindow)/10
	tx.s.recordedMCP = now
	tx.onFailure = append(tx.onFailure, func() { tx.s.recordedMCP = recordedMCP{} })
	if data.Deferred == tx.State.MCP.Deferred && slices.EqualFunc(data.Tools, tx.State.MCP.Tools, sameMCPTool) {
		return nil
	}
	return tx.record(data)
}

// bytesPerToken is how many bytes of the description of a tool are about a token.
const bytesPerToken = 4

func sameMCPTool(a, b event.MCPTool) bool {
	same := string(a.Parameters) == string(b.Parameters)
	a.Parameters, b.Parameters = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// nameMCPTools adds to calls which MCP server carries them out.
func (tx *txn) nameMCPTools(list []event.ToolRequest) []event.ToolRequest {
	for i := range list {
		if t := tx.State.MCPTool(list[i].Name); t != nil {
			list[i].Title, list[i].MCPServer, list[i].MCPTool = t.Title, t.Server, t.Tool
		}
	}
	return list
}

// CallTool calls a tool of an MCP server of a session. A failure is a result that says
// whether the call may have happened.
func (m MCP) CallTool(ctx context.Context, call tool.Call, t event.MCPTool) (tool.Result, error) {
	again := call.Attempt > 1 && !t.Repeatable
	set, err := m.set(ctx, call.Session)
	if err != nil {
		if again {
			return unknownMCPCall(), ctx.Err()
		}
		return tool.Fail(fmt.Sprintf("The call was not made: %v.", err)), ctx.Err()
	}
	request := mcp.Request{Server: t.Server, Tool: t.Tool, Arguments: call.Arguments, Key: call.Key, Again: call.Attempt > 1}
	m.host.noteMCPCall(mcpCallID{call.Session, call.ID}, mcpCall{set, t.Server, call.Key})
	if request.Meta, err = m.askMeta(ctx, call, t); err != nil {
		return tool.Result{}, err
	}
	result, err := set.Call(ctx, request)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if err != nil {
		return failedMCPCall(t, err, again), nil
	}
	return m.result(ctx, call.Session, result)
}

// failedMCPCall returns the result of a call that the server has not answered with a result.
// With again, an earlier engine has made the call, perhaps: what could not be done now was
// possibly done then.
func failedMCPCall(t event.MCPTool, err error, again bool) tool.Result {
	var away *mcp.Unavailable
	var silence *mcp.Silence
	var login *mcp.LoginWanted
	var declined *mcp.Declined
	switch {
	case errors.Is(err, mcp.ErrUnknown), again && !mcp.Answered(err) && !errors.As(err, &silence):
		return unknownMCPCall()
	case errors.As(err, &login):
		return tool.Fail(loginFailure(t, login))
	case errors.As(err, &away), errors.Is(err, mcp.ErrNotFound):
		return tool.Fail(fmt.Sprintf("The call was not made: %v.", err))
	case errors.As(err, &silence):
		r := tool.Fail(fmt.Sprintf("The call of %s was given up: %v. It may have happened, in part or in full. Check before you repeat it.", t.Name, err))
		r.Code = event.CodeTimeout
		return r
	case errors.Is(err, mcp.ErrUnreadable):
		return tool.Fail(fmt.Sprintf("The MCP server %s has answered the call with something that cannot be read (%s). The call may have happened, in part or in full. Check before you repeat it.", t.Server, mcp.Why(err)))
	case errors.As(err, &declined):
		return tool.Fail(fmt.Sprintf("The call of %s was not finished: the MCP server %s wanted something for it, and %v. The call may have happened in part.", t.Name, t.Server, declined))
	case mcp.Answered(err):
		return tool.Fail(fmt.Sprintf("The MCP server %s refused the call: %s", t.Server, mcp.Why(err)))
	}
	return tool.Fail(fmt.Sprintf("The MCP server %s ended during the call (%s). The call may have happened, in part or in full. Check before you repeat it; the server is started again when it is needed.", t.Server, mcp.Why(err)))
}

// unknownMCPCall returns the result of a call that an earlier engine has begun, and of which
// nobody knows more.
func unknownMCPCall() tool.Result {
	r := tool.Fail(turn.TextUnknown)
	r.Code = event.CodeInterrupted
	return r
}

// result converts the result of a call. A long text goes to a file.
func (m MCP) result(ctx context.Context, id event.SessionID, r mcp.Result) (tool.Result, error) {
	text := turn.ExternalResult{Text: r.Text}
	m.host.saveLargeResult(ctx, id, &text)
	made := tool.Result{Text: cmp.Or(text.Shown, text.Text), Contents: r.Contents}
	if text.Shown != "" {
		made.Contents = nil
	}
	if r.Failed {
		made.Failed, made.Code, made.Contents = true, event.CodeFailure, nil
		if made.Text == "" {
			made.Text = "The call failed, and the server does not say why."
		}
		return made, nil
	}
	if len(r.Images) == 0 {
		return made, nil
	}
	type picture struct {
		Type     string `json:"type"`
		Data     []byte `json:"data"` // in base64
		MIMEType string `json:"mimeType"`
	}
	var list []picture
	for _, v := range r.Images {
		list = append(list, picture{"image", v.Data, v.MIMEType})
	}
	var err error
	made.Binary, err = json.Marshal(list)
	made.Text = strings.TrimSpace(made.Text + fmt.Sprintf("\n(%d images)", len(list)))
	return made, err
}

// askMeta asks the hooks of clients which metadata a call is made with. What they say is
// recorded before the call is made.
func (m MCP) askMeta(ctx context.Context, call tool.Call, t event.MCPTool) (map[string]any, error) {
	s := m.host.get(call.Session)
	var hooks bool
	var start event.HookStartData
	err := m.host.inspect(ctx, call.Session, func(tx *txn) error {
		if hooks = tx.s.hasHooks(); hooks {
			start = turn.MCPHook(tx.State, call, t, tx.now)
		}
		return nil
	})
	if err != nil || !hooks {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	end := event.HookEndData{ID: start.ID, Kind: start.Kind, Success: true}
	if clients := s.awaitHookClients(asking); len(clients) == 0 {
		end.Success, end.Error = false, &event.HookError{Message: "There is no client to ask."}
	} else if end.Output, err = s.askHookClients(asking, start.Kind, start.Input, clients); err != nil {
		end.Success, end.Error = false, &event.HookError{Message: hookFailure(asking, err)}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = m.host.maintain(ctx, call.Session, func(tx *txn) error { return tx.record(start, end) })
	return turn.MetaToUse(end), err
}

// set returns the servers of a session.
func (m MCP) set(ctx context.Context, id event.SessionID) (*mcp.Set, error) {
	var config event.SessionConfiguredData
	err := m.host.inspect(ctx, id, func(tx *txn) error {
		config = tx.State.Setup.Config
		return nil
	})
	if err != nil {
		return nil, err
	}
	set, err := m.host.mcpServers(ctx, id, config)
	if err == nil && set == nil {
		err = errNoMCP
	}
	return set, err
}

// Set returns the servers of a session, which are being connected then. It returns nil if
// the session has none.
func (m MCP) Set(ctx context.Context, id event.SessionID) (*mcp.Set, error) {
	set, err := m.set(ctx, id)
	if errors.Is(err, errNoMCP) {
		return nil, nil
	}
	return set, err
}

// Enable says whether a server is to be used from now on.
func (m MCP) Enable(ctx context.Context, id event.SessionID, server string, enabled bool) error {
	set, err := m.set(ctx, id)
	if err != nil {
		return err
	}
	if _, err := set.Get(server); err != nil {
		return err
	}
	err = m.host.Configure(ctx, id, func(to *event.SessionConfiguredData) error {
		to.MCP = to.MCP.Enable(server, enabled)
		return nil
	})
	if err == nil {
		_, err = m.set(ctx, id)
	}
	return err
}

// Configure gives a session a server, or another configuration of one, which is connected.
func (m MCP) Configure(ctx context.Context, id event.SessionID, server mcp.Server) error {
	err := m.host.change(ctx, id, func(tx *txn) error {
		secrets, err := tx.s.mcpSecrets(ctx)
		if err != nil {
			return err
		}
		if secrets == nil {
			secrets = make(map[string]mcp.Secret)
		}
		open, secret := server.Apart()
		secrets[server.Name] = secret
		to := tx.State.Setup.Config
		to.MCP = to.MCP.With(open)
		if err := tx.keepMCPSecrets(secrets); err != nil {
			return err
		}
		return tx.record(to)
	})
	if err == nil {
		_, err = m.set(ctx, id)
	}
	return err
}

// openMCP begins to connect to the servers of a session that a client has opened.
func (tx *txn) openMCP() {
	s, config := tx.s, tx.State.Setup.Config
	if s.host.opts.MCP == nil || len(config.MCP.Servers) == 0 {
		return
	}
	tx.afterCommit = append(tx.afterCommit, func() {
		s.spawn(func() {
			if _, err := s.host.mcpServers(s.host.ctx, s.id, config); err != nil {
				s.host.log.Warn("the MCP servers of a session could not be started", "session", s.id, "err", err)
			}
		})
	})
}

// secretMCP names what the configuration of MCP servers keeps secret: a JSON object by the
// names of the servers.
const secretMCP = "mcp"

// mcpSecrets returns the secrets of the session's MCP servers.
func (s *Session) mcpSecrets(ctx context.Context) (map[string]mcp.Secret, error) {
	text, _, err := s.readSecret(ctx, secretMCP)
	if err != nil || text == nil {
		return nil, err
	}
	var secrets map[string]mcp.Secret
	return secrets, json.Unmarshal(text, &secrets)
}

// keepMCPSecrets stores the secrets of MCP servers. A set of servers that is open takes them
// in when it is used next.
func (tx *txn) keepMCPSecrets(secrets map[string]mcp.Secret) error {
	if secrets == nil {
		return nil
	}
	text, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	tx.keepSecret(secretMCP, text)
	h, owner := tx.s.host, tx.s.id
	tx.afterCommit = append(tx.afterCommit, func() {
		h.mcp.mu.Lock()
		defer h.mcp.mu.Unlock()
		if open := h.mcp.open[owner]; open != nil {
			open.stale = true
		}
	})
	return nil
}

// mergeMCP gives a client that resumes a session and names no servers those that the session
// was given by the client before, in addition to those of its own configuration.
func (tx *txn) mergeMCP(spec *Spec) error {
	is := tx.State.Setup.Config.MCP
	spec.Config.MCP.Disabled = is.Disabled
	if spec.OwnMCP || len(is.Servers) == 0 {
		return nil
	}
	before, err := tx.s.mcpSecrets(tx.s.host.ctx)
	if err != nil {
		return err
	}
	for _, s := range is.Servers {
		if s.Source != mcp.SourceSession || slices.ContainsFunc(spec.Config.MCP.Servers, func(v event.MCPServer) bool { return v.Name == s.Name }) {
			continue
		}
		spec.Config.MCP.Servers = append(spec.Config.MCP.Servers, s)
		if spec.MCP == nil {
			spec.MCP = make(map[string]mcp.Secret)
		}
		spec.MCP[s.Name] = before[s.Name]
	}
	slices.SortFunc(spec.Config.MCP.Servers, func(a, b event.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
