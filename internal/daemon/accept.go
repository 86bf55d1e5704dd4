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

// The pause after a failed accept: the first one, and the longest one.
const (
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// accept waits for the next client. After a transient error it tries again: a process
// with too many open files must not stop serving for good.
func accept(ctx context.Context, l net.Listener, log *slog.Logger) (net.Conn, error) {
	for pause := acceptPause; ; pause = min(2*pause, maxAcceptPause) {
		conn, err := l.Accept()
		if err == nil || !isTransient(err) {
			return conn, err
		}
		if pause == acceptPause {
			log.Warn("no client can connect for now; trying again", "on", l.Addr(), "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isTransient reports whether an error passes by itself: it concerns only the client that was
// about to connect, or a resource that other processes may free.
func isTransient(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
