package rpc

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
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
			params := slices.Concat(c.opening(nil, id, e), e.Bytes, closing)
			if c.rpc.Notify(api.SessionEvent, json.RawMessage(params)) != nil {
				return // the connection is over
			}
		}
	}
}

// Event shows an event to the client, now or when it may come.
func (c *conn) Event(id event.SessionID, e event.Event) bool {
	e = mended(e)
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
	if c.tell(id, e) {
		return true
	}
	c.stall()
	return false
}

// tell is called with holding locked, which guards the scratch as well.
func (c *conn) tell(id event.SessionID, e event.Event) bool {
	c.scratch = c.opening(c.scratch[:0], id, e)
	if p, ok := piece(id, e, c.scratch); ok {
		c.scratch = p.Head
		return c.rpc.TryPiece(api.SessionEvent, p)
	}
	return c.rpc.TryNotify(api.SessionEvent, c.scratch, e.Bytes, closing)
}

// trailer follows the text of a piece: the end of the event, and of the params.
var trailer = []byte(event.PieceEnd + "}")

// piece returns an event that is a piece of a text as the connection joins it.
func piece(id event.SessionID, e event.Event, head []byte) (jsonrpc.Piece, bool) {
	p, ok := e.CutPiece()
	if !ok {
		return jsonrpc.Piece{}, false
	}
	return jsonrpc.Piece{Lane: string(id), Stream: p.Stream, Head: append(head, p.Head...), Text: p.Text, Tail: trailer}, true
}

// opening is what a client is told before the bytes of an event, which are those
// that are stored. The closing comes after them.
func (c *conn) opening(dst []byte, id event.SessionID, e event.Event) []byte {
	dst = append(dst, `{"sessionId":`...)
	dst = appendString(dst, string(id))
	if (c.door.Private || c.door.Positions) && e.Seq > 0 {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendInt(dst, int64(e.Seq), 10)
	}
	return append(dst, `,"event":`...)
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
	if !c.hears(n) {
		return
	}
	if b := c.server.notices.encode(n); b != nil {
		c.rpc.TryNotify(api.SessionLifecycle, b)
	}
}

// hears reports whether the client is told of a change. One that is attached sees
// what happens during a turn; it is told again when the turn is over.
func (c *conn) hears(n session.Notice) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := n.Session.Info.Active && c.sessions[n.Session.ID] != nil
	return c.admitted && !seen
}

// notices encodes each notice once, however many clients are told of it one after
// the other.
type notices struct {
	mu    sync.Mutex
	last  session.Notice
	bytes []byte
}

// same reports whether two notices are of the same change: an end of a log is
// reached once.
func same(a, b session.Notice) bool {
	return a.Kind == b.Kind && a.Session.ID == b.Session.ID && a.Session.End == b.Session.End
}

func (s *notices) encode(n session.Notice) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if same(n, s.last) {
		return s.bytes
	}
	p := api.LifecycleParams{Type: n.Kind, SessionID: n.Session.ID}
	if n.Kind != session.Deleted {
		p.Metadata = &api.LifecycleMetadata{
			StartTime: event.FormatTime(n.Session.Created), ModifiedTime: event.FormatTime(n.Session.Modified), Summary: n.Session.Info.Summary,
		}
	}
	s.last = n
	s.bytes, _ = json.Marshal(p) // it has nothing that cannot be encoded
	return s.bytes
}
