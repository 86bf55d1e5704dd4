package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/turn"
)

// A tokenAnswer is what a program says when it is asked for a token of an MCP server.
type tokenAnswer struct{ token string } // empty if it gives none

// askForToken asks the programs behind a session for a token of an MCP server. It reports
// false if none of them has said that it gives tokens.
func (h *Host) askForToken(ctx context.Context, owner event.SessionID, q mcp.TokenRequest) (token string, asked bool) {
	s := h.peek(owner)
	if s == nil || !s.clients.interested(event.MCPAuthAsked) {
		return "", false
	}
	data := event.MCPAuthAskedData{
		RequestID: event.NewID(), ServerName: q.Server.Name, ServerURL: q.Server.URL, Reason: q.Reason, Metadata: string(q.Metadata),
		Challenge: &event.MCPChallenge{Metadata: q.Challenge.Metadata, Scope: q.Challenge.Scope, Error: q.Challenge.Error},
	}
	if id := q.Server.OAuth.ClientID; id != "" {
		data.Client = &event.MCPAuthClient{ClientID: id}
	}
	answer := make(chan tokenAnswer, 1)
	h.mcp.mu.Lock()
	if h.mcp.tokens == nil {
		h.mcp.tokens = make(map[string]chan tokenAnswer)
	}
	h.mcp.tokens[data.RequestID] = answer
	h.mcp.mu.Unlock()
	defer func() {
		h.mcp.mu.Lock()
		delete(h.mcp.tokens, data.RequestID)
		h.mcp.mu.Unlock()
		done := event.MCPAuthDoneData{RequestID: data.RequestID, Outcome: "cancelled"}
		if token != "" {
			done.Outcome = "token"
		}
		h.tellMCP(owner, done)
	}()
	h.tellMCP(owner, data)
	select {
	case a := <-answer:
		return a.token, true
	case <-ctx.Done():
		return "", true
	}
}

// GiveToken answers the request for a token of an MCP server; the token is empty if there is
// none. It reports whether this answer came first.
func (m MCP) GiveToken(requestID, token string) bool {
	h := m.host
	h.mcp.mu.Lock()
	defer h.mcp.mu.Unlock()
	answer := h.mcp.tokens[requestID]
	if answer == nil {
		return false
	}
	delete(h.mcp.tokens, requestID)
	answer <- tokenAnswer{token}
	return true
}

// AskAgain tries the servers of a session again that want a login.
func (m MCP) AskAgain(id event.SessionID) {
	m.host.mcp.mu.Lock()
	open := m.host.mcp.open[id]
	m.host.mcp.mu.Unlock()
	if open != nil {
		open.AskAgain()
	}
}

// loginForm is the form with which a person says that a login was made.
const loginForm = `{"type":"object","properties":{"url":{"type":"string","format":"password","title":"Address",` +
	`"description":"The address to which your browser was sent after the login; empty if you have logged in with abide mcp login."}}}`

// loginMessage returns the question for a login. The address that a person opens is not in
// it: the log keeps questions for good, and the address has the state of the login.
func loginMessage(server string, more bool, failed error) string {
	text := fmt.Sprintf("The MCP server %s wants a login", server)
	if more {
		text += " with more rights"
	}
	text += fmt.Sprintf(". Log in with: abide mcp login %s", server)
	if failed != nil {
		text += fmt.Sprintf(" (the last answer was of no use: %v)", failed)
	}
	return text
}

// askForLogin tells a person that an MCP server wants a login. It is an open question of the
// session, also for later engines, until there is a login or somebody declines. It reports
// whether somebody says that the login was made.
func (h *Host) askForLogin(ctx context.Context, owner event.SessionID, server mcp.Server, more bool) bool {
	var failed error
	for {
		filled, err := h.askLoginForm(ctx, owner, server.Name, loginMessage(server.Name, more, failed))
		if err != nil || filled.Action != turn.Accept {
			return false
		}
		var content struct {
			URL string `json:"url"`
		}
		if len(filled.Content) > 0 {
			if err := json.Unmarshal(filled.Content, &content); err != nil {
				return false
			}
		}
		if strings.TrimSpace(content.URL) == "" {
			return true
		}
		if failed = h.opts.MCP.Logins.Finish(ctx, content.URL); failed == nil {
			return true
		}
	}
}

// askLoginForm puts the question for a login, or finds the one that is open, and waits for
// the answer. No turn waits for it, so it is asked whatever the clients can show: anybody
// who may can answer it.
func (h *Host) askLoginForm(ctx context.Context, owner event.SessionID, server, message string) (turn.Filled, error) {
	asked := event.ElicitationAskedData{RequestID: event.NewID(), Message: message, Schema: json.RawMessage(loginForm), Source: server}
	e, err := h.exchange(ctx, owner, func(tx *txn) (string, error) {
		for _, form := range loginForms(tx.State, server) {
			if form.Message == message {
				return form.RequestID, nil
			}
		}
		return asked.RequestID, tx.record(asked)
	}, func(s *turn.State, requestID string) []event.Payload {
		if !errors.Is(context.Cause(ctx), mcp.ErrLoggedIn) {
			return nil
		}
		record, _, _ := s.FillIn(requestID, "", turn.Filled{Action: turn.Cancel})
		return record
	})
	if err != nil {
		return turn.Filled{}, err
	}
	done, err := event.As[event.ElicitationDoneData](e)
	if err != nil {
		return turn.Filled{}, err
	}
	return h.get(owner).filled(ctx, asked, done)
}

// loginForms returns the open questions for a login to a server.
func loginForms(s *turn.State, server string) (list []event.ElicitationAskedData) {
	for _, form := range s.Exchanges.Forms() {
		d, err := event.As[event.ElicitationAskedData](form.Asked)
		if err == nil && d.Source == server && string(d.Schema) == loginForm {
			list = append(list, d)
		}
	}
	return list
}

// closeLoginForms closes the questions for a login to a server that takes connections: it
// was made elsewhere, or while no engine was there.
func (h *Host) closeLoginForms(owner event.SessionID, server string) {
	s := h.peek(owner)
	if s == nil {
		return
	}
	s.post(func(tx *txn) error {
		for _, form := range loginForms(tx.State, server) {
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

// errNoLogins means that no logins are kept.
var errNoLogins = errors.New("logins to MCP servers are not kept here")

// Logins returns the logins to MCP servers.
func (m MCP) Logins() (*mcp.Logins, error) {
	if m.host.opts.MCP == nil || m.host.opts.MCP.Logins == nil {
		return nil, errNoLogins
	}
	return m.host.opts.MCP.Logins, nil
}

// Login begins a login to a server of a session, and returns the address that a person
// opens; empty if none is needed.
func (m MCP) Login(ctx context.Context, id event.SessionID, server string, again bool) (string, error) {
	logins, err := m.Logins()
	if err != nil {
		return "", err
	}
	set, err := m.set(ctx, id)
	if err != nil {
		return "", err
	}
	state, err := set.Get(server)
	if err != nil {
		return "", err
	}
	if state.Status == mcp.Connected && !again {
		return "", nil
	}
	env, err := m.host.get(id).environment(ctx)
	if err != nil {
		return "", err
	}
	config, err := state.Server.Expanded(env)
	if err != nil {
		return "", err
	}
	if again {
		if err := logins.Forget(config); err != nil {
			return "", err
		}
	}
	return logins.Begin(ctx, config)
}

// loginFailure returns the result of a call that was refused because a login is needed.
func loginFailure(t event.MCPTool, e *mcp.LoginWanted) string {
	return fmt.Sprintf("The call of %s was refused, and nothing was done: %v. Tell the user; when they have logged in, make the call again.", cmp.Or(t.Name, t.Tool), e)
}
