// Package cli is the command line: it turns arguments into calls of an ordinary
// client, and what comes back into text, tables and JSON.
//
//   - Data goes to stdout, everything for people's eyes to stderr.
//   - Standard input is read only as a prompt, and only if that was asked for or
//     there is no other prompt.
//   - The exit code says how it went; exit.go has the list.
//   - Whatever ends the program, a session can be resumed.
//
// With --headless anywhere among the arguments, the program is what SDKs start,
// and a flag set of its own reads them.
package cli

import (
	"context"
	"io"
	"regexp"
	"time"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// stdio is what the program reads and writes.
type stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Options make a program of its own of the command line. The zero value is
// abide as it is.
type Options struct {
	Version string                              // "dev" if empty
	Tools   turn.Catalog                        // further tools of the runtime
	Wrap    func(eventlog.Store) eventlog.Store // put around the store; for tests
	Retries []time.Duration                     // pauses between attempts at a model request; the engine's if nil
}

// An app is one run of the program.
type app struct {
	opts     Options
	in       io.Reader
	out, err *printer

	// The flags of every command.
	home     string
	quiet    bool
	logLevel string

	loaded *config.Loaded // the configuration, once it was read
}

// execute runs the program and returns its exit code. When ctx is cancelled with a
// [Signal] as its cause, that signal is the reason to stop.
func execute(ctx context.Context, args []string, stdio stdio, opts Options) int {
	if opts.Version == "" {
		opts.Version = "dev"
	}
	a := &app{opts: opts, in: stdio.In, out: &printer{w: stdio.Out}, err: &printer{w: stdio.Err}}
	err := a.dispatch(ctx, args)
	return a.finish(ctx, err)
}

func (a *app) dispatch(ctx context.Context, args []string) error {
	if isHeadless(args) {
		return a.headless(ctx, args)
	}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return root.ExecuteContext(ctx)
}

// finish says what went wrong, unless that was said, and chooses the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	if a.out.err != nil {
		err = outputError(a.out.err)
	}
	code, text := exitStatus(ctx, err)
	if text != "" {
		a.err.printf("abide: %s\n", plain(protocol.ReplaceAllString(text, "")))
	}
	return code
}

// protocol is how the protocol says that a request failed. People want to know
// why.
var protocol = regexp.MustCompile(`Request [\w.]+ failed with message: `)

// isHeadless reports whether an SDK started the program.
func isHeadless(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--headless":
			return true
		case "--": // what follows is text
			return false
		}
	}
	return false
}
