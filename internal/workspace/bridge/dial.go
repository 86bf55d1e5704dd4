package bridge

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
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

// connect makes a connection, and tries again until the patience is at its end. The
// transport calls it beside the request, which may end before.
func (d *patientDialer) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.open, cancel)()
	patience, hurried := d.patience, ctx.Value(impatientKey{}) != nil
	if hurried {
		patience = 0
	}
	began := time.Now()
	for pause := dialPause; ; pause = min(2*pause, maxDialPause) {
		conn, err := d.try(ctx)
		if err == nil {
			d.made.Add(1)
			return conn, nil
		}
		if time.Since(began)+pause > patience || wait(ctx, pause) != nil {
			return nil, &away{reasonOfDial(err), hurried || d.patience > 0}
		}
	}
}

func (d *patientDialer) try(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return d.dial(ctx)
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
