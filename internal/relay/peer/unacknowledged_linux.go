package peer

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged makes a connection end if the other machine does not acknowledge what was sent:
// the system would try for a quarter of an hour.
func limitUnacknowledged(_ context.Context, _, _ string, conn syscall.RawConn) (err error) {
	control := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(goneAfter.Milliseconds()))
	})
	if control != nil {
		return control
	}
	return err
}
