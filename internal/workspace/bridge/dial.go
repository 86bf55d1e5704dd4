package bridge

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/workspace"
)

// A patientDialer makes connections, and waits for a workspace that is away.
type patientDialer struct {
	dial     func(context.Context) (net.Conn, error)
	patience time.Duration
	open     context.Context // ends when the client is closed
	made     atomic.Int64    // number of connections that were made
}

// The pause between attempts to connect: the first one, and the longest one; and the
// longest time of one attempt.
const (
	dialPause    = 50 * time.Millisecond
	maxDialPause = time.Second
	dialTime     = 5 * time.Second
)

// impatientKey marks the contexts of requests that do not wait.
type impatientKey struct{}

// WithoutPatience returns a context for requests that fail at once if the workspace
// cannot be reached.
func WithoutPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, impatientKey{}, true)
}

// connectAndGreet makes a connection on which a workspace has answered.
// The transport calls it beside the request, which may end before. There is no TLS if the
// configuration is nil.
func (d *patientDialer) connectAndGreet(ctx context.Context, config *tls.Config) (net.Conn, error) {
	return d.connectBy(ctx, func(ctx context.Context) (net.Conn, error) {
		conn, err := d.dial(ctx)
		switch {
		case err != nil:
			return nil, err
		case config != nil:
			return shake(ctx, conn, config)
		}
		if conn, err = greet(ctx, conn); errors.Is(err, errClosed) && d.wantsTLS(ctx) {
			err = workspace.ErrNeedsTLS
		}
		return conn, err
	})
}

// connectRaw makes a connection for requests in HTTP/1.1, in one attempt. Nobody has answered
// on it yet.
func (d *patientDialer) connectRaw(ctx context.Context, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.open, cancel)()
	return try(ctx, func(ctx context.Context) (net.Conn, error) {
		conn, err := d.dial(ctx)
		if err != nil || config == nil {
			return conn, err
		}
		return shake(ctx, conn, config)
	})
}

// connectBy makes a connection with a function, and tries again until the patience is at
// its end.
func (d *patientDialer) connectBy(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.open, cancel)()
	patience, hurried := d.patience, ctx.Value(impatientKey{}) != nil
	if hurried {
		patience = 0
	}
	began := time.Now()
	for pause := dialPause; ; pause = min(2*pause, maxDialPause) {
		conn, err := try(ctx, dial)
		if err == nil {
			d.made.Add(1)
			return conn, nil
		}
		if isMistake(err) {
			return nil, err
		}
		if time.Since(began)+pause > patience || wait(ctx, pause) != nil {
			return nil, &away{reasonOfDial(err), hurried || d.patience > 0}
		}
	}
}

func try(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime) // whoever accepts connections may stay silent
	defer cancel()
	return dial(ctx)
}

// reasonOfDial returns why no connection could be made, without the addresses, which
// whoever reports it knows.
func reasonOfDial(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
