package turn

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/event"
)

// Keys remembers the requests that came with idempotency keys.
type Keys struct{ sent, won recent }

// recent remembers the idempotency keys of the last requests, for clients that
// lost the reply and ask again.
type recent []event.Request

// maxRecent is how many requests are remembered: more than a client has under
// way at a time.
const maxRecent = 64

func (r *recent) add(q event.Request) {
	if *r = append(*r, q); len(*r) > maxRecent {
		*r = append((*r)[:0:0], (*r)[1:]...)
	}
}

// Sent returns what identifies the request that came with a key, if it came
// lately: the id of an input, the position of a resume.
func (s *State) Sent(key string) string {
	for _, k := range s.Keys.sent {
		if key != "" && k.Key == key {
			return k.ID
		}
	}
	return ""
}

// Resumed returns the position of the session.resume that came with a key, and
// zero if none came lately.
func (s *State) Resumed(key string) event.Seq {
	n, _ := strconv.ParseInt(s.Sent(key), 10, 64) // zero for anything else
	return event.Seq(n)
}

// Won reports whether the answer that closed a question lately came with that
// key.
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

// load remembers the keys that folding the events would remember. It reads
// backwards, until no older key would still be remembered.
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

// listFor is where the request is remembered that an event records.
func (k *Keys) listFor(e event.Event) *recent {
	if e.Type.Closes() {
		return &k.won
	}
	return &k.sent
}

// requestOf is the request that an event records. It has no key if the event is of
// a kind that carries none.
func requestOf(e event.Event, body event.Payload) event.Request {
	r, ok := body.(event.Requester)
	if !ok || !e.Kind().Keyed {
		return event.Request{}
	}
	q := r.Request()
	q.ID = cmp.Or(q.ID, strconv.FormatInt(int64(e.Seq), 10))
	return q
}
