package rpc

import (
	"context"
	"fmt"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods take back what was said and done.
var _ = register(map[string]method{
	api.HistoryTruncate: on((*conn).truncate),
	api.HistoryRewind:   on((*conn).rewind),
	api.PreviewRewind:   on((*conn).previewRewind),
})

// truncate takes back what was said, and leaves files alone.
func (c *conn) truncate(ctx context.Context, p api.TruncateParams) (api.TruncateResult, error) {
	done, err := c.server.host.Rewind(ctx, p.SessionID, session.Rewind{EventID: p.EventID, KeepFiles: true})
	return api.TruncateResult{EventsRemoved: done.Events}, noSession(p.SessionID, err)
}

func (c *conn) rewind(ctx context.Context, p api.RewindParams) (api.RewindResult, error) {
	switch p.Mode {
	case "", api.ConversationAndFiles, api.ConversationOnly:
	default:
		return api.RewindResult{}, errBadParams{fmt.Errorf("mode: %q is unknown; use %s or %s", p.Mode, api.ConversationAndFiles, api.ConversationOnly)}
	}
	done, err := c.server.host.Rewind(ctx, p.SessionID, session.Rewind{EventID: p.EventID, KeepFiles: p.Mode == api.ConversationOnly})
	if err != nil {
		return api.RewindResult{}, noSession(p.SessionID, err)
	}
	r := api.RewindResult{Outcome: "success", EventsRemoved: done.Events, RestoredFiles: []string{}, SkippedFiles: skipped(done.Files)}
	for _, f := range done.Files {
		if f.Outcome == event.FileRestored || f.Outcome == event.FileRemoved {
			r.RestoredFiles = append(r.RestoredFiles, f.Path)
		}
	}
	return r, nil
}

// previewRewind tells what the calls did that would be taken back: the other way
// round than what would be done to the files.
func (c *conn) previewRewind(ctx context.Context, p api.RewindParams) (api.RewindPreview, error) {
	done, err := c.server.host.Rewind(ctx, p.SessionID, session.Rewind{EventID: p.EventID, Look: true})
	if err != nil {
		return api.RewindPreview{}, noSession(p.SessionID, err)
	}
	r := api.RewindPreview{Available: true, EventsRemoved: done.Events, Files: []api.FilePreview{}, SkippedFiles: skipped(done.Files)}
	for _, f := range done.Files {
		preview := api.FilePreview{Path: f.Path, ChangeType: "modified", LinesAdded: f.Gone, LinesRemoved: f.Added}
		switch f.Outcome {
		case event.FileRemoved:
			preview.ChangeType = "created"
			r.Files = append(r.Files, preview)
		case event.FileRestored:
			r.Files = append(r.Files, preview)
		}
	}
	r.FileCount = len(r.Files)
	return r, nil
}

// skipped returns the files that are left as they are though calls changed them.
func skipped(files []event.RestoredFile) []api.SkippedFile {
	list := []api.SkippedFile{}
	for _, f := range files {
		if f.Outcome == event.FileSkipped {
			list = append(list, api.SkippedFile{Path: f.Path, Reason: f.Reason})
		}
	}
	return list
}
