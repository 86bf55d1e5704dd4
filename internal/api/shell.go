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
	Cwd       string          `json:"cwd,omitempty"`     // the session's if empty
	Timeout   int64           `json:"timeout,omitempty"` // in milliseconds; it may take as long as it likes if zero
	Key       string          `json:"abideKey,omitempty"`
}

// ShellExecResult names it.
type ShellExecResult struct {
	ProcessID string `json:"processId"`
}

// ShellKillParams ends it.
type ShellKillParams struct {
	SessionID event.SessionID `json:"sessionId"`
	ProcessID string          `json:"processId"`
	Signal    string          `json:"signal,omitempty"` // "SIGTERM" if empty
}

// ShellKillResult tells whether there was something to end.
type ShellKillResult struct {
	Killed bool `json:"killed"`
}

// ShellExitParams tells how it ended.
type ShellExitParams struct {
	ProcessID string `json:"processId"`
	ExitCode  int    `json:"exitCode"`
}
