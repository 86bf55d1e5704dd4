package api

import "github.com/abide-run/abide/internal/event"

// A Task is a command of a session.
type Task struct {
	SessionID   event.SessionID `json:"sessionId"`
	TaskID      string          `json:"taskId"`
	Command     string          `json:"command"`
	Description string          `json:"description,omitempty"`
	Dir         string          `json:"cwd"`
	Status      string          `json:"status"` // "running", one of event.Task…, or TaskUnreachable
	Reason      string          `json:"reason,omitempty"`
	PID         int             `json:"pid,omitempty"`
	Started     string          `json:"startedAt,omitempty"`
	Ended       string          `json:"endedAt,omitempty"`
	ExitCode    *int            `json:"exitCode,omitempty"`
	Signal      string          `json:"signal,omitempty"`
	Bytes       int64           `json:"outputBytes"`
	Omitted     int64           `json:"outputOmitted,omitempty"`
	Lingering   bool            `json:"lingeringChildren,omitempty"` // true while processes run that it has left behind
	Unkept      bool            `json:"unkept,omitempty"`            // true if its keeper was killed, so that nobody knows all its processes
	Input       bool            `json:"input,omitempty"`             // true if it can be typed into
	Terminal    *TerminalSize   `json:"terminal,omitempty"`          // nil if it has no terminal
}

// A TerminalSize is the size of a command's terminal.
type TerminalSize struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// TasksParams asks for the commands of a session; of all if it is empty.
type TasksParams struct {
	SessionID event.SessionID `json:"sessionId,omitempty"`
	All       bool            `json:"all,omitempty"`    // true to include commands that have ended and left nothing behind
	Agents    bool            `json:"agents,omitempty"` // true to include commands of the agents that the session has started
}

// TasksResult lists commands, the oldest first.
type TasksResult struct {
	Tasks []Task `json:"tasks"`
}

// TaskUnreachable is the status of a command whose workspace cannot be reached: it goes
// on, or has ended, and nobody here knows.
const TaskUnreachable = "unreachable"

// TaskParams names a command.
type TaskParams struct {
	SessionID event.SessionID `json:"sessionId"`
	TaskID    string          `json:"taskId"`
	GiveUp    bool            `json:"giveUp,omitempty"` // in abide.taskStop: report it as lost if its workspace cannot be reached
}

// TaskOutputParams asks for a part of a command's output. Offsets count the
// bytes of both streams in order of arrival.
type TaskOutputParams struct {
	SessionID event.SessionID `json:"sessionId"`
	TaskID    string          `json:"taskId"`
	Offset    int64           `json:"offset,omitempty"`
	Tail      int64           `json:"tail,omitempty"`   // number of last bytes to start with, instead of the offset
	Stream    string          `json:"stream,omitempty"` // "stdout" or "stderr"; both if empty
	Wait      bool            `json:"wait,omitempty"`   // true to wait for output or for the end
}

// TaskOutputResult is a part of a command's output.
type TaskOutputResult struct {
	Data    []byte `json:"data"` // in base64
	Next    int64  `json:"next"`
	Omitted int64  `json:"omitted,omitempty"` // bytes before Next that were not kept
	End     bool   `json:"end"`               // true if there will be no output after Next
	Task    Task   `json:"task"`
}

// TaskInputParams is typed into a command. Input with a key is typed once, however often it
// is sent.
type TaskInputParams struct {
	SessionID event.SessionID `json:"sessionId"`
	TaskID    string          `json:"taskId"`
	Data      []byte          `json:"data,omitempty"`  // in base64
	Close     bool            `json:"close,omitempty"` // true if nothing more will come
	Key       string          `json:"abideKey,omitempty"`
}

// TaskResizeParams changes the size of a command's terminal.
type TaskResizeParams struct {
	SessionID event.SessionID `json:"sessionId"`
	TaskID    string          `json:"taskId"`
	TerminalSize
}
