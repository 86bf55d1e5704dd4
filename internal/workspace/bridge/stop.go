package bridge

import (
	"context"
	"errors"
	"sync"

	"connectrpc.com/connect"
)

// inFlight counts the requests that are running, and can wait for them.
type inFlight struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// begin reports whether a request may begin. If so, the caller has to call end.
func (g *inFlight) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

func (g *inFlight) end() { g.running.Done() }

// closeAndWait lets no request begin any more, and waits until all have ended.
func (g *inFlight) closeAndWait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// errStopping is the error of requests when the server stops.
var errStopping = errors.New("the workspace is being stopped; try again")

// withStopCause returns a context that ends with the cause errStopping when parent ends or
// the returned function is called.
func withStopCause(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { cancel(errStopping) })
	return ctx, func() {
		stop()
		cancel(errStopping)
	}
}

// stopping is an interceptor. When the server stops, it makes errors "unavailable", so
// that clients try again with the next server.
type stopping struct{}

func (stopping) convert(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return connect.NewError(connect.CodeUnavailable, errStopping)
	}
	return err
}

func (s stopping) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		return answer, s.convert(ctx, err)
	}
}

func (stopping) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (s stopping) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return s.convert(ctx, next(ctx, conn))
	}
}
