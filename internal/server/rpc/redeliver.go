package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// unanswered is what a client that comes back wants to be asked again: all that
// is open now. What is asked later it sees anyway.
func (c *conn) unanswered(ctx context.Context, p api.OpenParams) []session.Reminder {
	if p.Abide == nil || !p.Abide.Redeliver {
		return nil
	}
	open, err := c.server.host.Questions.Open(ctx, p.SessionID, event.Type.Question)
	if err != nil {
		return nil // the request itself says what is wrong
	}
	return open
}

// remind puts open questions to this client again, each marked with its attempt.
// It has them before the answer to the request that wants them: if that is lost,
// the request is made again.
func (c *conn) remind(ctx context.Context, id event.SessionID, open []session.Reminder) error {
	if len(open) == 0 {
		return nil
	}
	again, err := c.server.host.Questions.Redeliver(ctx, id, open)
	for _, r := range again {
		e := event.Event{Type: r.Asked.Type, Bytes: marked(r.Asked.Bytes, r.Attempt)}
		if c.rpc.Notify(api.SessionEvent, json.RawMessage(slices.Concat(c.opening(nil, id, e), e.Bytes, closing))) != nil {
			return nil // the connection is over
		}
	}
	return noSession(id, err)
}

// marked adds an attempt to what an event says. Its head has no such words.
func marked(envelope []byte, attempt int) []byte {
	const body = `,"data":{`
	head, rest, found := bytes.Cut(envelope, []byte(body))
	if !found {
		return envelope
	}
	b := append(bytes.Clone(head), body+`"attempt":`...)
	b = strconv.AppendInt(b, int64(attempt), 10)
	return append(append(b, ','), rest...)
}
