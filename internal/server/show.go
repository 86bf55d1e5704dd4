package server

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// Event shows an event to the client. The bytes are those that are stored.
func (c *conn) Event(id event.SessionID, e event.Event) bool {
	head := append(make([]byte, 0, 96), `{"sessionId":`...)
	head = appendString(head, string(id))
	if c.door.Private && e.Seq > 0 {
		head = append(head, `,"seq":`...)
		head = strconv.AppendInt(head, int64(e.Seq), 10)
	}
	head = append(head, `,"event":`...)
	if c.rpc.TryNotify(api.SessionEvent, head, e.Bytes, []byte{'}'}) {
		return true
	}
	select {
	case c.stalled <- struct{}{}:
	default:
	}
	return false
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
