package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// Options are what all sets have in common. The zero value of each field is usable.
type Options struct {
	Processes workspace.Processes // where programs run; none are run if nil
	HTTP      http.RoundTripper   // http.DefaultTransport if nil
	Logs      *Logs               // nothing is kept if nil
	Version   string              // version of this program
	Logins    *Logins             // logins to servers over HTTP; there are none if nil
	// State returns the folder in which is kept what the next engine has to know of the servers
	// of a session that are programs. They end with the engine if it is nil.
	State  func(event.SessionID) string
	Shared *Pool  // programs that sessions share; none are if nil
	Lists  string // folder in which the lists of tools are kept; they are not kept if it is empty
	Known  *Known // lists that were read before; nothing is remembered if it is nil
}

// state returns the folder for what is kept of the servers of a session; empty if nothing is.
func (o *Options) state(id event.SessionID) string {
	if o.State == nil {
		return ""
	}
	return o.State(id)
}

// Surroundings are what the servers of a session have in common.
type Surroundings struct {
	Session event.SessionID
	Dir     string   // working directory
	Env     []string // environment of programs, and the values of variables
	Sealed  bool     // true if programs are sealed
	Local   bool     // true if programs run on the machine of the engine
	Shared  bool     // true if several sessions use the servers
}

// Events tells the owner of a set what happens. Its functions are called by several
// goroutines, and must not call the set.
type Events struct {
	Status  func(server string, status Status, why string)
	Changed func(server string, what event.Type) // a list of the server has changed
	// Elicit puts a question of a server to a person. Servers are told that nobody can be
	// asked if it is nil. A question with a key may have been put before, by an earlier engine
	// too, and is the same one then.
	Elicit func(ctx context.Context, server, key string, p *sdk.ElicitParams) (*sdk.ElicitResult, error)
	// Sample asks the model for a server whose configuration allows that, and a person before
	// if that is needed. Servers are told that the model cannot be asked if it is nil. A request
	// with a key may have been made before, by an earlier engine too, and is the same one then.
	Sample func(ctx context.Context, server, key string, q Sample) (Sampled, error)
	// Begun tells that a new connection to a server was begun: nobody waits any more for the
	// answers to what it has asked before. It may be nil.
	Begun func(server string)
	// Token asks the program behind the session for a token. It reports false if there is
	// no program that gives any. An empty token means that it gives none now. It may be nil.
	Token func(ctx context.Context, q TokenRequest) (token string, asked bool)
	// Login tells a person that a server wants a login, and waits until the person has said
	// that it was made, or ctx ends. It reports false if nobody says that. It may be nil.
	Login func(ctx context.Context, server Server, more bool) bool
}

func (e *Events) begun(server string) {
	if e.Begun != nil {
		e.Begun(server)
	}
}

// A Set is the servers of one session.
type Set struct {
	opts   Options
	in     Surroundings
	events Events

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	clients map[string]*client

	version atomic.Int64
	leaving atomic.Bool // true if the engine ends
}

// Version returns a number that changes with the tools that the set offers.
func (s *Set) Version() int { return int(s.version.Load()) }

// Open connects to servers, and returns at once.
func Open(o Options, in Surroundings, servers []Server, ev Events) *Set {
	s := &Set{opts: o, in: in, events: ev, clients: make(map[string]*client)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.Configure(servers)
	return s
}

// Configure changes the servers of the set: those with the same configuration are not
// touched.
func (s *Set) Configure(servers []Server) {
	s.mu.Lock()
	var gone []*client
	for name, c := range s.clients {
		if !slices.ContainsFunc(servers, func(v Server) bool { return reflect.DeepEqual(v, c.config) }) {
			gone = append(gone, c)
			delete(s.clients, name)
			c.journal.drop() // a client with the same name begins its own
		}
	}
	var fresh []*client
	for _, v := range servers {
		if s.clients[v.Name] == nil {
			c := newClient(s, v)
			s.clients[v.Name] = c
			fresh = append(fresh, c)
		}
	}
	s.mu.Unlock()
	s.version.Add(1)
	for _, c := range gone {
		s.work.Go(c.drop)
	}
	for _, c := range fresh {
		if !c.config.Disabled {
			c.start(true)
		}
	}
}

// Detach leaves the programs to the next engine that are busy with a call: nothing is sent to
// them any more, and Close does not end them.
func (s *Set) Detach() { s.leaving.Store(true) }

// Forget lets nobody go on with the programs of the set, which is going to be closed.
func (s *Set) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.journal.drop()
	}
}

// Settle says that the result of a call is stored, or is not wanted any more.
func (s *Set) Settle(server, key string) {
	c, err := s.client(server)
	if err != nil {
		return // it was removed, and its process has ended
	}
	c.settle(key)
}

// settle says that the result of a call is stored, or is not wanted any more.
func (c *client) settle(key string) {
	c.mu.Lock()
	pipe, inner := c.pipe, c.inner
	c.mu.Unlock()
	switch {
	case inner != nil:
		inner.settle(key)
	case pipe != nil:
		pipe.settle(key)
	default:
		c.journal.settle(key)
	}
}

// Close ends all connections at the same time, and all programs with their children.
func (s *Set) Close() {
	s.cancel()
	s.work.Wait()
}

// client returns the client of a server.
func (s *Set) client(name string) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[name]
	if c == nil {
		return nil, fmt.Errorf("%w: the MCP server %q is not connected: no server of that name is configured", ErrNotFound, name)
	}
	return c, nil
}

// ErrNotFound means that there is no such server.
var ErrNotFound = errors.New("there is no such server")

// List returns the states of all servers, sorted by name.
func (s *Set) List() []State {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.clients), func(a, b *client) int { return strings.Compare(a.config.Name, b.config.Name) })
	s.mu.Unlock()
	list := make([]State, len(all))
	for i, c := range all {
		list[i] = c.snapshot()
	}
	return list
}

// Get returns the state of a server.
func (s *Set) Get(name string) (State, error) {
	c, err := s.client(name)
	if err != nil {
		return State{}, err
	}
	return c.snapshot(), nil
}

// Wait waits until every server was tried once, or ctx ends.
func (s *Set) Wait(ctx context.Context) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.clients))
	s.mu.Unlock()
	for _, c := range all {
		for {
			tried, changed := c.settled()
			if tried {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-s.ctx.Done():
				return
			}
		}
	}
}

// AskAgain tries the servers again that want a login, because there is somebody now who may
// make it.
func (s *Set) AskAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.snapshotStatus() == NeedsAuth {
			c.kickNow()
		}
	}
}

// Start connects a server that was stopped, has failed or is disabled.
func (s *Set) Start(name string) error {
	c, err := s.client(name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	runs := c.stop != nil
	c.mu.Unlock()
	if runs {
		c.wake()
		return nil
	}
	c.start(false)
	return nil
}

// Stop ends the connection to a server until it is started again.
func (s *Set) Stop(name string, as Status) error {
	c, err := s.client(name)
	if err == nil {
		c.end(as)
	}
	return err
}

// Restart ends the connection to a server and makes a new one.
func (s *Set) Restart(name string) error {
	c, err := s.client(name)
	if err == nil {
		c.end(Stopped)
		c.start(false)
	}
	return err
}

// Tools returns the tools that the servers offer, with their names for a model. The function
// reserved reports whether a name is that of another tool.
func (s *Set) Tools(reserved func(name string) bool) []event.MCPTool {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.clients), func(a, b *client) int { return strings.Compare(a.config.Name, b.config.Name) })
	s.mu.Unlock()
	var list []event.MCPTool
	for _, c := range all {
		list = append(list, c.offers()...)
	}
	ids := make([]toolID, len(list))
	for i, t := range list {
		ids[i] = toolID{t.Server, t.Tool}
	}
	for i, name := range names(ids, reserved) {
		list[i].Name = name
	}
	return list
}

// offers returns the tools of a server that can be used, or is being connected again.
func (c *client) offers() []event.MCPTool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != Connected && c.status != Pending && c.status != Failed {
		return nil
	}
	return c.offered
}

// toolsOf returns the tools of a server that are offered, as sessions know them, without their
// names for models.
func toolsOf(s Server, tools []*sdk.Tool) (list []event.MCPTool) {
	seen := make(map[string]bool)
	for _, t := range tools {
		if t == nil || t.Name == "" || len(t.Name) > maxServerName || !s.Uses(t.Name) || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		list = append(list, toolOf(s, t))
	}
	return list
}

// toolOf returns a tool as sessions know it, without its name for the model.
func toolOf(s Server, t *sdk.Tool) event.MCPTool {
	made := event.MCPTool{Server: s.Name, Tool: t.Name, Title: t.Title, Repeatable: s.MayRepeat(t.Name)}
	if t.Annotations != nil {
		made.ReadOnly = t.Annotations.ReadOnlyHint
		if made.Title == "" {
			made.Title = t.Annotations.Title
		}
	}
	if made.Title == "" {
		made.Title = t.Name
	}
	made.Title = strings.Trim(quote(made.Title, maxServerName), `"`)
	made.Description = describe(toolID{s.Name, t.Name}, t.Description)
	var cut bool
	if made.Parameters, cut = schemaOf(t.InputSchema); cut {
		made.Description += " Its parameters cannot be shown; the server refuses wrong ones."
	}
	return made
}

// schemaOf returns the schema of the arguments of a tool, in a form that all providers take.
// It reports true if the schema of the server cannot be used.
func schemaOf(schema any) (json.RawMessage, bool) {
	text, err := json.Marshal(schema)
	var object map[string]json.RawMessage
	if err != nil || len(text) > maxSchema || event.CheckJSON(text) != nil || json.Unmarshal(text, &object) != nil || object == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), true
	}
	if _, has := object["properties"]; has && bytes.Equal(object["type"], []byte(`"object"`)) {
		return text, false
	}
	object["type"] = json.RawMessage(`"object"`)
	if object["properties"] == nil {
		object["properties"] = json.RawMessage(`{}`)
	}
	text, err = json.Marshal(object)
	return text, err != nil
}

// Call calls a tool. If the server is being connected, the call waits for that.
func (s *Set) Call(ctx context.Context, q Request) (Result, error) {
	result, err := s.CallRaw(ctx, q)
	if err != nil {
		return Result{}, err
	}
	return resultOf(result)
}

// CallRaw is Call with the result as the server has sent it.
func (s *Set) CallRaw(ctx context.Context, q Request) (*sdk.CallToolResult, error) {
	c, err := s.client(q.Server)
	if err != nil {
		return nil, err
	}
	conn, release, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.call(ctx, conn, q)
}

// askTime is how long a server may take for what is no call.
const askTime = time.Minute

// use calls f with the connection to a server.
func use[T any](ctx context.Context, s *Set, server string, f func(context.Context, *sdk.ClientSession) (T, error)) (T, error) {
	var none T
	c, err := s.client(server)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, &Silence{true, askTime})
	defer cancel()
	conn, release, err := c.connection(ctx)
	if err != nil {
		return none, err
	}
	defer release()
	found, err := f(ctx, conn)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return found, err
}

// Resources lists resources of a server, from a cursor on.
func (s *Set) Resources(ctx context.Context, server, cursor string) (*sdk.ListResourcesResult, error) {
	return use(ctx, s, server, func(ctx context.Context, conn *sdk.ClientSession) (*sdk.ListResourcesResult, error) {
		return conn.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
	})
}

// Templates lists templates of resources of a server, from a cursor on.
func (s *Set) Templates(ctx context.Context, server, cursor string) (*sdk.ListResourceTemplatesResult, error) {
	return use(ctx, s, server, func(ctx context.Context, conn *sdk.ClientSession) (*sdk.ListResourceTemplatesResult, error) {
		return conn.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
	})
}

// ReadResource reads a resource of a server.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (*sdk.ReadResourceResult, error) {
	return use(ctx, s, server, func(ctx context.Context, conn *sdk.ClientSession) (*sdk.ReadResourceResult, error) {
		return conn.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
}

// Prompts lists the prompts of a server.
func (s *Set) Prompts(ctx context.Context, server string) ([]*sdk.Prompt, error) {
	return use(ctx, s, server, listPrompts)
}

// Prompt returns a prompt of a server.
func (s *Set) Prompt(ctx context.Context, server, name string, args map[string]string) (*sdk.GetPromptResult, error) {
	return use(ctx, s, server, func(ctx context.Context, conn *sdk.ClientSession) (*sdk.GetPromptResult, error) {
		return conn.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	})
}

// fileURL returns the URL of a folder.
func fileURL(dir string) string { return (&url.URL{Scheme: "file", Path: dir}).String() }
