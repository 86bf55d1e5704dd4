package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// A Client is a program that attaches to a session: what it offers, and how it is
// reached. Two clients are the same if their addresses in memory are.
type Client struct {
	Viewer     Viewer
	Tools      []event.ExternalTool
	Permission bool // true if it can answer permission questions
	Streaming  bool // true if it wants answers in pieces
	Forms      bool // true if it can put forms to a person
	Commands   []event.Command
	// ExitPlan asks a person whether a plan may be carried out. It is nil if the
	// client cannot. An error means that there was no answer.
	ExitPlan func(ctx context.Context, id event.SessionID, q event.ExitPlanAskedData) (turn.PlanReply, error)
	// Transport makes requests to models. It is nil if the client does not.
	Transport http.RoundTripper
	// Token gives a token for a request to a provider. It is nil if the client
	// has none to give. The error is ErrLeft if the client was lost.
	Token TokenFunc
	// TokenFor is the endpoints of the providers that the client gives tokens for, by
	// the names under which it is asked. It may be asked for others as well, but never
	// for a provider of one of these names at another endpoint.
	TokenFor map[string]string
	// AskUser puts a question to a person. It is nil if the client cannot. An
	// error means that there was no answer; the question stays open.
	AskUser func(ctx context.Context, id event.SessionID, q event.UserInputAskedData) (turn.UserReply, error)
	// Remind sends open questions to the client again. It is nil if that is impossible.
	Remind func(id event.SessionID, open []Reminder)
	// Hook asks the client's hooks, and Transform lets it look over the system
	// prompt. They are nil if it does not want to.
	Hook      Hook
	Transform Transform
	// Lost tells the client that another server works on the session, and that the client is not
	// attached any more. It does not wait. It is nil if no client has to know.
	Lost func()
}

// A TokenFunc returns the token of a provider, which is only sent to the endpoint.
type TokenFunc func(ctx context.Context, id event.SessionID, provider, endpoint string) (string, error)

// Clients knows who is attached to sessions, and what they can do.
type Clients struct{ host *Host }

// ErrClash means that two clients want to carry out the same tool.
var ErrClash = errors.New("two clients carry out the same tool")

// attach adds a client to the session. Its view shows what happens after the given
// position, once CatchUp is called.
func (tx *txn) attach(c *Client, at event.Seq) (*View, error) {
	s := tx.s
	if name := s.clients.clash(c); name != "" {
		return nil, fmt.Errorf("%s already registered by another client of session %s: %w", name, s.id, ErrClash)
	}
	s.clients.remove(c)
	forms, commands := s.clients.abilities()
	a := &attachment{spec: c, from: at, since: tx.now, asked: make(map[string]bool), shown: make(map[string]bool), interest: make(map[string]event.Type)}
	if c.Viewer != nil {
		a.view = s.feed.open(c.Viewer, at)
		a.view.pieces = c.Streaming
	}
	s.clients.add(a)
	tx.sendAbilities(forms, commands)
	if err := tx.declare(c); err != nil {
		return nil, err
	}
	if c.Hook != nil {
		s.retryIdleHooks()
	}
	tx.tellParked(a.view)
	tx.afterCommit = append(tx.afterCommit, s.askOpenQuestions)
	return a.view, nil
}

// declare records that some client of this session can answer questions of these
// kinds.
func (tx *txn) declare(c *Client) error {
	d := tx.State.Setup.Declared
	d.Permission = d.Permission || c.Permission
	d.UserInput = d.UserInput || c.AskUser != nil
	d.Hooks = d.Hooks || c.Hook != nil
	d.ExitPlan = d.ExitPlan || c.ExitPlan != nil
	if d == tx.State.Setup.Declared {
		return nil
	}
	return tx.record(d)
}

// Detach takes a client away from a session; the work goes on. A client that
// vanished may come back: for a while the session still counts as attached.
func (h *Host) Detach(id event.SessionID, c *Client, vanished bool) {
	s := h.peek(id)
	if s == nil {
		return
	}
	forms, commands := s.clients.abilities()
	if !s.clients.remove(c) {
		return
	}
	until := time.Time{}
	if vanished {
		until = time.Now().Add(h.opts.Grace)
	}
	s.clients.awaitBack(c, until)
	if s.waits.Load() && s.clients.any() {
		s.remindOthers()
	}
	less := (c.Forms || len(c.Commands) > 0) && s.clients.attached()
	if !s.asks.Load() && !less {
		h.evict(s)
		return
	}
	s.post(func(tx *txn) error {
		tx.afterCommit = append(tx.afterCommit, tx.s.askOpenQuestions)
		tx.sendAbilities(forms, commands)
		if vanished {
			return nil
		}
		return tx.releaseQueuedCommand()
	})
}

func sameTools(a, b []event.ExternalTool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if !sameJSON(x.Parameters, y.Parameters) {
			return false
		}
		x.Parameters, y.Parameters = nil, nil
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// sameJSON compares two texts that may be written differently.
func sameJSON(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Attach adds a client to a session, and records only which questions it can answer.
// Its view shows what happens after the given position. It was attached to an engine
// before this one, so that it has the questions that are open.
func (h *Host) Attach(ctx context.Context, id event.SessionID, c *Client, at event.Seq) (*View, error) {
	var view *View
	err := h.attachClient(ctx, id, c, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		if view, err = tx.attach(c, at); err == nil {
			tx.s.clients.change(c, func(a *attachment) { a.from, a.since = 0, time.Time{} })
		}
		return err
	})
	return view, err
}

// attachClient carries out an intent that attaches a client, if there is one. It does
// not stop waiting when ctx is done: a client that is told of a failure must not be
// attached.
func (h *Host) attachClient(ctx context.Context, id event.SessionID, c *Client, f func(*txn) error) error {
	err := h.changeAny(context.WithoutCancel(ctx), id, f)
	if err != nil && c != nil {
		h.Detach(id, c, false)
	}
	return err
}

// AddInterest remembers that a client looks after events of a kind, until the
// interest is removed or the client leaves. The caller sends it the open questions that
// are shown, so that nobody else does.
func (cs Clients) AddInterest(id event.SessionID, c *Client, handle string, kind event.Type, shown []Reminder) {
	if s := cs.host.peek(id); s != nil {
		s.clients.change(c, func(a *attachment) {
			a.interest[handle] = kind
			a.show(shown)
		})
	}
	if kind == event.MCPAuthAsked {
		cs.host.MCP.AskAgain(id)
	}
}

// AddTokens adds providers to those that a client gives tokens for. The endpoints are
// by the names under which the client is asked.
func (cs Clients) AddTokens(id event.SessionID, c *Client, endpoints map[string]string, token TokenFunc) {
	if s := cs.host.peek(id); s != nil {
		s.clients.addTokens(c, endpoints, token)
	}
}

// RemoveInterest removes an interest. If nobody looks after the queue any more, a
// queued command that waits is carried out in the ordinary way.
func (cs Clients) RemoveInterest(id event.SessionID, c *Client, handle string) {
	s := cs.host.peek(id)
	if s == nil {
		return
	}
	s.clients.change(c, func(a *attachment) { delete(a.interest, handle) })
	if s.asks.Load() {
		s.post((*txn).releaseQueuedCommand)
	}
}

// Abilities tells what the clients of a session can do together: whether they can put
// a form to a person, and which commands they carry out.
func (cs Clients) Abilities(id event.SessionID) (forms bool, commands []event.Command) {
	if s := cs.host.peek(id); s != nil {
		return s.clients.abilities()
	}
	return false, nil
}

// InUse reports whether a session has clients, or had one a moment ago.
func (cs Clients) InUse(id event.SessionID) bool {
	s := cs.host.peek(id)
	return s != nil && s.clients.attached()
}

// Follow shows a viewer what happens after a position, without making it a client.
// The returned function ends the view.
func (cs Clients) Follow(ctx context.Context, id event.SessionID, at event.Seq, viewer Viewer) (*View, func(), error) {
	var view *View
	var s *Session
	follow := func(tx *txn) error {
		s = tx.s
		view = s.feed.open(viewer, at)
		view.pieces = true
		return nil
	}
	var err error
	shared := cs.host.isShared()
	if shared { // who is to see what happens is at the server that works on the session
		err = cs.host.maintained(ctx, id, follow)
	}
	if !shared || errors.Is(err, eventlog.ErrNotOwner) { // what has happened can be read here
		err = cs.host.inspect(ctx, id, follow)
	}
	if err != nil {
		return nil, nil, err
	}
	return view, func() { view.Close(); cs.host.evict(s) }, nil
}

// sendAbilities tells the clients what has changed in what they can do together.
func (tx *txn) sendAbilities(forms bool, commands []event.Command) {
	can, has := tx.s.clients.abilities()
	if can != forms {
		var d event.CapabilitiesChangedData
		d.UI.Elicitation = can
		tx.send(d)
	}
	if !slices.Equal(has, commands) {
		tx.send(event.CommandsChangedData{Commands: notNil(has)})
	}
}
