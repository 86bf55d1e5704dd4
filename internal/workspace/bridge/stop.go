package bridge

import (
	"context"
	"errors"
	"sync"

	"connectrpc.com/connect"
)

// A gate counts the requests that are running, and can wait for them.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// enter reports whether a request may begin. If so, the caller has to call leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside.Add(1)
	}
	return !g.closed
}

func (g *gate) leave() { g.inside.Done() }

// close lets no request begin any more, and waits until all have left.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}

// errStopping is the error of requests when the server stops.
var errStopping = errors.New("the workspace is being stopped; try again")

// stoppable returns a context that ends with the cause errStopping when parent ends or
// the returned function is called.
func stoppable(parent context.Context) (context.Context, context.CancelFunc) {
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

func (stopping) tell(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return connect.NewError(connect.CodeUnavailable, errStopping)
	}
	return err
}

func (s stopping) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		return answer, s.tell(ctx, err)
	}
}

func (stopping) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (s stopping) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return s.tell(ctx, next(ctx, conn))
	}
}
