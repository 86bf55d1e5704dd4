package cli

import (
	"context"
	"os"
)

// Process runs the program as this process: with its arguments, its standard
// streams and its signals. It returns the exit code.
func Process(opts Options) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	opts.signals = catchSignals(cancel)
	return execute(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}, opts)
}
