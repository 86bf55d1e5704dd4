// Package relay passes one client's connection on to the engine and, when the engine
// ends, to the next engine.
//
//   - A request gets exactly one answer, whichever engine gives it. A request that
//     is unanswered when an engine dies is sent again with the same id and the same
//     key, so that the next engine can recognise it.
//   - A session's stored events reach the client in order, without gap and
//     without repetition; ephemeral ones of the time without an engine are lost.
//   - A request of an engine to the client ends with the engine, except a question
//     to the user: its answer is passed on to the next engine.
//   - The settings of the connection are sent to the next engine again: whether the
//     client makes the requests to models, the interests in events, and whether all
//     unfinished turns are continued.
//   - Without an engine the client's messages wait, up to a bound; beyond it
//     the relay stops reading.
//
// Params, results and events are passed on byte for byte.
//
// # What an engine must do for a relay
//
// The first request on its connection is connect with the token of the data folder, if
// there is one: until then the engine reads only small messages. The next one is connect
// with the member abide: an object
// with the relay's id, the defaults of its connection and the name of its store. The
// engine refuses it if its own store is another one. The client's own connect
// may follow as an ordinary request. Every request of the client has the member
// abideKey at the front of its params. The key is unique; a request that is sent
// again has the same one. A session.create or session.resume that is sent again also
// has abideAfter, the position of the last event of that session that the client has
// seen, if there is one.
//
// The answer to session.create and session.resume has abidePosition: the client is
// shown the events after that position. Notifications of stored events have their
// position as seq beside event. After a change of engine the request abide.attach
// {sessionId, after, method, params} attaches the client again as the original method
// and params did. The engine continues with the events after that position, and may
// ask open questions to the user again under their requestId: the relay does not
// show the user a question twice.
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

// Options are the settings of a relay. Only Dial is required.
type Options struct {
	// Dial connects to the engine. It is called again whenever the engine is
	// lost, and waits until there is one. A Delay as its error means that there
	// is no engine for now; any other error is final.
	Dial func(ctx context.Context) (net.Conn, error)

	// Silent is called once a second while an engine does not answer the first
	// request. It may be nil.
	Silent func()

	Defaults json.RawMessage // defaults of the client's sessions; none if nil
	Store    string          // name of this process's store; an engine with another one refuses the connection

	// Admit checks each request of the client until it has accepted a connect.
	// If it is nil, every request is accepted.
	Admit func(jsonrpc.Message) *jsonrpc.Error

	// Token returns the token that the engine wants of processes of ours. It is called
	// after each Dial. If it is nil or the token is empty, none is shown.
	Token func() string

	Log        *slog.Logger  // discarded if nil
	MaxFrame   int           // maximum size of a message; jsonrpc.DefaultMaxFrame if zero
	FirstFrame int           // maximum size of a message of the client until Admit has accepted a connect; as MaxFrame if zero
	Queue      int           // maximum number of bytes that wait for an engine; 16 MiB if zero
	Stall      time.Duration // time without reading after which the client is disconnected; 1m if zero
	Drain      time.Duration // time that answers get to arrive when the client leaves; 5s if zero
}

const (
	outboxSize  = 1 << 20 // bytes queued in either direction
	maxWaiting  = 512     // maximum number of requests that wait for an engine
	maxSends    = 5       // number of engines that may die of one request before it is refused
	maxAnswered = 64      // number of answers to questions to the user that are kept

	silence = time.Second // interval of calls of Silent while the engine does not answer the first request
)

// A Delay is the reason why there is no engine for now. Requests that no engine has
// seen are answered with it. Requests that an engine has seen wait, because only the
// next engine knows whether they were carried out.
type Delay struct{ Reason error }

func (d *Delay) Error() string { return d.Reason.Error() }

func (d *Delay) Unwrap() error { return d.Reason }

// A Relay serves one client.
type Relay struct {
	id            string
	client        io.ReadWriteCloser
	out           *jsonrpc.Outbox // messages to the client
	opt           Options
	log           *slog.Logger
	connectParams []byte // params of the connect request

	end      context.CancelCauseFunc
	admitted atomic.Bool // true when Admit has accepted a connect

	mu       sync.Mutex
	changed  sync.Cond        // signals that an engine is ready, a request is answered, or the relay ends
	link     *link            // the connection to the engine; nil while there is none
	ready    bool             // true if nothing waits, so that messages are sent at once
	count    int64            // last number of a queuedMessage or of a request of the relay
	backlog  []*queuedMessage // messages that wait for the engine, in order
	queued   int              // number of bytes in the backlog
	requests map[string]*queuedMessage
	sessions map[string]*session
	asks     map[string]*ask // requests of engines to the client, by the id that the client knows
	answered []*ask          // the last answered questions to the user
	settings []setting       // settings of the connection to repeat to the next engine
}

// New makes a relay for a client.
func New(client io.ReadWriteCloser, opt Options) (*Relay, error) {
	r := &Relay{
		id:       uuid.NewString(),
		client:   client,
		requests: make(map[string]*queuedMessage),
		sessions: make(map[string]*session),
		asks:     make(map[string]*ask),
	}
	r.changed.L = &r.mu
	r.opt = opt.filled()
	r.log = r.opt.Log.With("relay", r.id)
	hello, err := json.Marshal(map[string]any{"abide": map[string]any{
		"relay": r.id, "defaults": r.opt.Defaults, "store": r.opt.Store,
	}})
	if err != nil {
		return nil, fmt.Errorf("relay: the defaults are not JSON: %w", err)
	}
	r.connectParams = hello
	r.out = jsonrpc.NewOutbox(stallCloser{r}, outboxSize, r.opt.Stall)
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
	if o.MaxFrame == 0 {
		o.MaxFrame = jsonrpc.DefaultMaxFrame
	}
	if o.FirstFrame == 0 {
		o.FirstFrame = o.MaxFrame
	}
	if o.Token == nil {
		o.Token = func() string { return "" }
	}
	if o.Silent == nil {
		o.Silent = func() {}
	}
	if o.Drain == 0 {
		o.Drain = 5 * time.Second
	}
	return o
}

// stallCloser is the client's connection as its outbox sees it. The outbox closes it if
// the client does not read; the relay then ends with that reason, before the reader
// fails with a less clear one.
type stallCloser struct{ r *Relay }

func (s stallCloser) Write(b []byte) (int, error) { return s.r.client.Write(b) }

func (s stallCloser) Close() error {
	s.r.end(jsonrpc.ErrStalled)
	return s.r.client.Close()
}

// errLeft is the cause of an ordinary end.
var errLeft = errors.New("the client has left")

// Run relays until the client leaves, ctx is done, Dial fails or the client stalls,
// and returns when all its goroutines have ended. It closes the client's connection.
// The error is nil if the client left between two frames.
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

// ordinary returns errLeft for the error of a client that is gone.
func ordinary(err error) error {
	if errors.Is(err, jsonrpc.ErrGone) {
		return errLeft
	}
	return err
}

// wake wakes all goroutines that wait for a change.
func (r *Relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}
