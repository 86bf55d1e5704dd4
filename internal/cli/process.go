package cli

import (
	"context"
	"os"
)

// Process runs the program as this process: with its arguments, its standard
// streams and its signals. It returns the exit code.
//
// If the program was started by a launcher, the launcher ends with the exit code as soon
// as the command is over; this process goes on as long as other processes need its
// engine, or a person has left work to it. See package launch.
func Process(opts Options) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	l := findLauncher(keepFromChildren())
	opts.signals = catchSignals(l, cancel)
	a := newApp(stdio{os.Stdin, os.Stdout, os.Stderr}, opts)
	a.launcher = l
	code := a.execute(ctx, os.Args[1:])
	a.stay(ctx, code)
	return code
}
