package worker

import (
	"context"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// WritePages is the part of a consolidation that comes after a look at the session.
func (w *Worker) WritePages(ctx context.Context, j eventlog.Job, looked session.Remembered) error {
	return w.writePages(ctx, j, looked)
}
