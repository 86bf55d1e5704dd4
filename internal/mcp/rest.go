package mcp

import (
	"context"
	"errors"
	"time"
)

// errUnused means that a program was ended because nobody has used it for a while.
var errUnused = errors.New("nobody has used the server")

// remember takes over the lists of a program from the last time that it was connected. It
// reports whether they are so fresh that the program need not be started before it is used.
// With older ones nobody waits for it. A program that an earlier engine has left is gone on
// with at once.
func (c *client) remember() bool {
	if c.config.Type != Stdio || c.set.opts.Processes == nil {
		return false
	}
	if process, _, _, _, _ := c.journal.state(); process != "" {
		return false
	}
	config, err := c.config.expanded(c.set.in.Env)
	if err != nil {
		return false
	}
	l, old, ok := c.set.opts.cached(c.fingerprintOf(config))
	if !ok {
		return false
	}
	c.setLists(l)
	if !old {
		return true
	}
	c.mu.Lock()
	c.tried = true
	c.wakeLocked()
	c.mu.Unlock()
	return false
}

// rest waits until the server is wanted, and reports false if ctx ends first. The server can be
// used meanwhile.
func (c *client) rest(ctx context.Context) bool {
	c.mu.Lock()
	select {
	case <-c.kick: // somebody wants it connected
		c.mu.Unlock()
		return true
	default:
	}
	c.resting = true
	news := c.setStatusLocked(Connected, "")
	c.mu.Unlock()
	if news {
		c.set.events.Status(c.config.Name, Connected, "")
	}
	select {
	case <-c.kick:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resting = false
	return ctx.Err() == nil
}

// wake connects a server that rests or has failed.
func (c *client) wake() {
	if inner := c.shares(); inner != nil {
		inner.wake()
		return
	}
	c.mu.Lock()
	rested := c.resting
	if rested {
		c.resting, c.status, c.tried = false, Pending, false
		c.wakeLocked()
	}
	c.kickNow()
	c.mu.Unlock()
	if rested {
		c.set.events.Status(c.config.Name, Pending, "")
	}
}

// leave takes the connection out of use if nobody has used it for a while. It is used until the
// results of the calls that it was sent are stored.
func (c *client) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.uses > 0 || c.asking > 0 || time.Since(c.used) < c.config.Kept() || c.journal.unfinished() {
		return false
	}
	c.conn, c.pipe = nil, nil
	return true
}
