package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// The exit codes. A program that was stopped by a signal exits with 128 plus the number
// of the signal: 130 for SIGINT, 143 for SIGTERM, 131 for SIGQUIT, 129 for SIGHUP, and 141
// for SIGPIPE, if the reader of its output is gone.
const (
	exitOK         = 0
	exitFailed     = 1 // the agent or the request failed
	exitUsage      = 2 // the command line is wrong
	exitConfig     = 3 // the data folder, the configuration or an API key is wrong
	exitProvider   = 4 // the model provider did not answer
	exitNeedsInput = 5 // a question needs an answer; the session waits
	exitLimit      = 6 // a limit stopped the turn
	exitOutput     = 7 // the answer does not have the form of the output schema
)

// An exitError is an error with an exit code. If err is nil, the error was printed
// already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func configError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitConfig, err}
}

// A stopSignal is the signal that stopped the program, as an error.
type stopSignal struct{ Number syscall.Signal }

func (s stopSignal) Error() string {
	switch s.Number {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "terminated"
	case syscall.SIGQUIT:
		return "left"
	case syscall.SIGHUP:
		return "the terminal was closed"
	}
	return s.Number.String()
}

func (s stopSignal) code() int { return 128 + int(s.Number) }

// outputError returns the error of a failed write to stdout. If the reader is gone, the
// error has no text.
func outputError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return &exitError{code: stopSignal{syscall.SIGPIPE}.code()}
	}
	return fmt.Errorf("cannot write the output: %w", err)
}

// exitStatus returns the exit code of an error and the message to print.
func exitStatus(ctx context.Context, err error) (int, string) {
	if err == nil {
		return exitOK, ""
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err == nil {
			return exit.code, ""
		}
		return exit.code, err.Error()
	}
	if _, wrong := errors.AsType[*daemon.FolderError](err); wrong {
		return exitConfig, err.Error()
	}
	var signal stopSignal
	if errors.As(err, &signal) {
		return signal.code(), err.Error()
	}
	if errors.As(context.Cause(ctx), &signal) { // err is a consequence of the signal
		return signal.code(), signal.Error()
	}
	return exitFailed, err.Error()
}

// failureCodes maps types of session.error to exit codes other than exitFailed.
var failureCodes = map[string]int{
	"model":                      exitConfig, // its name or its configuration is wrong
	string(model.KindAuth):       exitConfig,
	string(model.KindNotFound):   exitConfig,
	string(model.KindRateLimit):  exitProvider,
	string(model.KindOverloaded): exitProvider,
	string(model.KindNetwork):    exitProvider,
	string(model.KindStream):     exitProvider,
	string(model.KindTimeout):    exitProvider,
	turn.ErrorStepLimit:          exitLimit,
	turn.ErrorLoop:               exitLimit,
	turn.ErrorBudget:             exitLimit,
	event.CauseCutOff:            exitLimit,
	event.CausePaused:            exitLimit,
	event.CauseOutput:            exitOutput,
}

// failureCode returns the exit code for a turn that ended with an error.
func failureCode(d event.SessionErrorData) int {
	if code, ok := failureCodes[d.ErrorType]; ok {
		return code
	}
	return exitFailed
}
