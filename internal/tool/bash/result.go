package bash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
)

// The statuses of a [Result].
const (
	statusCompleted = event.TaskCompleted // ended with exit code 0
	statusFailed    = event.TaskFailed    // ended with another exit code
	statusKilled    = event.TaskKilled    // ended by stop_bash, a person or a limit
	statusLost      = event.TaskLost      // ended in an unknown way
	statusRunning   = event.TaskRunning   // has not ended

	StatusStarted          = "background_started" // started in the background, as requested
	StatusAutoBackgrounded = "auto_backgrounded"  // runs longer than the call waited, and continues in the background
)

// A Result is what a call reports about a command. It is in the contents of a tool's
// result, for clients, and in its text if the tool answers in JSON.
type Result struct {
	Status   string `json:"status"`
	TaskID   string `json:"task_id"`
	Success  bool   `json:"success"`
	Output   string `json:"output,omitempty"`    // both streams in order of arrival
	Stdout   string `json:"stdout,omitempty"`    // standard output alone, if the output is short
	Stderr   string `json:"stderr,omitempty"`    // standard error alone, if the output is short
	ExitCode *int   `json:"exit_code,omitempty"` // nil if the command has not ended, or its end is unknown
	Signal   string `json:"signal,omitempty"`    // signal that ended the command
	Duration int64  `json:"wall_duration_ms"`
	Error    string `json:"error,omitempty"` // reason that the command was killed or lost
	Offset   int64  `json:"offset"`          // offset up to which the output was shown

	Truncated  *process.TruncationInfo `json:"truncated,omitempty"`
	NeedsInput string                  `json:"needs_input,omitempty"` // question that the command seems to ask
	Lingering  bool                    `json:"lingering_children,omitempty"`
	Note       string                  `json:"note,omitempty"`
	Message    string                  `json:"message,omitempty"`
}

// Ended reports whether the result is that of a command that has ended.
func (r Result) Ended() bool {
	switch r.Status {
	case statusRunning, StatusStarted, StatusAutoBackgrounded:
		return false
	}
	return true
}

// Results returns the results of commands in the contents of a tool's result, as in
// tool.execution_complete. Other contents are skipped.
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

// report returns the result for a task, with an excerpt of its output.
func report(t Task, e excerpt) Result {
	p := t.Process
	r := Result{Status: statusOf(p), TaskID: t.ID, Output: e.text, Offset: e.next, Truncated: e.truncated(), Lingering: p.Lingering && !p.Gone}
	r.Success = r.Status == statusCompleted || r.Status == statusRunning
	r.Duration = runTime(p, time.Now()).Milliseconds()
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

// runTime returns how long a process has been running, or did run.
func runTime(p process.Info, now time.Time) time.Duration {
	if p.Started.IsZero() {
		return 0
	}
	if !p.Ended.IsZero() {
		now = p.Ended
	}
	return max(0, now.Sub(p.Started))
}

// endLine returns the line that says how a command ended.
func (r Result) endLine() string {
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

// text returns the result of an ended command as the model reads it: the output, how
// the command ended, and the note.
func (r Result) text() string {
	text := strings.TrimLeft(strings.TrimRight(r.Output, " \t\r\n"), "\r\n") + "\n" + r.endLine()
	if r.Note != "" {
		text += "\n<note: " + r.Note + ">"
	}
	return text
}

// encode returns JSON without HTML escapes, which is easier to read.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // cannot fail: v has only texts and numbers
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A content is a structured part of a result, for clients: a terminal, or the end of
// a command.
type content struct {
	Type     string `json:"type"`
	ShellID  string `json:"shellId,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Dir      string `json:"cwd,omitempty"`
	Preview  string `json:"outputPreview,omitempty"`
	// Text is set in every terminal, also in one without output: typed clients cannot
	// read a terminal without it.
	Text   *string `json:"text,omitempty"`
	Result Result  `json:"result"` // an addition of abide; without Output, which the text of the result has
}

const maxPreview = 500 // characters of output in a content

// contents returns the structured parts of a result, for clients.
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

// A style is the form in which a tool answers.
type style int

const (
	asText style = iota // text for a command that has ended, else JSON
	asJSON              // always JSON
)

// answer returns the result of a tool.
func (s style) answer(dir string, r Result) tool.Result {
	text := encode(r)
	if s == asText && r.Ended() {
		text = r.text()
	}
	return tool.Result{Text: text, Contents: contents(dir, r), Task: !r.Ended()}
}

// digest returns the digest of a call that runs a command: what it runs and what came
// of it. What the model says about the command, how it writes and calls it and how long the
// call waits makes no difference.
func (q request) digest(r Result) string {
	end := ""
	if r.Ended() { // one in the background may have ended by chance when it is reported
		end = r.endLine()
	}
	return tool.Digest(shell.Parse(q.command).Meaning(), q.dir, fmt.Sprint(q.background, q.stdin, q.tty), r.Status, end, r.Output, r.NeedsInput)
}

// progressDigest returns the digest of a call that looks at tasks: what it looks for, and
// what it shows. As long as a task runs, a call in another minute is another call: to
// wait for something that takes long is no loop.
func progressDigest(call tool.Call, shown string, tasks ...Result) string {
	parts := []string{tool.Meaning(call.Arguments), shown}
	for _, r := range tasks {
		if !r.Ended() {
			parts = append(parts, fmt.Sprint("minute ", r.Duration/time.Minute.Milliseconds()))
		}
	}
	return tool.Digest(parts...)
}
