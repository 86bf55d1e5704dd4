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

// reported takes in news of a task.
func (s *State) reported(seq event.Seq, d event.TaskReportedData) {
	for i := range s.Tasks.Open {
		if s.Tasks.Open[i].Key != d.Key {
			continue
		}
		if s.Tasks.Open[i].Last = d.Status; d.Ended {
			s.Tasks.Open = slices.Delete(slices.Clone(s.Tasks.Open), i, i+1)
		}
		break
	}
	if d.Text != "" {
		s.Tasks.Reports = append(s.Tasks.Reports, Report{seq, d})
	}
}

// notified takes in that the model is told something, which opens a turn if
// there is none.
func (s *State) notified(d event.SystemNotificationData) {
	s.Tasks.Reports = slices.DeleteFunc(slices.Clone(s.Tasks.Reports), func(r Report) bool { return r.Seq == d.Report })
	s.Life.Idle = false
	if s.Turn == nil {
		s.forgetTurn()
		s.Turn = &Turn{InteractionID: d.InteractionID}
		s.About.Totals.Turns++
	}
}
