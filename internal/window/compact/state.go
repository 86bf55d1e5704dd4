package compact

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/window/render"
)

// State is the current state of a session, which comes from its log and never from a
// summary. The model is told all of it with every request, in the volatile tail, so that
// no compaction can lose it.
type State struct {
	Mode      string     // mode of the agent
	Plan      string     // path of the plan; empty if there is none
	Skills    []string   // names of the skills that were read
	Tasks     []Task     // open entries of the model's to-do list
	Running   []Running  // commands that run in the background
	Questions []Question // open questions
}

// A Task is an entry of the model's to-do list.
type Task struct {
	ID      int
	Status  string
	Subject string
}

// Running is a command that runs in the background.
type Running struct {
	ID      string
	Command string
	Output  string // path of its output
}

// A Question is a question that nobody has answered yet.
type Question struct{ ID, Text string }

// The first lines of the two messages for people that a compaction records.
const (
	summaryMark  = "[Compacted context summary]"
	snapshotMark = "[Session TaskStore snapshot]"
)

// SummaryMessage returns the summary as people are shown it.
func (h *Head) SummaryMessage() string {
	text := summaryMark + "\n" + h.Summary
	for _, more := range []string{h.Since, h.Unread} {
		if more != "" {
			text += "\n\n" + more
		}
	}
	return text
}

// Snapshot returns the list of open tasks as people are shown it.
func (s State) Snapshot() string {
	if len(s.Tasks) == 0 {
		return snapshotMark + "\nNo task is open."
	}
	return fmt.Sprintf("%s\n%d tasks are open.\n%s", snapshotMark, len(s.Tasks), s.tasks())
}

// stateLine is the length limit of the text about one thing, in bytes.
const stateLine = 400

func (s State) tasks() string {
	var w strings.Builder
	for _, t := range s.Tasks {
		fmt.Fprintf(&w, "- task %d, %s: %s\n", t.ID, t.Status, render.Line(t.Subject, stateLine))
	}
	return strings.TrimSuffix(w.String(), "\n")
}

// Reminder returns the state as the model reads it. It is empty if there is nothing to
// say.
func (s State) Reminder() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Mode != "" {
		add("Mode: %s", render.Line(s.Mode, stateLine))
	}
	if s.Plan != "" {
		add("Plan: %s", render.Line(s.Plan, stateLine))
	}
	if len(s.Skills) > 0 {
		add("Skills that you have read before the summary: %s. If you go on with work that one of them is for, read it again.", render.Line(strings.Join(s.Skills, ", "), stateLine))
	}
	if len(s.Tasks) > 0 {
		add("Open tasks:\n%s", s.tasks())
	}
	for _, r := range s.Running {
		add("Running in the background: %s, %s, output: %s", r.ID, render.Line(r.Command, stateLine), r.Output)
	}
	for _, q := range s.Questions {
		add("Not answered yet: %s, %s", q.ID, render.Line(q.Text, stateLine))
	}
	return strings.Join(parts, "\n")
}
