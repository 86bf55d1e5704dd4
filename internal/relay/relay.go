// Package relay carries one client's connection to the engine, and over the
// engine's death to the next engine.
//
//   - A request gets exactly one answer, whichever engine gives it. One that is
//     unanswered when an engine dies is sent again, with the same id and the
//     same key, so that the engine can tell that it is the same.
//   - A session's stored events reach the client in order, without gap and
//     without repetition; ephemeral ones of the time without an engine are lost.
//   - What an engine asked the client dies with it, except a question to the
//     user: its answer is handed to the next engine.
//   - What the client has told an engine about this connection, the next one is
//     told again: who makes the requests to models, which events are looked after.
//   - Without an engine the client's messages wait, up to a bound; beyond it
//     the relay stops reading.
//
// Params, results and events are passed on as the bytes they are.
//
// # What an engine must do for a relay
//
// The first request on its connection is connect with the member abide: an
// object with the relay's id and the defaults of its connection. The client's own connect may follow as an ordinary
// request. Every request of the client has the member abideKey at the front of
// its params, unique for ever; one that is sent again has the same. A
// session.create or session.resume that is sent again also has abideAfter, if
// the client has seen events of that session: the last position.
//
// The answer to session.create and session.resume has abidePosition: the client
// is shown the events after it. Notifications of stored events have their position as seq beside event. After
// a change of engine the request abide.attach {sessionId, after, method,
// params} attaches the client again as the original method and params did; the
// engine goes on with the events after that position, and may ask open
// questions to the user again under their requestId: the relay does not let
// the user see them twice.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/google/uuid"
)

// Options tell a relay what it needs to know. Only Dial is required.
type Options struct {
	// Dial connects to the engine. It is called again whenever the engine is
	// lost, and waits until there is one. A Delay is why there is none for now;
	// any other error is final.
	Dial func(ctx context.Context) (net.Conn, error)

	// Silent is called again and again while an engine that was reached does not
	// answer the first thing that it is told. Nobody is called if it is nil.
	Silent func()

	Defaults json.RawMessage // what the client's sessions are like unless it says otherwise; nothing if nil

	// Admit judges the client's requests until it has let a connect pass.
	// Everything is admitted if nil.
	Admit func(jsonrpc.Message) *jsonrpc.Error

	Log      *slog.Logger  // nowhere if nil
	MaxFrame int           // greatest message; jsonrpc.DefaultMaxFrame if zero
	Queue    int           // bytes of the client's that wait for an engine; 16 MiB if zero
	Stall    time.Duration // time the client may accept nothing before it is disconnected; 1m if zero
	Drain    time.Duration // time that answers get to arrive when the client leaves; 5s if zero
}

const (
	outboxSize  = 1 << 20 // bytes queued in either direction
	maxWaiting  = 512     // requests of the client that wait for an engine
	maxSends    = 5       // engines that a request may see die
	maxRemember = 64      // answers to the user's questions that may be needed again

	silence = time.Second // how long an engine may take to answer at first, before Silent is called
)

// A Delay is why there is no engine for now. The client is told so in answer to
// what no engine has seen; what one has seen waits, for only the next one knows
// whether it was done.
type Delay struct{ Reason error }

func (d *Delay) Error() string { return d.Reason.Error() }

func (d *Delay) Unwrap() error { return d.Reason }

// A Relay serves one client.
type Relay struct {
	id     string
	client io.ReadWriteCloser
	out    *jsonrpc.Outbox // to the client
	opt    Options
	log    *slog.Logger
	hello  []byte // the params of connect

	end      context.CancelCauseFunc
	admitted atomic.Bool // the client may say and know everything

	mu       sync.Mutex
	changed  sync.Cond // an engine is ready, a request is answered, or it is over
	link     *link     // the engine; nil while there is none
	ready    bool      // nothing waits: messages pass at once
	count    int64     // numbers parcels and requests of ours
	backlog  []*parcel // what waits for the engine, in order
	queued   int       // its bytes
	requests map[string]*parcel
	sessions map[string]*session
	asks     map[string]*ask // what the client is asked, by the id it knows
	answered []*ask          // the last answers to questions to the user
	settings []setting       // what the next engine has to be told
}

// New makes a relay for a client.
func New(client io.ReadWriteCloser, opt Options) (*Relay, error) {
	r := &Relay{
		id:       uuid.NewString(),
		client:   client,
		requests: make(map[string]*parcel),
		sessions: make(map[string]*session),
		asks:     make(map[string]*ask),
	}
	r.changed.L = &r.mu
	r.opt = opt.filled()
	r.log = r.opt.Log.With("relay", r.id)
	hello, err := json.Marshal(map[string]any{"abide": map[string]any{
		"relay": r.id, "defaults": r.opt.Defaults,
	}})
	if err != nil {
		return nil, fmt.Errorf("relay: the defaults are not JSON: %w", err)
	}
	r.hello = hello
	r.out = jsonrpc.NewOutbox(stallEnds{r}, outboxSize, r.opt.Stall)
	return r, nil
}

func (o Options) filled() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Defaults == nil {
		o.Defaults = json.RawMessage("null")
	}
	if o.Queue == 0 {
		o.Queue = 16 << 20
	}
	if o.Stall == 0 {
		o.Stall = time.Minute
	}
	if o.Silent == nil {
		o.Silent = func() {}
	}
	if o.Drain == 0 {
		o.Drain = 5 * time.Second
	}
	return o
}

// stallEnds closes the client because it does not read, and says so before its
// reader notices.
type stallEnds struct{ r *Relay }

func (s stallEnds) Write(b []byte) (int, error) { return s.r.client.Write(b) }

func (s stallEnds) Close() error {
	s.r.end(jsonrpc.ErrStalled)
	return s.r.client.Close()
}

// errLeft is the ordinary end.
var errLeft = errors.New("the client has left")

// Run relays until the client leaves, ctx is done, Dial fails or the client
// stalls, and returns when everything has ended. It closes the client. The
// error is nil if the client left, but not in the middle of a frame.
func (r *Relay) Run(ctx context.Context) error {
	working, end := context.WithCancelCause(ctx)
	r.end = end
	stop := context.AfterFunc(working, r.wake)
	defer stop()

	var engines, writer, reader sync.WaitGroup
	engines.Go(func() { end(r.engines(working)) })
	writer.Go(func() { end(ordinary(r.out.Run())) })
	reader.Go(func() { end(r.readClient(working)) })
	<-working.Done()
	engines.Wait()
	r.out.Close()
	deadline := time.AfterFunc(r.opt.Drain, func() { r.client.Close() })
	defer deadline.Stop()
	writer.Wait()
	r.client.Close()
	reader.Wait()
	if cause := context.Cause(working); cause != errLeft {
		return cause
	}
	return nil
}

// ordinary takes a client that is not there any more as one that has left.
func ordinary(err error) error {
	if errors.Is(err, jsonrpc.ErrGone) {
		return errLeft
	}
	return err
}

// wake lets everyone who waits look again.
func (r *Relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}
