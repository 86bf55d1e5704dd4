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

const compactHelp = `Summarise the older part of a session to free space in the model's context window.
The user's own messages are kept word for word. Nothing is deleted: "abide sessions
show" still prints everything, and --undo gives the model the full history again.

Sessions are compacted automatically before the context window is full; "abide
context" shows how full it is. Ctrl-C cancels the compaction and leaves the session
unchanged.

Exit codes: 0 compacted or nothing to summarise, 1 failed, 2 usage error,
3 configuration error, 130 cancelled.`

func (a *app) compactCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "compact SESSION",
		Short:   "Summarise the older part of a session to free context",
		Long:    compactHelp,
		Example: "  abide compact 0198c2f1\n  abide compact 0198c2f1 --instructions \"keep the names of all files\"\n  abide compact 0198c2f1 --undo",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	instructions := c.Flags().String("instructions", "", "`TEXT` that tells the model what the summary must contain")
	undo := c.Flags().Bool("undo", false, "undo the last compaction; a second --undo redoes it")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *undo && *instructions != "" {
			return usagef("--instructions and --undo cannot be used together: --undo writes no summary")
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
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

// compact compacts a session and prints the result.
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

// compactOrCancel waits for a compaction. If ctx is done before, it cancels the
// compaction, and waits for the result of that.
func compactOrCancel(ctx context.Context, c *client.Client, p api.CompactParams) (api.CompactResult, error) {
	if err := context.Cause(ctx); err != nil {
		return api.CompactResult{}, err
	}
	stay := context.WithoutCancel(ctx)
	defer context.AfterFunc(ctx, func() { _, _ = c.AbortCompaction(stay, p.SessionID) })() // the result of Compact tells whether it was aborted
	return c.Compact(stay, p)
}

// compacted prints the result of a compaction.
func (a *app) compacted(id event.SessionID, before api.ContextWindow, r api.CompactResult) {
	switch {
	case r.Outcome == event.OutcomeSkipped:
		a.out.printf("session %s is unchanged: %s\n", id, plain(r.Error))
	case r.Outcome == event.OutcomeDone && r.ContextWindow != nil:
		a.out.printf("session %s was compacted: %s → %s\n", id, extent(before), extent(*r.ContextWindow))
		if !a.quiet {
			a.err.printf("%s\n", paint(a.err).in(faint, "undo it with: abide compact --undo "+string(id)))
		}
	}
}

// notCompacted returns the error of a compaction that failed, or nil.
func notCompacted(ctx context.Context, id event.SessionID, r api.CompactResult) error {
	var signal stopSignal
	switch {
	case r.Outcome != event.OutcomeFailed:
		return nil
	case errors.As(context.Cause(ctx), &signal):
		return fmt.Errorf("%w: the compaction was cancelled, and session %s is unchanged", signal, id)
	}
	return fmt.Errorf("session %s could not be compacted and is unchanged: %s (try again, or set compaction.model in the configuration to another model and resume the session with: abide run --resume)", id, r.Error)
}

// uncompact undoes the last compaction and prints the result.
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
	a.out.printf("undid the last compaction of session %s: %s\n", id, extent(now.ContextWindow))
	if now.CurrentTokens > now.TokenLimit && !a.quiet {
		a.err.printf("abide: a request can have at most %s tokens, so the session will be compacted again before the next one\n", grouped(now.TokenLimit))
	}
	return nil
}

// extent returns the number of messages and tokens of a conversation in words.
func extent(w api.ContextWindow) string {
	messages := "messages"
	if w.MessagesLength == 1 {
		messages = "message"
	}
	return fmt.Sprintf("%s %s, %s tokens", grouped(w.MessagesLength), messages, grouped(w.CurrentTokens))
}
