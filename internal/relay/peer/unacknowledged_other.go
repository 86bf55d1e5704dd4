//go:build !linux

package peer

import (
	"context"
	"syscall"
)

// limitUnacknowledged does nothing: the system has no such limit.
func limitUnacknowledged(context.Context, string, string, syscall.RawConn) error { return nil }
