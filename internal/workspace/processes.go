package workspace

import (
	"context"
	"iter"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process"
)

// MaxOutput is the maximum number of bytes of output that one call returns.
const MaxOutput = 1 << 20

// Processes is the part of a workspace that handles processes. Arguments, results and
// errors are those of package process, except that the directory of a command may be
// relative to the workspace's folder, or empty for that folder.
type Processes interface {
	// Start runs a command, or finds the one that was started with the same key:
	// then attached is true. It returns when the command is known to run.
	Start(ctx context.Context, spec process.Spec) (info process.Info, attached bool, err error)
	// Find returns what is known about the process that was started with a key.
	Find(ctx context.Context, owner process.Owner, key string) (process.Info, error)
	// Get returns what is known about a process.
	Get(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	// List returns an owner's processes, the oldest first.
	List(ctx context.Context, owner process.Owner) ([]process.Info, error)
	// Wait waits until a process has ended and its output is complete.
	Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)

	// Read returns a part of the output, at most MaxOutput bytes.
	Read(ctx context.Context, owner process.Owner, id process.ID, r process.ReadRequest) (process.Chunk, error)
	// Tail returns the last bytes of the output, at most MaxOutput.
	Tail(ctx context.Context, owner process.Owner, id process.ID, n int, stream process.Stream) (process.Chunk, error)
	// View returns the output as a model sees it.
	View(ctx context.Context, owner process.Owner, id process.ID, stream process.Stream) (string, *process.TruncationInfo, error)
	// Follow yields the output from an offset on, as it is printed, and finally how the
	// process ended. If it cannot continue, it yields an error.
	Follow(ctx context.Context, owner process.Owner, id process.ID, offset int64) iter.Seq2[Frame, error]

	// WriteStdin writes to the standard input of a process. An input with a key is
	// delivered once, however often it is written.
	WriteStdin(ctx context.Context, owner process.Owner, id process.ID, in process.Input) error
	// Consume says that the output of a pipe before an offset is not needed any more. A
	// workspace elsewhere has no pipes: it keeps the output up to the quota, and this does
	// nothing there.
	Consume(ctx context.Context, owner process.Owner, id process.ID, offset int64) error
	// Rest says that a process has nothing to do until the next input with a key, and may be ended
	// when no engine was there for a time. In a workspace elsewhere this does nothing.
	Rest(ctx context.Context, owner process.Owner, id process.ID, after time.Duration) error
	// Resize changes the size of a process's terminal.
	Resize(ctx context.Context, owner process.Owner, id process.ID, size process.Size) error
	// Signal sends a signal to a process and its group.
	Signal(ctx context.Context, owner process.Owner, id process.ID, sig syscall.Signal) error
	// Stop ends a process and all its children, and returns when they have ended.
	Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	// Interrupt is Stop for a command whose turn was stopped: it begins as Ctrl-C at a
	// terminal would.
	Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error)
	// MarkSeen records that the end of a process was reported.
	MarkSeen(ctx context.Context, owner process.Owner, id process.ID) error
}

// A Frame is a piece of output from one stream, or the end. Frames are in order of
// arrival.
type Frame struct {
	Stream  process.Stream
	Offset  int64 // offset of the first byte of Data in the whole output
	Data    []byte
	Omitted int64         // number of bytes just before Offset that were not kept
	End     *process.Info // end of the process; set in the last frame only, which has no Data
}
