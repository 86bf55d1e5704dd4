package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// maxHeld is how many events wait for the answer that they must not overtake.
// Beyond it, what is stored is read from the log when the answer is out.
const maxHeld = 256

// hold keeps the events of a session back until the answer to the request that
// opened it is out.
func (c *conn) hold(id event.SessionID) {
	c.holding.Lock()
	defer c.holding.Unlock()
	c.held[id] = []event.Event{}
}

// release lets the events go that were kept back, in order: those that arrive
// meanwhile wait behind them.
func (c *conn) release(id event.SessionID) {
	for {
		c.holding.Lock()
		held := c.held[id]
		if len(held) == 0 {
			delete(c.held, id)
			c.holding.Unlock()
			return
		}
		c.held[id] = nil
		c.holding.Unlock()
		for _, e := range held {
			if c.rpc.Notify(api.SessionEvent, json.RawMessage(bytes.Join(c.params(id, e), nil))) != nil {
				return // the connection is over
			}
		}
	}
}

// Event shows an event to the client, now or when it may come.
func (c *conn) Event(id event.SessionID, e event.Event) bool {
	c.holding.Lock()
	defer c.holding.Unlock()
	held, holding := c.held[id]
	if !holding {
		return c.show(id, e)
	}
	if len(held) == maxHeld {
		c.stall()
		return false
	}
	c.held[id] = append(held, e)
	return true
}

// show sends an event to the client.
func (c *conn) show(id event.SessionID, e event.Event) bool {
	if c.rpc.TryNotify(api.SessionEvent, c.params(id, e)...) {
		return true
	}
	c.stall()
	return false
}

// params are what a client is told of an event. The bytes are those that are
// stored.
func (c *conn) params(id event.SessionID, e event.Event) [][]byte {
	head := append(make([]byte, 0, 96), `{"sessionId":`...)
	head = appendString(head, string(id))
	if c.door.Private && e.Seq > 0 {
		head = append(head, `,"seq":`...)
		head = strconv.AppendInt(head, int64(e.Seq), 10)
	}
	return [][]byte{append(head, `,"event":`...), e.Bytes, closing}
}

var closing = []byte{'}'}

// stall remembers that the client missed something.
func (c *conn) stall() {
	select {
	case c.stalled <- struct{}{}:
	default:
	}
}

// appendString writes a JSON string. Ids are plain nearly always.
func appendString(dst []byte, s string) []byte {
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r > '~' {
			b, _ := json.Marshal(s) // a string can always be encoded
			return append(dst, b...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// refill shows a slow client what it missed, each time it has room again.
func (c *conn) refill(ctx context.Context) {
	for {
		select {
		case <-c.stalled:
		case <-ctx.Done():
			return
		}
		select {
		case <-c.rpc.Drained():
		case <-ctx.Done():
			return
		}
		for _, v := range c.views() {
			if err := v.CatchUp(ctx); err != nil && ctx.Err() == nil {
				c.server.log.Error("a client could not be shown what it missed", "err", err)
			}
		}
	}
}

func (c *conn) views() []*session.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*session.View
	for _, a := range c.sessions {
		list = append(list, a.view)
	}
	return list
}

// lifecycle tells the client of changes in the list of sessions. It is a hint:
// a client without room for it can ask for the list.
func (c *conn) lifecycle(n session.Notice) {
	if !c.ready() {
		return
	}
	p := api.LifecycleParams{Type: n.Kind, SessionID: n.Session.ID}
	if n.Kind != session.Deleted {
		p.Metadata = &api.LifecycleMetadata{
			StartTime: event.FormatTime(n.Session.Created), ModifiedTime: event.FormatTime(n.Session.Modified), Summary: n.Session.Info.Summary,
		}
	}
	if b, err := json.Marshal(p); err == nil {
		c.rpc.TryNotify(api.SessionLifecycle, b)
	}
}
