package turn

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/event"
)

// Keys is the last requests that came with idempotency keys.
type Keys struct {
	sent recent // requests that made something
	won  recent // answers that closed a question
}

// recent is a list of requests, the oldest first. It is kept for clients that lost
// the reply to a request and send it again.
type recent []event.Request

// maxRecent is how many requests are remembered. It is more than a client has under
// way at a time.
const maxRecent = 64

func (r *recent) add(q event.Request) {
	if *r = append(*r, q); len(*r) > maxRecent {
		*r = append((*r)[:0:0], (*r)[1:]...)
	}
}

// Sent returns the id of what the request with that key has made: the id of an input,
// or the position of a resume. It is empty if no such request is remembered.
func (s *State) Sent(key string) string {
	for _, k := range s.Keys.sent {
		if key != "" && k.Key == key {
			return k.ID
		}
	}
	return ""
}

// Resumed returns the position of the session.resume that came with that key, or zero
// if none is remembered.
func (s *State) Resumed(key string) event.Seq {
	n, _ := strconv.ParseInt(s.Sent(key), 10, 64) // n is zero for the id of anything else
	return event.Seq(n)
}

// Won reports whether the answer that closed a question came with that key. Only the
// last answers are remembered.
func (s *State) Won(requestID, key string) bool {
	for _, k := range s.Keys.won {
		if key != "" && k.Key == key && k.ID == requestID {
			return true
		}
	}
	return false
}

func (k *Keys) fold(e event.Event, body event.Payload) {
	if q := requestOf(e, body); q.Key != "" {
		k.listFor(e).add(q)
	}
}

// load finds the requests that folding the events would remember. It reads the log
// backwards and stops when it has as many as are remembered.
func (k *Keys) load(events []event.Event) error {
	for _, e := range slices.Backward(events) {
		if len(k.sent) == maxRecent && len(k.won) == maxRecent {
			break
		}
		if !e.Kind().Keyed || len(*k.listFor(e)) == maxRecent || !e.Mentions("key") {
			continue
		}
		body, err := e.Body()
		if err != nil {
			return err
		}
		if q := requestOf(e, body); q.Key != "" {
			*k.listFor(e) = append(*k.listFor(e), q)
		}
	}
	slices.Reverse(k.sent)
	slices.Reverse(k.won)
	return nil
}

// listFor returns the list in which the request of an event is remembered.
func (k *Keys) listFor(e event.Event) *recent {
	if e.Type.Closes() {
		return &k.won
	}
	return &k.sent
}

// requestOf returns the request that an event records. Its key is empty if the kind of
// the event carries none.
func requestOf(e event.Event, body event.Payload) event.Request {
	r, ok := body.(event.Requester)
	if !ok || !e.Kind().Keyed {
		return event.Request{}
	}
	q := r.Request()
	q.ID = cmp.Or(q.ID, strconv.FormatInt(int64(e.Seq), 10))
	return q
}
