package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"github.com/abide-run/abide/internal/daemon"
)

// The loopback addresses.
var four, six = netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()

// loopback listens on a port of both loopback addresses: clients dial a name, which may be
// either. Port zero means a port that is free on both.
func loopback(ctx context.Context, port int, first netip.Addr) ([]net.Listener, error) {
	const attempts = 20
	for attempt := 1; ; attempt++ {
		list, err := bothLoopbacks(ctx, port, first)
		if err == nil || port != 0 || attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return list, err
		}
	}
}

func bothLoopbacks(ctx context.Context, port int, first netip.Addr) ([]net.Listener, error) {
	second := six
	if first == six {
		second = four
	}
	var lc net.ListenConfig
	one, err := lc.Listen(ctx, "tcp", net.JoinHostPort(first.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	other, err := lc.Listen(ctx, "tcp", net.JoinHostPort(second.String(), strconv.Itoa(portOf(one))))
	switch {
	case err == nil:
		return []net.Listener{one, other}, nil
	case errors.Is(err, syscall.EADDRINUSE): // a client could reach another program there and send it the token
		one.Close()
		return nil, err
	}
	return []net.Listener{one}, nil // this machine has not both
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// serveTCP serves clients on all listeners until ctx is done or one of them
// fails.
func serveTCP(ctx context.Context, node *daemon.Node, listeners []net.Listener, token string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var served sync.WaitGroup
	var failed error
	var once sync.Once
	for _, l := range listeners {
		served.Go(func() {
			err := node.ServeTCP(ctx, l, token)
			once.Do(func() { failed = err; cancel(err) })
		})
	}
	served.Wait()
	return failed
}

// listenError adds the way out to the error of a failed listen.
func listenError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return configError(fmt.Errorf("%w: another program is listening there; choose another port, or 0 for any free one", err))
	}
	return configError(err)
}
