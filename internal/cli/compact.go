package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

const compactHelp = `Summarises the older part of a session, so that its model has room for more. What
people asked for is kept in their own words. Nothing is deleted: "abide sessions
show" has all of it, and --undo lets the model see it again as it was.

This happens by itself before the model's window is full; "abide context" shows how
full it is. Ctrl-C cancels it, and the session is as it was.

Exit codes: 0 it was compacted or there is nothing to summarise, 1 there is no
summary, 2 usage, 3 key or configuration, 130 cancelled.`

func (a *app) compactCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "compact SESSION",
		Short:   "Summarise the older part of a session for its model",
		Long:    compactHelp,
		Example: "  abide compact 0198c2f1\n  abide compact 0198c2f1 --instructions \"keep the names of all files\"\n  abide compact 0198c2f1 --undo",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	instructions := c.Flags().String("instructions", "", "`TEXT` that says what the summary must not leave out")
	undo := c.Flags().Bool("undo", false, "let the model see again what it saw before the last compaction; twice takes that back")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *undo && *instructions != "" {
			return usagef("--instructions are for a summary, and --undo writes none: leave one of them out")
		}
		return a.visit(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if *undo {
				return a.uncompact(cmd.Context(), c, info.SessionID, *asJSON)
			}
			return a.compact(cmd.Context(), c, api.CompactParams{SessionID: info.SessionID, CustomInstructions: *instructions}, *asJSON)
		})
	}
	return c
}

// compact compacts a session and says what came of it.
func (a *app) compact(ctx context.Context, c *client.Client, p api.CompactParams, asJSON bool) error {
	before, err := c.Context(ctx, p.SessionID)
	if err != nil {
		return err
	}
	done := a.newProgress().while(fmt.Sprintf("compacting %s; Ctrl-C cancels", extent(before.ContextWindow)))
	r, err := compactOrCancel(ctx, c, p)
	done()
	if err != nil {
		return err
	}
	if asJSON {
		err = a.out.json(struct {
			SessionID event.SessionID   `json:"sessionId"`
			Before    api.ContextWindow `json:"before"`
			api.CompactResult
		}{p.SessionID, before.ContextWindow, r})
	} else {
		a.compacted(p.SessionID, before.ContextWindow, r)
	}
	return first(err, notCompacted(ctx, p.SessionID, r))
}

// compactOrCancel waits for a compaction. If the program is to stop meanwhile, it
// is cancelled, and what it says to that is waited for.
func compactOrCancel(ctx context.Context, c *client.Client, p api.CompactParams) (api.CompactResult, error) {
	if err := context.Cause(ctx); err != nil {
		return api.CompactResult{}, err
	}
	stay := context.WithoutCancel(ctx)
	defer context.AfterFunc(ctx, func() { _, _ = c.AbortCompaction(stay, p.SessionID) })() // what comes of it is in the result
	return c.Compact(stay, p)
}

// compacted says what has become of a session.
func (a *app) compacted(id event.SessionID, before api.ContextWindow, r api.CompactResult) {
	switch {
	case r.Outcome == event.OutcomeSkipped:
		a.out.printf("session %s is as it was: %s\n", id, plain(r.Error))
	case r.Outcome == event.OutcomeDone && r.ContextWindow != nil:
		a.out.printf("session %s was compacted: %s → %s\n", id, extent(before), extent(*r.ContextWindow))
		if !a.quiet {
			a.err.printf("%s\n", paint(a.err).in(faint, "undo it with: abide compact --undo "+string(id)))
		}
	}
}

// notCompacted is the error of a compaction that came to nothing.
func notCompacted(ctx context.Context, id event.SessionID, r api.CompactResult) error {
	var signal Signal
	switch {
	case r.Outcome != event.OutcomeFailed:
		return nil
	case errors.As(context.Cause(ctx), &signal):
		return fmt.Errorf("%w: the compaction was cancelled, and session %s is as it was", signal, id)
	}
	return fmt.Errorf("session %s could not be compacted, and is as it was: %s (try again, or let another model summarise: compaction.model in the configuration counts from the next abide run --resume on)", id, r.Error)
}

// uncompact returns to the epoch before.
func (a *app) uncompact(ctx context.Context, c *client.Client, id event.SessionID, asJSON bool) error {
	epoch, err := c.Uncompact(ctx, id)
	if err != nil {
		return err
	}
	now, err := c.Context(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.out.json(map[string]any{"sessionId": id, "epochId": epoch, "contextWindow": now.ContextWindow})
	}
	a.out.printf("session %s is again as before the last compaction: %s\n", id, extent(now.ContextWindow))
	if now.CurrentTokens > now.TokenLimit && !a.quiet {
		a.err.printf("abide: a request has room for %s tokens: it is compacted again before the next one\n", grouped(now.TokenLimit))
	}
	return nil
}

// extent is how long a conversation is, as people say it.
func extent(w api.ContextWindow) string {
	messages := "messages"
	if w.MessagesLength == 1 {
		messages = "message"
	}
	return fmt.Sprintf("%s %s, %s tokens", grouped(w.MessagesLength), messages, grouped(w.CurrentTokens))
}
