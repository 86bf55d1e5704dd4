//go:build !linux

package postgres

import (
	"context"
	"syscall"
)

// limitUnacknowledged does nothing: only Linux has the setting.
func limitUnacknowledged(context.Context, string, string, syscall.RawConn) error { return nil }
