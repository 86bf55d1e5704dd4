package compact

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/window/render"
)

// State is what goes on in a session, from its log and never from prose. All of
// it is told to the model with every request, as volatile state, so that no
// compaction can lose it.
type State struct {
	Mode      string
	Plan      string // where it is written down; empty for none
	Tasks     []Task // that are open
	Running   []Running
	Questions []Question
}

// A Task is one of the model's own list.
type Task struct {
	ID      int
	Status  string
	Subject string
}

// Running is work in the background.
type Running struct {
	ID      string
	Command string
	Output  string // where it is
}

// A Question is one that nobody has answered yet.
type Question struct{ ID, Text string }

// The first lines of the two messages that a compaction introduces.
const (
	SummaryMark  = "[Compacted context summary]"
	SnapshotMark = "[Session TaskStore snapshot]"
)

// SummaryMessage is the summary as people are shown it.
func (h *Head) SummaryMessage() string {
	text := SummaryMark + "\n" + h.Summary
	if h.Since != "" {
		text += "\n\n" + h.Since
	}
	return text
}

// Snapshot tells of the open tasks, or that there are none.
func (s State) Snapshot() string {
	if len(s.Tasks) == 0 {
		return SnapshotMark + "\nNo task is open."
	}
	return fmt.Sprintf("%s\n%d tasks are open.\n%s", SnapshotMark, len(s.Tasks), s.tasks())
}

// stateLine is how much is told of one thing, in bytes.
const stateLine = 400

func (s State) tasks() string {
	var w strings.Builder
	for _, t := range s.Tasks {
		fmt.Fprintf(&w, "- task %d, %s: %s\n", t.ID, t.Status, render.Line(t.Subject, stateLine))
	}
	return strings.TrimSuffix(w.String(), "\n")
}

// Reminder is the state as the model reads it; empty if nothing goes on.
func (s State) Reminder() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if s.Mode != "" {
		add("Mode: %s", render.Line(s.Mode, stateLine))
	}
	if s.Plan != "" {
		add("Plan: %s", render.Line(s.Plan, stateLine))
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
