package killtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// A crampedModel refuses requests that tell of the end of the job, as too large, as long
// as they contain what it has answered before. So the context is compacted when the
// model has not yet seen the notification.
type crampedModel struct{ model.Model }

func (m crampedModel) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary") {
		return &model.Reply{Text: "<overview>A job was started.</overview>", Finish: "stop"}, nil
	}
	answered := slices.ContainsFunc(req.Messages, func(m *model.Message) bool { return m.Role == model.Assistant && m.Text == "It runs." })
	if answered && notices(req, "job") > 0 {
		return nil, &model.Error{Kind: model.KindOverflow, Message: "prompt is too long"}
	}
	return m.Model.Ask(ctx, req, on)
}

func newUnseenRun(t *testing.T, v *keeperWatch) *backgroundRun {
	t.Helper()
	r := newBackgroundRun(t, v, backgroundCommands[0])
	r.model.Model = crampedModel{r.model.Model}
	r.conversation.open.InfiniteSessions = &event.InfiniteSessions{Enabled: new(false)} // only a refused request compacts
	return r
}

// judgeUnseen reports every promise that was broken.
func (r *backgroundRun) judgeUnseen(out outcome) {
	t := r.t
	t.Helper()
	c := out.checkedLog()
	c.compactions()
	for _, broken := range append(c.broken, r.source.faults()...) {
		t.Error(broken)
	}
	if n := r.dir.runs("job"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if got := out.answers(); !slices.Equal(got, r.command.answers) {
		t.Errorf("the answers are %q, want %q", got, r.command.answers)
	}
	if !isCompacted(out.log) {
		t.Error("nothing was compacted")
	}
	requests := r.model.requests()
	if n := notices(requests[len(requests)-1], "job"); n != 1 {
		t.Errorf("the last of %d requests tells %d times of the end of the job", len(requests), n)
	}
	r.keepers.checkNothingLeft(t, r.instructions.Dir)
	if t.Failed() {
		t.Log(out.describeLog())
	}
}

// The context is compacted between the notification of a task and the first request that
// tells the model of it, and the engine is killed at any write from the end of the task on.
func TestKilledWhileNewsIsCompactedTheModelIsToldOnce(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	calm := newUnseenRun(t, v)
	calmly := calm.play()
	calm.judgeUnseen(calmly)
	reported := slices.IndexFunc(calmly.writes, func(r report) bool { return slices.Contains(r.Events, event.TaskReported) })
	if reported < 0 {
		t.Fatalf("the writes are %v", calmly.writes)
	}
	for _, at := range stops(calmly.writes[reported:], false, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calmly.writes[at.Write-1].Events)
			r := newUnseenRun(t, v)
			r.judgeUnseen(r.play(at))
		})
	}
}
