package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
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

// ErrClash means that two clients want to carry out the same tool.
var ErrClash = errors.New("two clients carry out the same tool")

// attach makes a client part of the session. It is shown what happens after the
// given position, once its view is told to catch up.
func (tx *txn) attach(c *Client, at event.Seq) (*View, error) {
	s := tx.s
	for _, other := range s.clients {
		if name := commonTool(c.Tools, other.spec.Tools); name != "" && !sameClient(other.spec, c) {
			return nil, fmt.Errorf("%s already registered by another client of session %s: %w", name, s.id, ErrClash)
		}
	}
	s.detach(c)
	forms, commands := s.abilities()
	a := &attachment{spec: c, asked: make(map[string]bool), interest: make(map[string]event.Type)}
	if c.Viewer != nil {
		a.view = s.feed.open(c.Viewer, at)
		a.view.pieces = c.Streaming
	}
	s.mu.Lock()
	s.clients = append(s.clients, a)
	s.arriveLocked()
	s.mu.Unlock()
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

// detach removes a client and reports whether it was there.
func (s *Session) detach(c *Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.clients {
		if a.spec == c {
			s.clients = append(s.clients[:i:i], s.clients[i+1:]...)
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
	forms, commands := s.abilities()
	if !s.detach(c) {
		return
	}
	s.mu.Lock()
	s.grace = time.Time{}
	if vanished {
		s.grace = time.Now().Add(h.opts.Grace)
		if c.Hook != nil {
			s.missed = s.grace
		}
	}
	s.mu.Unlock()
	less := (c.Forms || len(c.Commands) > 0) && s.attached()
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
func (s *Session) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients) > 0 || time.Now().Before(s.grace)
}

// streaming reports whether some client wants answers in pieces.
func (s *Session) streaming() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clients {
		if a.spec.Streaming {
			return true
		}
	}
	return false
}

// somebody returns a client that can put a question to a person.
func (s *Session) somebody() *attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clients {
		if a.spec.AskUser != nil {
			return a
		}
	}
	return nil
}

// askAgain puts open questions that no attached client has in hand to one that
// can put them to a person.
func (s *Session) askAgain() {
	for _, c := range s.state.Questions() {
		if !s.inHand(c.Question) {
			s.askPerson(c)
			s.askPlan(c)
		}
	}
}

func (s *Session) inHand(requestID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clients {
		if a.asked[requestID] {
			return true
		}
	}
	return false
}

// clientTools returns the tools of all clients that are attached, added to
// those given. It reports false if nobody is attached: then the tools stay as
// they were declared.
func (s *Session) clientTools(kept []event.ExternalTool) ([]event.ExternalTool, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := append([]event.ExternalTool{}, kept...)
	for _, a := range s.clients {
		for _, t := range a.spec.Tools {
			tools = withTool(tools, t)
		}
	}
	return tools, len(s.clients) > 0
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
