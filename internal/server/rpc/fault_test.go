package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

type numbered struct{}

func (numbered) Error() string { return "disk I/O error" }
func (numbered) Code() int     { return 10 }

type stated struct{}

func (stated) Error() string    { return "too many connections" }
func (stated) SQLState() string { return "53300" }

// What fails is told apart from what is refused, however deeply the error is wrapped.
func TestAFaultIsNoRefusal(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{session.ErrPosition, api.FaultNotFound},
		{eventlog.ErrNoJob, api.FaultNotFound},
		{&eventlog.Damage{Session: "s", Seq: 3}, api.FaultDamaged},
		{workspace.ErrAway, api.FaultUnavailable},
		{workspace.ErrLost, api.FaultUnavailable},
		{session.ErrQueueFull, api.FaultFull},
		{eventlog.ErrSealed, api.FaultInternal},
		{&fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, api.FaultInternal},
		{numbered{}, api.FaultInternal},
		{stated{}, api.FaultInternal},
		{session.ErrBusy, ""},
		{session.ErrCompacting, ""},
		{&fs.PathError{Op: "open", Path: "f", Err: syscall.ENOENT}, ""},
		{errors.New("there is no model of this name"), ""},
	} {
		if got := faultOf(fmt.Errorf("rewind: %w", test.err)); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
}
