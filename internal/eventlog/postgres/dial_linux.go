package postgres

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged ends a connection whose data the server has not acknowledged for 30 s. Linux
// would try for a quarter of an hour.
func limitUnacknowledged(_ context.Context, network, _ string, raw syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000)
	})
	if err != nil {
		return err
	}
	return failed
}
