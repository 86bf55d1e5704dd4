package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"
)

// How long to wait before clients are accepted again: at first, and at most.
const (
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept waits for the next client. What passes by itself is waited out: a
// process that has too many open files must not stop serving for good.
func accept(ctx context.Context, l net.Listener, log *slog.Logger) (net.Conn, error) {
	for pause := acceptPause; ; pause = min(2*pause, maxAcceptPause) {
		conn, err := l.Accept()
		if err == nil || !isTransient(err) {
			return conn, err
		}
		if pause == acceptPause {
			log.Warn("no client can connect for now; it is tried again", "on", l.Addr(), "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isTransient reports whether an error is one of the moment: of the client that was
// about to connect, or for lack of something that others may give back.
func isTransient(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
