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
	"github.com/abide-run/abide/internal/turn"
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

// offerOpen sends open questions again to a client that resumes a session with its pending
// work: those that no client has been sent. Some programs answer by the ids that they have
// stored, after the session was resumed, and have a handler that meanwhile answers every
// question with "nobody is available". Such an answer does not count yet: see undecided.
func (c *conn) offerOpen(ctx context.Context, p api.OpenParams, client *session.Client) error {
	if p.ContinuePending == nil || !*p.ContinuePending || p.Abide != nil && p.Abide.Redeliver {
		return nil
	}
	open, err := c.server.host.Questions.Remind(ctx, p.SessionID, client)
	if err != nil {
		return noSession(p.SessionID, err)
	}
	c.sendAgain(p.SessionID, open)
	return nil
}

// offerUnseen sends open questions to a client that has sent a message, if the message would
// wait behind them: those that no client has been sent. From then on, the answer "nobody is
// available" counts, because otherwise the message would wait for ever.
func (c *conn) offerUnseen(ctx context.Context, id event.SessionID) {
	here := c.attachedTo(id)
	if here == nil || !c.server.host.Questions.Waiting(id) {
		return
	}
	c.server.host.Questions.CountAnswers(id)
	open, err := c.server.host.Questions.Remind(ctx, id, here.client)
	if err != nil {
		c.server.log.Error("open questions could not be sent again", "session", id, "err", err)
	}
	c.sendAgain(id, open)
}

// undecided reports whether an answer says only that nobody is available, and the question
// was sent again by offerOpen. Such a question stays open. If a message later waits behind
// it, offerUnseen sends it once more, and then the answer counts.
func (c *conn) undecided(id event.SessionID, requestID string, d turn.Decision) bool {
	here := c.attachedTo(id)
	return d.Kind == turn.UserNotAvailable && here != nil && c.server.host.Questions.Unremind(id, here.client, requestID)
}

// remind puts open questions to this client again, each marked with its attempt.
// It has them before the answer to the request that wants them: if that is lost,
// the request is made again.
func (c *conn) remind(ctx context.Context, id event.SessionID, open []session.Reminder) error {
	if len(open) == 0 {
		return nil
	}
	again, err := c.server.host.Questions.Redeliver(ctx, id, open)
	c.sendAgain(id, again)
	return noSession(id, err)
}

// sendAgain sends open questions to this client again, each marked with its attempt.
func (c *conn) sendAgain(id event.SessionID, again []session.Reminder) {
	for _, r := range again {
		e := event.Event{Type: r.Asked.Type, Bytes: marked(r.Asked.Bytes, r.Attempt)}
		if c.rpc.Notify(api.SessionEvent, json.RawMessage(slices.Concat(c.opening(nil, id, e), e.Bytes, closing))) != nil {
			return // the connection is over
		}
	}
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
