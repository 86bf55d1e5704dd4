package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Tasks is the commands that run in the background, and their news for the model.
type Tasks struct {
	Open    []Task   // the tasks that have not ended, the oldest first
	Reports []Report // the news that the model was not told yet
}

// A Task is work that goes on after the call that began it.
type Task struct {
	Key  string
	Last string // the status that was reported last
	Stop bool   // the turn of its call was stopped, so the task is to be ended
}

// A Report is news of a task.
type Report struct {
	Seq event.Seq
	event.TaskReportedData
}

// Wakes reports whether news of a task begins a turn when the session is at rest. After
// an abort, it waits until somebody speaks.
func (s *State) Wakes() bool {
	return !s.Life.Aborted && len(s.Tasks.Open)+len(s.Tasks.Reports) > 0
}

func (t *Tasks) fold(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.TaskStartedData:
		t.Open = append(t.Open, Task{Key: d.Key, Stop: d.Stop})
	case event.TaskReportedData:
		t.report(Report{e.Seq, d})
	case event.SystemNotificationData:
		t.Reports = slices.DeleteFunc(slices.Clone(t.Reports), func(r Report) bool { return r.Seq == d.Report })
	}
}

// report takes in news of a task: its status, and a text for the model if there is one.
func (t *Tasks) report(r Report) {
	i := slices.IndexFunc(t.Open, func(o Task) bool { return o.Key == r.Key })
	switch {
	case i < 0:
	case r.Ended:
		t.Open = slices.Delete(slices.Clone(t.Open), i, i+1)
	default:
		t.Open[i].Last = r.Status
	}
	if r.Text != "" {
		t.Reports = append(t.Reports, r)
	}
}
