package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// AskUser puts a question to a person. It is nil if the client cannot. An
	// error means that there was no answer; the question stays open.
	AskUser func(ctx context.Context, id event.SessionID, q event.UserInputAskedData) (turn.UserReply, error)
}

// An attachment is a client of a session.
type attachment struct {
	spec  *Client
	view  *View
	asked map[string]bool // questions that were put to it
}

// ErrClash means that two clients want to carry out the same tool.
var ErrClash = errors.New("two clients carry out the same tool")

// attach makes a client part of the session. It is shown what happens after the
// given position, once its view is told to catch up.
func (tx *txn) attach(c *Client, at event.Seq) (*View, error) {
	s := tx.s
	for _, other := range s.clients {
		if name := commonTool(c.Tools, other.spec.Tools); name != "" && other.spec != c {
			return nil, fmt.Errorf("%s already registered by another client of session %s: %w", name, s.id, ErrClash)
		}
	}
	s.detach(c)
	a := &attachment{spec: c, asked: make(map[string]bool)}
	if c.Viewer != nil {
		a.view = s.feed.open(c.Viewer, at)
	}
	s.mu.Lock()
	s.clients = append(s.clients, a)
	s.mu.Unlock()
	if err := tx.declare(c); err != nil {
		return nil, err
	}
	tx.then = append(tx.then, s.askAgain)
	return a.view, nil
}

// declare remembers that some client of this session can answer.
func (tx *txn) declare(c *Client) error {
	d := tx.State.Declared
	d.Permission = d.Permission || c.Permission
	d.UserInput = d.UserInput || c.AskUser != nil
	if d == tx.State.Declared {
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
	if s == nil || !s.detach(c) {
		return
	}
	s.mu.Lock()
	s.grace = time.Time{}
	if vanished {
		s.grace = time.Now().Add(h.opts.Grace)
	}
	s.mu.Unlock()
	if s.asks.Load() {
		s.post(func(tx *txn) error { tx.then = append(tx.then, tx.s.askAgain); return nil })
		return
	}
	h.forget(s)
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
		if c.Stage == turn.WaitingUser && !s.inHand(c.Question) {
			s.askPerson(c)
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
