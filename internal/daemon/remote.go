package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/relay"
	"github.com/abide-run/abide/internal/relay/peer"
)

// A Remote is the servers on other machines that a process without a data folder uses.
type Remote struct {
	Servers []string // HOST:PORT of each, as it is advertised
	Token   string   // token of their clients
	Log     *slog.Logger
}

// remoteServers are where the next server is looked for.
type remoteServers struct {
	Remote

	mu    sync.Mutex
	first int       // server that has answered last
	since time.Time // time since which none has answered; zero if one has
}

// serverPause is the pause after none of the servers could be reached.
const serverPause = 200 * time.Millisecond

// OpenRemote returns a process that is a relay to servers on other machines. It has no data folder,
// and never becomes an engine. If its server is gone, it goes on with the next one.
func OpenRemote(ctx context.Context, r Remote) (*Node, error) {
	if len(r.Servers) == 0 {
		return nil, errors.New("no server is named")
	}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{config: Config{OneCommand: true, Visitor: true}, log: r.Log, remote: &remoteServers{Remote: r}, promoted: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	conn, err := n.remote.dialAny(ctx) // a mistake in the addresses or the token is told at once
	if err != nil {
		n.Close()
		return nil, err
	}
	conn.Close()
	return n, nil
}

// options returns the options of a relay to one of the servers.
func (r *remoteServers) options() relay.Options {
	return relay.Options{Dial: r.dial, Log: r.Log}
}

// dial connects to one of the servers. If none can be reached for some time, requests that no server
// has seen are refused.
func (r *remoteServers) dial(ctx context.Context) (net.Conn, error) {
	for {
		conn, err := r.dialAny(ctx)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		if errors.Is(err, peer.ErrRefused) {
			return nil, err
		}
		r.mu.Lock()
		if r.since.IsZero() {
			r.since = time.Now()
		}
		late := time.Since(r.since) > refuseAfter
		r.mu.Unlock()
		select {
		case <-time.After(serverPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if late {
			return nil, &relay.Delay{Reason: err}
		}
	}
}

// dialAny tries each server once, that which has answered last first.
func (r *remoteServers) dialAny(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	var errs []error
	for i := range r.Servers {
		at := (first + i) % len(r.Servers)
		conn, err := peer.Dial(ctx, r.Servers[at], peer.Client, []byte(r.Token))
		if err == nil {
			r.mu.Lock()
			r.first, r.since = at, time.Time{}
			r.mu.Unlock()
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no server can be used: %w", errors.Join(errs...))
}
