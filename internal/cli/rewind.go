package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) rewindCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rewind SESSION EVENT|POSITION",
		Short: "Take back an event and all after it",
		Long: `Takes back an event and everything after it: the model and clients no longer see
it. Nothing is deleted; "abide sessions show --all" still shows it.`,
		Example: "  abide sessions show 0198c2f1\n  abide sessions rewind 0198c2f1 12",
		Args:    arguments(2, 2, "SESSION and the EVENT or POSITION to take back"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			from, err := shownEvent(cmd.Context(), c, info.SessionID, args[1])
			if err != nil {
				return err
			}
			n, err := c.Rewind(cmd.Context(), info.SessionID, from)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(map[string]any{"sessionId": info.SessionID, "eventId": from, "eventsRemoved": n})
			}
			a.out.printf("%d events of session %s were taken back\n", n, info.SessionID)
			return nil
		})
	}
	return c
}

// shownEvent finds the event that is meant by an id or a position. Only events
// that clients are shown can be taken back; a position between two of them means
// the next one.
func shownEvent(ctx context.Context, c *client.Client, id event.SessionID, where string) (string, error) {
	at, err := strconv.ParseInt(where, 10, 64)
	if err != nil {
		return eventByID(ctx, c, id, where)
	}
	if at < 1 {
		return "", usagef("positions begin with 1 (abide sessions show lists them)")
	}
	for e, err := range c.Events(ctx, id, event.Seq(at-1)) {
		if err != nil {
			return "", err
		}
		if e.Type.Listed() {
			head, err := e.Head()
			return head.ID, err
		}
	}
	return "", usagef("session %s shows no event at position %d or after it", id, at)
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
	return "", usagef("session %s has no event %s (abide sessions show lists positions)", id, eventID)
}
