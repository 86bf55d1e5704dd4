package api

import "github.com/abide-run/abide/internal/event"

// The methods by which clients run commands of their own for a session.
const (
	ShellExec = "session.shell.exec"
	ShellKill = "session.shell.kill"
)

// ShellExit is the notification that such a command has ended.
const ShellExit = "shell.exit"

// ShellExecParams runs a command.
type ShellExecParams struct {
	SessionID event.SessionID `json:"sessionId"`
	Command   string          `json:"command"`
	Cwd       string          `json:"cwd,omitempty"`     // working directory; that of the session if empty
	Timeout   int64           `json:"timeout,omitempty"` // time limit in milliseconds; no limit if zero
	Key       string          `json:"abideKey,omitempty"`
}

// ShellExecResult is the id of the command.
type ShellExecResult struct {
	ProcessID string `json:"processId"`
}

// ShellKillParams sends a signal to a command.
type ShellKillParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ProcessID string          `json:"processId"`
	Signal    string          `json:"signal,omitempty"` // "SIGTERM" if empty
}

// ShellKillResult reports whether the command was running.
type ShellKillResult struct {
	Killed bool `json:"killed"`
}

// ShellExitParams is the exit code of a command.
type ShellExitParams struct {
	ProcessID string `json:"processId"`
	ExitCode  int    `json:"exitCode"`
}
