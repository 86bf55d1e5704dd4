package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// A Pool is the programs that sessions share because their configuration says so and is the same,
// as are the folder and the environment in which they run. A program ends when no session uses
// it, and with the engine. It is not told of whom it serves: it cannot ask a person, and does not
// know where a session works.
type Pool struct {
	mu   sync.Mutex
	open map[string]*sharedServer
}

// A sharedServer is a program that sessions share.
type sharedServer struct {
	set *Set

	mu    sync.Mutex
	users map[*client]bool
}

// SharedSession is how the ids begin that stand for no session: their programs are shared.
const SharedSession = "shared-"

// isShared reports whether a server is one that sessions share.
func (c *client) isShared() bool {
	return c.config.Shared && c.config.Type == Stdio && c.set.in.Local && c.set.opts.Shared != nil
}

// sharedKey returns what sessions that share a server have in common.
func (c *client) sharedKey() string {
	config := c.config
	config.Disabled = false
	text, err := json.Marshal([]any{config.MCPServer, config.Secret, c.set.in.Dir, c.set.in.Env, c.set.in.Sealed})
	if err != nil { // texts and numbers
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// use uses a shared server for a client until ctx ends.
func (p *Pool) use(ctx context.Context, c *client) {
	key := c.sharedKey()
	p.mu.Lock()
	s := p.open[key]
	if s == nil {
		s = &sharedServer{users: make(map[*client]bool)}
		config := c.config
		config.Shared = false
		opts := c.set.opts
		opts.State, opts.Shared = nil, nil
		s.set = Open(opts, Surroundings{Session: event.SessionID(SharedSession + key), Dir: c.set.in.Dir, Env: c.set.in.Env, Sealed: c.set.in.Sealed, Shared: true},
			[]Server{config}, Events{Status: s.tellStatus, Changed: s.tellLists})
		if p.open == nil {
			p.open = make(map[string]*sharedServer)
		}
		p.open[key] = s
	}
	s.mu.Lock()
	s.users[c] = true
	s.mu.Unlock()
	p.mu.Unlock()
	if inner, err := s.set.client(c.config.Name); err == nil {
		c.mu.Lock()
		c.inner = inner
		c.mu.Unlock()
		s.tellLists(c.config.Name, "")
		now := inner.snapshot()
		c.setStatus(now.Status, now.Error)
	}
	<-ctx.Done()
	c.mu.Lock()
	c.inner = nil
	c.mu.Unlock()
	p.mu.Lock()
	s.mu.Lock()
	delete(s.users, c)
	last := len(s.users) == 0
	s.mu.Unlock()
	if last {
		delete(p.open, key)
	}
	p.mu.Unlock()
	if last {
		s.set.Close()
	}
}

// each calls f for each client that uses the server.
func (s *sharedServer) each(f func(*client)) {
	s.mu.Lock()
	var users []*client
	for c := range s.users {
		users = append(users, c)
	}
	s.mu.Unlock()
	for _, c := range users {
		f(c)
	}
}

func (s *sharedServer) tellStatus(_ string, to Status, why string) {
	s.each(func(c *client) { c.setStatus(to, why) })
}

func (s *sharedServer) tellLists(server string, _ event.Type) {
	s.each(func(c *client) {
		c.mu.Lock()
		inner := c.inner
		c.mu.Unlock()
		if inner != nil {
			now := inner.snapshot()
			c.setLists(lists{Tools: now.Tools, Prompts: now.Prompts})
		}
	})
}

// shares returns the client of the shared server; nil if it is not shared.
func (c *client) shares() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner
}
