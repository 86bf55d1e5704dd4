package rest

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
)

const (
	keyHeader    = "Idempotency-Key"
	replayHeader = "Idempotency-Replayed"

	maxKey      = 200
	maxReplays  = 10000
	replayTime  = 24 * time.Hour
	maxReplayed = 256 << 10 // bytes of an answer that are kept
	maxKept     = 32 << 20  // bytes of all answers that are kept
)

// replays remembers the answers to writes with an idempotency key. After a restart it is
// empty: what the engine itself remembers by a key is not done twice either.
type replays struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	order list.List // of *replayed, the oldest first
	size  int       // bytes of all answers
}

// A replayed is a write under a key, and its answer when there is one.
type replayed struct {
	key     string
	request [sha256.Size]byte
	at      time.Time
	done    chan struct{} // closed when the write is over
	status  int           // zero if there is no answer to repeat
	header  http.Header
	body    []byte
}

// begin returns the write under a key, and whether the caller has to do it.
func (rs *replays) begin(key string, request [sha256.Size]byte) (r *replayed, first bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byKey == nil {
		rs.byKey = make(map[string]*list.Element)
	}
	for e := rs.order.Front(); e != nil; e = rs.order.Front() {
		old := e.Value.(*replayed)
		if rs.order.Len() < maxReplays && rs.size <= maxKept && time.Since(old.at) < replayTime {
			break
		}
		rs.forgetLocked(e)
	}
	if e := rs.byKey[key]; e != nil {
		return e.Value.(*replayed), false
	}
	r = &replayed{key: key, request: request, at: time.Now(), done: make(chan struct{})}
	rs.byKey[key] = rs.order.PushBack(r)
	return r, true
}

func (rs *replays) forgetLocked(e *list.Element) {
	old := rs.order.Remove(e).(*replayed)
	delete(rs.byKey, old.key)
	rs.size -= len(old.body)
}

// end takes the outcome of a write in. One that has failed is forgotten: it can be tried again.
func (rs *replays) end(r *replayed, rec *recorder) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	defer close(r.done)
	e := rs.byKey[r.key]
	known := e != nil && e.Value == r // it may have been forgotten for newer ones
	if rec.status >= 200 && rec.status < 300 && len(rec.body) <= maxReplayed {
		r.status, r.header, r.body = rec.status, rec.header, rec.body
		if known {
			rs.size += len(r.body)
		}
		return
	}
	if known {
		rs.forgetLocked(e)
	}
}

// once returns a handler that does a write with an idempotency key once.
func (s *Server) once(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		keys := r.Header.Values(keyHeader)
		if len(keys) == 0 {
			return h(w, r)
		}
		key := keys[0]
		if len(keys) > 1 || !isKey(key) {
			return invalid("%s: give one key of 1 to %d visible ASCII characters", keyHeader, maxKey)
		}
		body, err := readBody(w, r, maxMessage)
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		request := digestOf(r.Method, r.URL.Path, r.URL.RawQuery, string(body))
		for {
			before, first := s.replay.begin(key, request)
			if first {
				ctx, cancel := toTheEnd(r.Context())
				defer cancel()
				return s.doOnce(w, r.WithContext(context.WithValue(ctx, onceKey{}, onceOf(key, r.Method, r.URL.Path, body))), h, before)
			}
			if before.request != request {
				return keyReused(key)
			}
			select {
			case <-before.done:
			case <-r.Context().Done():
				return nil
			}
			if before.status != 0 {
				before.repeat(w)
				return nil
			}
		}
	}
}

// lastTime is how long a write under a key goes on when the server is about to stop.
const lastTime = time.Second

// toTheEnd returns a context for a write that goes on when its client has left: the client
// may come back with the same key, and must not find half of it.
func toTheEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server, ok := ctx.Value(leavingKey{}).(context.Context)
	if !ok {
		return free, cancel
	}
	stop := context.AfterFunc(server, func() {
		select {
		case <-time.After(lastTime):
			cancel()
		case <-free.Done():
		}
	})
	return free, func() { stop(); cancel() }
}

func keyReused(key string) error {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: "key_reused", Detail: "the " + keyHeader + " " + key + " belongs to another request: use a new key for each write"}
}

func isKey(key string) bool {
	if key == "" || len(key) > maxKey {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

func (s *Server) doOnce(w http.ResponseWriter, r *http.Request, h handler, as *replayed) error {
	rec := &recorder{ResponseWriter: w}
	defer s.replay.end(as, rec)
	if err := h(rec, r); err != nil {
		Refuse(rec, err)
	}
	return nil
}

func (r *replayed) repeat(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Location"} {
		if v := r.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.Header().Set(replayHeader, "true")
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // an error means that the client is gone
}

// A recorder keeps a copy of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	header http.Header
	body   []byte
}

func (r *recorder) WriteHeader(status int) {
	r.status, r.header = status, r.Header().Clone()
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if len(r.body) <= maxReplayed {
		r.body = append(r.body, b...)
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

type onceKey struct{}

// A onceID identifies a write with an idempotency key for the engine: by its key, and by what
// it writes to where.
type onceID struct{ key, body [sha256.Size]byte }

func onceOf(key, method, path string, body []byte) onceID {
	return onceID{digestOf("key", key), digestOf("body", method, path, string(body))}
}

// onceIn returns the identity of the write that a context belongs to; false if it has no key.
func onceIn(ctx context.Context) (onceID, bool) {
	id, ok := ctx.Value(onceKey{}).(onceID)
	return id, ok
}

// engineKey is the key of the write for the engine, which remembers it across restarts;
// empty if there is none.
func engineKey(ctx context.Context, withBody bool) string {
	id, ok := onceIn(ctx)
	if !ok {
		return ""
	}
	key := "http/" + hex.EncodeToString(id.key[:16])
	if withBody {
		key += "/" + hex.EncodeToString(id.body[:16])
	}
	return key
}

// newSession returns the id of a session that a write makes, and what begins the ids of all
// sessions that writes with the same key make. The same write gives the same id, so that
// the session itself tells after a restart that it was made. Both are empty without a key.
func newSession(ctx context.Context) (id event.SessionID, sameKey string) {
	of, ok := onceIn(ctx)
	if !ok {
		return "", ""
	}
	k, b := hex.EncodeToString(of.key[:8]), hex.EncodeToString(of.body[:8])
	sameKey = k[:8] + "-" + k[8:12] + "-" + k[12:16] + "-"
	return event.SessionID(sameKey + b[:4] + "-" + b[4:16]), sameKey
}

// digestOf returns the digest of some texts, each with its length.
func digestOf(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, t := range texts {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(t) >> (8 * i))
		}
		h.Write(size[:])
		io.WriteString(h, t)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
