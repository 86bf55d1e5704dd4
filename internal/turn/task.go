package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Tasks is what goes on in the background, and what the model was not told of it.
type Tasks struct {
	Open    []Task   // the oldest first
	Reports []Report // news of tasks that the model was not told yet
}

// A Task is what goes on without the call that began it.
type Task struct {
	Key  string
	Last string // the status that was reported last
}

// A Report is news of a task.
type Report struct {
	Seq event.Seq
	event.TaskReportedData
}

func (t *Tasks) fold(e event.Event, body event.Payload) {
	switch d := body.(type) {
	case event.TaskStartedData:
		t.Open = append(t.Open, Task{Key: d.Key})
	case event.TaskReportedData:
		t.report(Report{e.Seq, d})
	case event.SystemNotificationData:
		t.Reports = slices.DeleteFunc(slices.Clone(t.Reports), func(r Report) bool { return r.Seq == d.Report })
	}
}

// report takes in news of a task.
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
