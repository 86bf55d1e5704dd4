// Package cli is the command line: it turns arguments into calls of an ordinary
// client, and prints the results as text, tables and JSON.
//
//   - Results go to stdout, and messages for people to stderr.
//   - Standard input is read only as a prompt, and only if the prompt is "-" or there
//     is no other prompt.
//   - The exit code tells how the command ended; exit.go has the list.
//   - However the program ends, its session can be resumed.
//
// With --headless among the arguments, the program is the runtime that SDKs start, and
// a separate flag set parses the arguments.
package cli

import (
	"context"
	"io"
	"time"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/turn"
)

// stdio holds the standard streams of the program.
type stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Options customise the program, for tests and for programs that embed it. The zero
// value is abide itself.
type Options struct {
	Version  string                              // "dev" if empty
	Tools    turn.Catalog                        // additional tools of the runtime
	Wrap     func(eventlog.Store) eventlog.Store // wraps the store; for tests
	AtStep   func(step string)                   // called between the steps of what is done in several files; for tests
	Retries  []time.Duration                     // pauses between attempts at a model request; the engine's default if nil
	LookTime time.Duration                       // time that a transaction waits for a look at files; the engine's default if zero

	signals *signals // handles the signals of the process; nil if the program does not run as a process of its own
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

	loaded  *config.Loaded // the configuration; nil before it is read
	mistake error          // mistake in the configuration of a project that is not trusted, and what holds of it; nil if there is none

	storeURL   string          // URL of the log that a flag has named; empty if none has
	servers    []string        // servers on other machines to use instead of a data folder
	cluster    *daemon.Cluster // set if this process is one of several servers on one log
	clusterKey string          // file with the key of those servers

	plain bool // true if nothing is to be drawn twice

	launcher   *launcher    // the process that whoever started the command waits for; nil if it is this one
	detached   bool         // true if the command leaves its work to the engine
	elsewhere  bool         // true if another client has stopped the turn of the command, and may still wait for the reply
	turnOver   bool         // true if the turn of the command has ended, in whatever way, or waits for an answer
	stays      bool         // true if work goes on when the command ends
	unfinished int          // number of sessions of others that are unfinished and wait
	needed     *daemon.Node // engine of other processes, to be closed when they do not need it any more; nil if there is none
}

func newApp(stdio stdio, opts Options) *app {
	if opts.Version == "" {
		opts.Version = "dev"
	}
	return &app{opts: opts, in: stdio.In, out: &printer{w: stdio.Out}, err: &printer{w: stdio.Err}}
}

// execute runs the program and returns its exit code. When ctx is cancelled with a
// stopSignal as its cause, the exit code is that of the signal.
func (a *app) execute(ctx context.Context, args []string) int {
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

// finish prints the error, unless it was printed already, and returns the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	if a.out.err != nil {
		err = outputError(a.out.err)
	}
	a.reportUnfinished()
	code, text := exitStatus(ctx, err)
	if text != "" {
		a.err.printf("abide: %s\n", plain(protocol.ReplaceAllString(text, "")))
	}
	return code
}

// protocol matches the prefix that the protocol adds to errors. It is left out of
// messages for people, who need only the reason.
var protocol = lazyregexp.New(`Request [\w.]+ failed with message: `)

// isHeadless reports whether an SDK started the program.
func isHeadless(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--headless":
			return true
		case "--": // the arguments after it are text
			return false
		}
	}
	return false
}
