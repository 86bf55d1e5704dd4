package bash

import (
	"context"

	"github.com/abide-run/abide/internal/event"
)

// Names of this package for its external tests.

type Waited = waited

var (
	Summary    = summary
	WaitPrompt = waitPrompt
)

// Running returns the commands of a session that have not ended.
func (c *Commands) Running(ctx context.Context, id event.SessionID) ([]Task, error) {
	return c.running(ctx, id)
}

// Notice returns the notice that a task has ended, or asks for input.
func (c *Commands) Notice(ctx context.Context, id event.SessionID, task, prompt string) (notice, error) {
	t, err := c.Task(ctx, id, task)
	if err != nil {
		return notice{}, err
	}
	return c.noticeOf(ctx, t, prompt), nil
}
