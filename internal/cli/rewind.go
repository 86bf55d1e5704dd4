package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) rewindCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rewind SESSION EVENT|POSITION",
		Short: "Undo an event and everything after it, including file changes",
		Long: `Undo an event and everything after it: the model and clients no longer see these
events, and files that the agent changed with create and edit are restored. A file
that something else has changed since is skipped and reported. Nothing is deleted
from the session; "abide sessions show --all" still shows the events.`,
		Example: "  abide sessions show 0198c2f1\n  abide sessions rewind --dry-run 0198c2f1 12\n  abide sessions rewind 0198c2f1 12",
		Args:    arguments(2, 2, "SESSION and EVENT or POSITION"),
	}
	asJSON := jsonFlag(c)
	keep := c.Flags().Bool("keep-files", false, "do not restore files")
	dry := c.Flags().Bool("dry-run", false, "only show what would be undone")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			from, err := shownEvent(cmd.Context(), c, info.SessionID, args[1])
			if err != nil {
				return err
			}
			p := api.RewindParams{SessionID: info.SessionID, EventID: from}
			if *keep {
				p.Mode = api.ConversationOnly
			}
			if *dry {
				return a.previewRewind(cmd.Context(), c, p, *asJSON)
			}
			return a.rewind(cmd.Context(), c, p, *asJSON)
		})
	}
	return c
}

func (a *app) rewind(ctx context.Context, c *client.Client, p api.RewindParams, asJSON bool) error {
	done, err := c.Rewind(ctx, p)
	if err != nil {
		return err
	}
	if asJSON {
		return a.out.json(map[string]any{
			"sessionId": p.SessionID, "eventId": p.EventID, "eventsRemoved": done.EventsRemoved,
			"restoredFiles": done.RestoredFiles, "skippedFiles": done.SkippedFiles,
		})
	}
	a.out.printf("undid %s of session %s\n", plural(done.EventsRemoved, "visible event", "visible events"), p.SessionID)
	for _, path := range done.RestoredFiles {
		a.out.printf("restored %s\n", path)
	}
	a.printSkipped(done.SkippedFiles)
	return nil
}

func (a *app) previewRewind(ctx context.Context, c *client.Client, p api.RewindParams, asJSON bool) error {
	done, err := c.PreviewRewind(ctx, p)
	if err != nil {
		return err
	}
	if p.Mode == api.ConversationOnly {
		done.FileCount, done.Files, done.SkippedFiles = 0, []api.FilePreview{}, []api.SkippedFile{}
	}
	if asJSON {
		return a.out.json(done)
	}
	a.out.printf("would undo %s of session %s\n", plural(done.EventsRemoved, "visible event", "visible events"), p.SessionID)
	for _, f := range done.Files {
		a.out.printf("would restore %s (%s, +%d -%d lines)\n", f.Path, f.ChangeType, f.LinesAdded, f.LinesRemoved)
	}
	a.printSkipped(done.SkippedFiles)
	return nil
}

func (a *app) printSkipped(files []api.SkippedFile) {
	for _, f := range files {
		a.out.printf("skipped %s: %s\n", f.Path, f.Reason)
	}
}

// shownEvent returns the id of the event with an id or a position. Only visible events
// can be rewound; a position between two of them means the next one.
func shownEvent(ctx context.Context, c *client.Client, id event.SessionID, where string) (string, error) {
	at, err := strconv.ParseInt(where, 10, 64)
	if err != nil {
		return eventByID(ctx, c, id, where)
	}
	if at < 1 {
		return "", usagef("positions start at 1 (list them with: abide sessions show)")
	}
	for e, err := range c.Events(ctx, id, event.Seq(at-1)) {
		if err != nil {
			return "", err
		}
		if e.Kind().Listed() {
			head, err := e.Head()
			return head.ID, err
		}
	}
	return "", usagef("session %s has no visible event at position %d or after it", id, at)
}

func eventByID(ctx context.Context, c *client.Client, id event.SessionID, eventID string) (string, error) {
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil {
			return "", err
		}
		if head, err := e.Head(); err != nil || head.ID == eventID {
			return head.ID, err
		}
	}
	return "", usagef("session %s has no event %s (list the positions with: abide sessions show)", id, eventID)
}
