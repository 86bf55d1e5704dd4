package bash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
)

// The statuses of a [Result].
const (
	statusCompleted = event.TaskCompleted // exit code 0
	statusFailed    = event.TaskFailed    // another one
	statusKilled    = event.TaskKilled    // by us: stop_bash, a person, a limit
	statusLost      = event.TaskLost      // nobody knows how it ended
	statusRunning   = "running"

	StatusStarted = "background_started" // runs in the background, as was asked for
	StatusFlipped = "auto_backgrounded"  // takes longer than the call waited, and goes on
)

// A Result is what a call says about a command. It is in the contents of a tool's
// result, for clients, and for the model if the tool answers in JSON.
type Result struct {
	Status   string `json:"status"`
	TaskID   string `json:"task_id"`
	Success  bool   `json:"success"`
	Output   string `json:"output,omitempty"` // both streams in order of arrival
	Stdout   string `json:"stdout,omitempty"` // the streams apart, if they are short
	Stderr   string `json:"stderr,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"` // nil if it has not ended, or nobody knows
	Signal   string `json:"signal,omitempty"`    // what it died of
	Duration int64  `json:"wall_duration_ms"`
	Error    string `json:"error,omitempty"` // why it was killed or lost
	Offset   int64  `json:"offset"`          // how far the output has been shown

	Truncated  *process.TruncationInfo `json:"truncated,omitempty"`
	NeedsInput string                  `json:"needs_input,omitempty"` // what it seems to ask for
	Lingering  bool                    `json:"lingering_children,omitempty"`
	Note       string                  `json:"note,omitempty"`
	Message    string                  `json:"message,omitempty"`
}

// Ended reports whether the result tells how the command ended.
func (r Result) Ended() bool {
	switch r.Status {
	case statusRunning, StatusStarted, StatusFlipped:
		return false
	}
	return true
}

// Results reads what the contents of a tool's result say about commands, as in
// tool.execution_complete. What is not about commands is left out.
func Results(contents json.RawMessage) []Result {
	var parts []struct {
		Result *Result `json:"result"`
	}
	if json.Unmarshal(contents, &parts) != nil {
		return nil
	}
	var list []Result
	for _, p := range parts {
		if p.Result != nil && p.Result.TaskID != "" {
			list = append(list, *p.Result)
		}
	}
	return list
}

// report says how a task is, and shows some of its output.
func report(t Task, e excerpt) Result {
	p := t.Process
	r := Result{Status: statusOf(p), TaskID: t.ID, Output: e.text, Offset: e.next, Truncated: e.truncated(), Lingering: p.Lingering && !p.Gone}
	r.Success = r.Status == statusCompleted || r.Status == statusRunning
	r.Duration = lasted(p, time.Now()).Milliseconds()
	if e.apart && p.State.Ended() {
		r.Stdout, r.Stderr = e.stdout, e.stderr
	}
	if p.Exit != nil {
		r.ExitCode, r.Signal = &p.Exit.Code, p.Exit.Signal
	}
	if r.Status == statusKilled || r.Status == statusLost {
		r.Error = p.Reason
	}
	if r.Lingering {
		r.Note = "The command has ended, but a process that it started is still running. stop_bash ends it."
	}
	return r
}

// lasted returns how long a process has been running, or was.
func lasted(p process.Info, now time.Time) time.Duration {
	if p.Started.IsZero() {
		return 0
	}
	if !p.Ended.IsZero() {
		now = p.Ended
	}
	return max(0, now.Sub(p.Started))
}

// ending is the line that says how a command ended.
func (r Result) ending() string {
	var why []string
	if r.Signal != "" {
		why = append(why, "killed by "+r.Signal)
	}
	if r.Error != "" {
		why = append(why, r.Error)
	}
	reason := ""
	if len(why) > 0 {
		reason = ": " + strings.Join(why, "; ")
	}
	switch {
	case r.ExitCode != nil:
		return fmt.Sprintf("<exited with exit code %d%s>", *r.ExitCode, reason)
	case r.Status == statusLost:
		return "<lost: nobody knows how the command ended" + strings.Replace(reason, ": ", "; ", 1) + ">"
	}
	return "<ended without an exit code" + reason + ">"
}

// text is how a model reads a command that has ended: its output, then how it
// ended, then what else there is to say.
func (r Result) text() string {
	text := strings.TrimLeft(strings.TrimRight(r.Output, " \t\r\n"), "\r\n") + "\n" + r.ending()
	if r.Note != "" {
		text += "\n<note: " + r.Note + ">"
	}
	return text
}

// encode writes JSON that is easy to read.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // texts and numbers
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A content is a structured part of a result, for clients: a terminal, or how a
// command ended.
type content struct {
	Type     string `json:"type"`
	ShellID  string `json:"shellId,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Dir      string `json:"cwd,omitempty"`
	Preview  string `json:"outputPreview,omitempty"`
	// Text is there in every terminal, also in one that has not said anything yet:
	// typed clients cannot read one without it.
	Text   *string `json:"text,omitempty"`
	Result Result  `json:"result"` // ours; without the output, which the result has already
}

const maxPreview = 500 // characters of output in a content

// contents are the parts for clients.
func contents(dir string, list ...Result) json.RawMessage {
	parts := make([]content, len(list))
	for i, r := range list {
		preview := []rune(r.Output)
		text := string(preview[:min(len(preview), maxPreview)])
		parts[i] = content{Type: "terminal", ShellID: r.TaskID, Dir: dir, Text: &text}
		if r.ExitCode != nil {
			parts[i].Type, parts[i].ExitCode = "shell_exit", r.ExitCode
			parts[i].Preview, parts[i].Text = text, nil
		}
		r.Output = ""
		parts[i].Result = r
	}
	return json.RawMessage(encode(parts))
}

// A style is how a tool answers.
type style int

const (
	asText style = iota // as text, if the command has ended
	asJSON
)

// answer makes the result of a tool.
func (s style) answer(dir string, r Result) tool.Result {
	text := encode(r)
	if s == asText && r.Ended() {
		text = r.text()
	}
	return tool.Result{Text: text, Contents: contents(dir, r), Task: !r.Ended()}
}
