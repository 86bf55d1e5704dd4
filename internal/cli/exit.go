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

// The exit codes. A program that was stopped by a signal exits with 128 and the
// signal's number: 130 for SIGINT, 143 for SIGTERM, 141 if nobody reads its
// output any more.
const (
	exitOK         = 0
	exitFailed     = 1 // the agent failed, or the request did
	exitUsage      = 2 // the command line cannot be carried out as it stands
	exitConfig     = 3 // the data folder, the configuration or a key is wrong
	exitProvider   = 4 // the provider did not answer
	exitNeedsInput = 5 // somebody has to answer a question; the session waits
	exitLimit      = 6 // a limit stopped the turn
)

// An exitError is an error with an exit code. Without an error of its own it has
// been told already.
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

// A stopSignal is why a program stops before its work is done.
type stopSignal struct{ Number syscall.Signal }

func (s stopSignal) Error() string {
	switch s.Number {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "terminated"
	}
	return s.Number.String()
}

func (s stopSignal) code() int { return 128 + int(s.Number) }

// outputError tells that stdout cannot be written. If its reader has left there
// is nobody to tell.
func outputError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return &exitError{code: stopSignal{syscall.SIGPIPE}.code()}
	}
	return fmt.Errorf("cannot write the output: %w", err)
}

// exitStatus chooses the exit code, and what is to be said.
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
	if errors.As(context.Cause(ctx), &signal) { // err is what came of it
		return signal.code(), signal.Error()
	}
	return exitFailed, err.Error()
}

// failureCodes maps the types of session.error that are not simply failures.
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
}

// failureCode is the exit code for a turn that ended with an error.
func failureCode(d event.SessionErrorData) int {
	if code, ok := failureCodes[d.ErrorType]; ok {
		return code
	}
	return exitFailed
}
