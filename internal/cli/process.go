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
// The first SIGINT or SIGTERM stops the program in an orderly way; the session can be
// resumed. The second one ends the process at once, which loses no stored event either.
func Process(opts Options) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 4)
	// SIGPIPE is caught so that writing to a closed pipe returns an error instead of
	// ending the process.
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
