package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Process runs the program as this process: with its arguments, its standard
// streams and its signals. It returns the exit code.
//
// The first SIGINT or SIGTERM lets what is stored settle; the work can be
// resumed. The second one ends the process at once, which loses nothing either.
func Process(opts Options) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 4)
	// SIGPIPE is taken so that writing to a closed pipe is an error like any
	// other instead of the end of the process.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	go func() { // ends with the process
		for s := range signals {
			stop, ok := s.(syscall.Signal)
			if !ok || stop == syscall.SIGPIPE {
				continue
			}
			if ctx.Err() != nil {
				os.Exit(stopSignal{stop}.code())
			}
			cancel(stopSignal{stop})
		}
	}()
	return execute(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}, opts)
}
