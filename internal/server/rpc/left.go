package rpc

import (
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// maxLeft is how many sessions a connection remembers to have left.
const maxLeft = 1024

// leave remembers that the client is done with a session: until it comes back
// there is no such session for it, unless somebody else is there.
func (c *conn) leave(id event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) >= maxLeft {
		clear(c.left)
	}
	c.left[id] = true
}

// back forgets that the client has left a session.
func (c *conn) back(id event.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.left, id)
}

// gone says that there is no such session, if a request is about one that the
// client has left.
func (c *conn) gone(req *jsonrpc.Request) error {
	if !scoped(req.Method) || !c.leftAny() {
		return nil
	}
	id := sessionOf(req.Params)
	c.mu.Lock()
	left := c.left[id]
	c.mu.Unlock()
	if !left || c.server.host.Clients.InUse(id) {
		return nil
	}
	if req.Method == api.SessionGetMessages {
		return said("Session not found: %s", id)
	}
	return said("Session not found for sessionId: %s", id)
}

// sessionOf finds the session that a request is about, without decoding the rest
// of it. It is empty if there is none.
func sessionOf(params json.RawMessage) (id event.SessionID) {
	for name, value := range jsonrpc.Members(params) {
		if string(name) == "sessionId" {
			id = event.SessionID(jsonrpc.Text(value))
		}
	}
	return id
}

func (c *conn) leftAny() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.left) > 0
}

// scoped reports whether a method needs a session that somebody is attached to,
// as the protocol has it. Our own do not.
func scoped(method string) bool {
	switch method {
	case api.SessionCreate, api.SessionResume, api.SessionDestroy, api.SessionDetach, api.SessionList, api.SessionDelete,
		api.SessionGetMetadata, api.SessionGetLastID, api.GetForeground, api.SetForeground:
		return false
	}
	return strings.HasPrefix(method, "session.")
}
