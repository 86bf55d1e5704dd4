package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// A Client is somebody who attaches to a session: what it offers, and how it is
// reached. It is identified by its address.
type Client struct {
	Viewer     Viewer
	Tools      []event.ExternalTool
	Permission bool // it can answer permission questions
	Streaming  bool // it wants answers in pieces
	Forms      bool // it can put forms to a person
	Commands   []event.Command
	// ExitPlan asks a person whether a plan may be carried out. It is nil if the
	// client cannot. An error means that there was no answer.
	ExitPlan func(ctx context.Context, id event.SessionID, q event.ExitPlanAskedData) (turn.PlanReply, error)
	// Transport makes requests to models. It is nil if the client does not.
	Transport http.RoundTripper
	// Token gives a token for a request to a provider. It is nil if the client
	// has none to give. The error is ErrLeft if the client was lost.
	Token func(ctx context.Context, id event.SessionID, provider string) (string, error)
	// AskUser puts a question to a person. It is nil if the client cannot. An
	// error means that there was no answer; the question stays open.
	AskUser func(ctx context.Context, id event.SessionID, q event.UserInputAskedData) (turn.UserReply, error)
	// Hook asks the client's hooks, and Transform lets it look over the system
	// prompt. They are nil if it does not want to.
	Hook      Hook
	Transform Transform
}

// Clients knows who is attached to sessions, and what they can do.
type Clients struct{ host *Host }

// An attachment is a client of a session.
type attachment struct {
	spec  *Client
	view  *View
	asked map[string]bool // questions that were put to it
	gone  bool            // it did not answer because it is gone

	interest map[string]event.Type // what it looks after, by handle
}

// clients are those who are attached to a session.
type clients struct {
	mu      sync.Mutex
	list    []*attachment
	grace   time.Time     // until then the session counts as attached
	arrived chan struct{} // closed when a client comes; nil if nobody waits
	missed  time.Time     // until then hooks wait for a client that vanished
}

// clash returns the name of a tool that a client brings and another one carries out
// already; empty if there is none.
func (cs *clients) clash(c *Client) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, other := range cs.list {
		if name := commonTool(c.Tools, other.spec.Tools); name != "" && !sameClient(other.spec, c) {
			return name
		}
	}
	return ""
}

func (cs *clients) add(a *attachment) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = append(cs.list, a)
	cs.arriveLocked()
}

// removeAll lets go of everyone.
func (cs *clients) removeAll() {
	cs.mu.Lock()
	list := cs.list
	cs.list, cs.grace = nil, time.Time{}
	cs.mu.Unlock()
	for _, a := range list {
		if a.view != nil {
			a.view.Close()
		}
	}
}

// awaitBack lets the session count as attached for a while, because a client vanished.
// The zero time ends that.
func (cs *clients) awaitBack(c *Client, until time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.grace = until
	if c.Hook != nil && !until.IsZero() {
		cs.missed = until
	}
}

// miss remembers that a client that has hooks vanished, and until when it is awaited.
func (cs *clients) miss(a *attachment, until time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	a.gone = true
	cs.missed = until
}

// missedUntil returns until when hooks wait for a client that vanished.
func (cs *clients) missedUntil() time.Time {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.missed
}

// any reports whether somebody is attached.
func (cs *clients) any() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) > 0
}

// change lets f change what is known of a client, if it is attached.
func (cs *clients) change(c *Client, f func(*attachment)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if a.spec == c {
			f(a)
		}
	}
}

// ErrClash means that two clients want to carry out the same tool.
var ErrClash = errors.New("two clients carry out the same tool")

// attach makes a client part of the session. It is shown what happens after the
// given position, once its view is told to catch up.
func (tx *txn) attach(c *Client, at event.Seq) (*View, error) {
	s := tx.s
	if name := s.clients.clash(c); name != "" {
		return nil, fmt.Errorf("%s already registered by another client of session %s: %w", name, s.id, ErrClash)
	}
	s.clients.remove(c)
	forms, commands := s.clients.abilities()
	a := &attachment{spec: c, asked: make(map[string]bool), interest: make(map[string]event.Type)}
	if c.Viewer != nil {
		a.view = s.feed.open(c.Viewer, at)
		a.view.pieces = c.Streaming
	}
	s.clients.add(a)
	tx.tellAbilities(forms, commands)
	if err := tx.declare(c); err != nil {
		return nil, err
	}
	if c.Hook != nil {
		s.hearAgain()
	}
	tx.then = append(tx.then, s.askAgain)
	return a.view, nil
}

// sameClient reports whether two clients are the same connection: one that
// attaches again replaces itself.
func sameClient(a, b *Client) bool { return a == b || (a.Viewer != nil && a.Viewer == b.Viewer) }

// declare remembers that some client of this session can answer.
func (tx *txn) declare(c *Client) error {
	d := tx.State.Setup.Declared
	d.Permission = d.Permission || c.Permission
	d.UserInput = d.UserInput || c.AskUser != nil
	d.Hooks = d.Hooks || c.Hook != nil
	d.ExitPlan = d.ExitPlan || c.ExitPlan != nil
	if d == tx.State.Setup.Declared {
		return nil
	}
	return tx.Record(d)
}

func commonTool(a, b []event.ExternalTool) string {
	for _, x := range a {
		for _, y := range b {
			if x.Name == y.Name {
				return x.Name
			}
		}
	}
	return ""
}

// remove removes a client and reports whether it was there.
func (cs *clients) remove(c *Client) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for i, a := range cs.list {
		if a.spec == c {
			cs.list = append(cs.list[:i:i], cs.list[i+1:]...)
			if a.view != nil {
				a.view.Close()
			}
			return true
		}
	}
	return false
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
	less := (c.Forms || len(c.Commands) > 0) && s.clients.attached()
	if !s.asks.Load() && !less {
		h.forget(s)
		return
	}
	s.post(func(tx *txn) error {
		tx.then = append(tx.then, tx.s.askAgain)
		tx.tellAbilities(forms, commands)
		if vanished {
			return nil
		}
		return tx.unattended()
	})
}

// attached reports whether the session has clients, or had one a moment ago.
func (cs *clients) attached() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) > 0 || time.Now().Before(cs.grace)
}

// streaming reports whether some client wants answers in pieces.
func (cs *clients) streaming() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if a.spec.Streaming {
			return true
		}
	}
	return false
}

// askAgain puts open questions that no attached client has in hand to one that
// can put them to a person.
func (s *Session) askAgain() {
	for _, c := range s.state.Questions() {
		if !s.clients.haveInHand(c.Question) {
			s.askPerson(c)
			s.askPlan(c)
		}
	}
}

func (cs *clients) haveInHand(requestID string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if a.asked[requestID] {
			return true
		}
	}
	return false
}

// tools returns the tools of all clients that are attached, added to
// those given. It reports false if nobody is attached: then the tools stay as
// they were declared.
func (cs *clients) tools(kept []event.ExternalTool) ([]event.ExternalTool, bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	tools := append([]event.ExternalTool{}, kept...)
	for _, a := range cs.list {
		for _, t := range a.spec.Tools {
			tools = withTool(tools, t)
		}
	}
	return tools, len(cs.list) > 0
}

// withTool adds a tool, or replaces the one of the same name.
func withTool(tools []event.ExternalTool, t event.ExternalTool) []event.ExternalTool {
	for i := range tools {
		if tools[i].Name == t.Name {
			tools[i] = t
			return tools
		}
	}
	return append(tools, t)
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
