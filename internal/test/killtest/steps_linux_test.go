package killtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

// killAtStep drives a victim until it is killed at a step.
func (r *run) killAtStep(at step) {
	r.t.Helper()
	r.instructions.Step = at
	_, err := r.runUntilStop(stop{})
	r.instructions.Step = step{}
	if err != nil {
		r.t.Fatalf("killed at the step %v: %v", at, err)
	}
}

// stepsFrom returns the steps of the last victim, from the first one of a name.
func (r *run) stepsFrom(name string) (steps []step) {
	r.t.Helper()
	for _, report := range r.recorder.reports {
		if report.Step.Name == name || len(steps) > 0 && report.Step != (step{}) {
			steps = append(steps, report.Step)
		}
	}
	if len(steps) == 0 {
		r.t.Fatalf("there is no step %s", name)
	}
	return steps
}

// A command runs once, and its key is never lost, wherever the engine is killed while it
// starts the command, and wherever the next one is killed while it undoes the start that
// did not happen.
func TestKilledAtAnyStepOfAStartOrOfItsUndoingTheCommandRunsOnce(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	calm := newBackgroundRun(t, v, backgroundCommands[0])
	calm.judge(calm.play())
	for _, first := range calm.stepsFrom("written") {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			undone := newBackgroundRun(t, v, backgroundCommands[0])
			undone.killAtStep(first)
			undone.judge(undone.play())
			if first.Name != "synced" {
				return
			}
			for _, second := range undone.stepsFrom("abandoned") {
				t.Run(second.String(), func(t *testing.T) {
					t.Parallel()
					r := newBackgroundRun(t, v, backgroundCommands[0])
					r.killAtStep(first)
					r.killAtStep(second)
					r.judge(r.play())
				})
			}
		})
	}
}

// A deletionRun is a run in which a client deletes the session. The session has a
// command that runs on, and an agent.
type deletionRun struct {
	*run
	keepers *keeperWatch
	dir     *commandDir
}

const handOverPrompt = "Start the job and hand over the rest"

func newDeletionRun(t *testing.T, v *keeperWatch) *deletionRun {
	t.Helper()
	y := newCommandDir(t)
	source, _ := commandSource(t,
		rule{"when": rule{"user": handOverPrompt, "step": 1}, "reply": rule{"calls": []rule{
			{"tool": "bash", "arguments": rule{"command": y.command("job", "GATE"), "description": "The job", "shellId": "job", "mode": "async"}},
			{"tool": "task", "arguments": rule{"description": "d", "prompt": agentPrompt, "agent_type": "task", "name": "n"}},
		}}},
		rule{"reply": rule{"text": "Said."}})
	r := &deletionRun{run: newRun(t, conversation{open: source.openIn("s", y)}), keepers: v, dir: y}
	r.driveClient = r.drive
	return r
}

// drive lets the session work, and deletes it.
func (r *deletionRun) drive(ctx context.Context, c *client) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.send(ctx, api.SendParams{Prompt: handOverPrompt}); err != nil {
		return err
	}
	if err := c.answerUntilIdle(ctx, exchange{}); err != nil {
		return err
	}
	if err := r.dir.awaitStarted(ctx, 1); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.instructions.Dir, "sessions", "s")); err != nil {
		return err // the session has nothing that a deletion could leave behind
	}
	return r.delete(ctx, c)
}

// delete deletes the session, and checks that it is told to be deleted.
func (r *deletionRun) delete(ctx context.Context, c *client) error {
	var done api.Success
	err := c.call(ctx, api.SessionDelete, api.SessionParams{SessionID: c.session}, &done)
	if err == nil && !done.Success {
		err = errors.New(done.Error)
	}
	return err
}

// finishDeletion starts another victim, which finishes a deletion that has begun. If the session
// still exists, a client deletes it again. Then nothing of the session is left.
func (r *deletionRun) finishDeletion(exists bool) {
	r.t.Helper()
	p := r.start(stop{})
	c, err := connect(r.ctx, stdio{p}, r.recorder, r.conversation)
	defer c.close()
	var meta api.MetadataResult
	if err == nil {
		err = c.call(r.ctx, api.SessionGetMetadata, api.SessionParams{SessionID: "s"}, &meta)
	}
	if err == nil && (meta.Session != nil) != exists {
		r.t.Errorf("the session exists: %v, want %v", meta.Session != nil, exists)
	}
	if err == nil && meta.Session != nil {
		err = r.delete(r.ctx, c)
	}
	if err == nil {
		err = r.recorder.waitUntil(r.ctx, p.dead, func() bool { return !r.deleting() })
	}
	if err != nil {
		r.t.Fatal(r.describe(p, err))
	}
	c.close()
	if err := p.leave(); err != nil {
		r.t.Error(err)
	}
	r.checkNothingLeft()
}

// deleting reports whether a deletion is written down that is not finished.
func (r *deletionRun) deleting() bool {
	left, _ := os.ReadDir(filepath.Join(r.instructions.Dir, "deletions")) // without the folder there is none
	return len(left) > 0
}

// checkNothingLeft checks that the session, its agent and its command are gone.
func (r *deletionRun) checkNothingLeft() {
	r.t.Helper()
	if report := r.audit(); report.Sessions != 0 || report.Processes != 0 {
		r.t.Errorf("%d sessions and %d processes are left", report.Sessions, report.Processes)
	}
	if left, err := os.ReadDir(filepath.Join(r.instructions.Dir, "sessions")); err != nil || len(left) > 0 {
		r.t.Errorf("the folders %v are left: %v", left, err)
	}
	for _, pid := range r.dir.pids("job") {
		if err := exited(r.ctx, pid); err != nil {
			r.t.Errorf("the command %d runs on: %v", pid, err)
		}
	}
	r.keepers.checkNothingLeft(r.t, r.instructions.Dir)
}

// A session is deleted as a whole or not at all, wherever the engine is killed: before or
// after it is deleted from the store, while its command is stopped and forgotten, and while
// its agent is deleted.
func TestKilledAtAnyStepOfADeletionNothingIsLeft(t *testing.T) {
	t.Parallel()
	v := newKeeperWatch(t)
	calm := newDeletionRun(t, v)
	p := calm.start(stop{})
	c, err := calm.run.drive(p)
	defer c.close()
	if err != nil {
		t.Fatal(calm.describe(p, err))
	}
	c.close()
	if err := p.leave(); err != nil {
		t.Error(err)
	}
	calm.checkNothingLeft()
	steps := calm.stepsFrom("deleting")
	deleted := slices.Index(steps, step{"deleted", 1})
	if !slices.Contains(steps, step{"deleted", 2}) || !slices.Contains(steps, step{"renamed", 1}) || deleted < 0 {
		t.Fatalf("the steps are %v", steps)
	}
	for i, at := range steps {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			r := newDeletionRun(t, v)
			r.killAtStep(at)
			r.finishDeletion(i < deleted)
		})
	}
}
