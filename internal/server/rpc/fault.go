package rpc

import (
	"context"
	"errors"
	"syscall"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

// faults has the kind of each error that is more than a refusal.
var faults = []struct {
	kind string
	errs []error
}{
	{api.FaultNotFound, []error{session.ErrNotFound, session.ErrPosition, process.ErrNotFound, eventlog.ErrNoJob}},
	{api.FaultUnavailable, []error{workspace.ErrAway, workspace.ErrLost, eventlog.ErrNotOwner, context.DeadlineExceeded}},
	{api.FaultFull, []error{session.ErrQueueFull}},
	{api.FaultInternal, []error{eventlog.ErrSealed, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}},
}

// faultOf returns the kind of an error; empty if the request was refused because of what it
// asks, or because of the state of the session.
func faultOf(err error) string {
	if _, damaged := errors.AsType[*eventlog.Damage](err); damaged {
		return api.FaultDamaged
	}
	for _, f := range faults {
		for _, is := range f.errs {
			if errors.Is(err, is) {
				return f.kind
			}
		}
	}
	if ofDatabase(err) {
		return api.FaultInternal
	}
	return ""
}

// ofDatabase reports whether an error comes from the database of a store, which has errors
// with codes: numbers in SQLite, and SQL states in PostgreSQL.
func ofDatabase(err error) bool {
	var number interface{ Code() int }
	var state interface{ SQLState() string }
	return errors.As(err, &number) || errors.As(err, &state)
}
