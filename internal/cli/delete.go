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

func (a *app) deleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "delete SESSION…",
		Aliases: []string{"rm"},
		Short:   "Delete sessions permanently",
		Long: `Stop sessions and delete them. This cannot be undone. Events that a fork shares are
kept until the last such fork is deleted. What memory has learned from a session is
kept, unless --forget is given. At a terminal you are asked first, unless you say --yes.`,
		Example: "  abide sessions delete 0198c2f1\n  abide sessions delete --forget 0198c2f1",
		Args:    arguments(1, -1, "at least one SESSION"),
	}
	asJSON := jsonFlag(c)
	forget := c.Flags().Bool("forget", false, "also remove from memory what came only from these sessions")
	yes := c.Flags().BoolP("yes", "y", false, "delete without asking")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			sessions, err := named(cmd.Context(), c, args) // finds all sessions before one is deleted
			if err != nil {
				return err
			}
			if err := a.confirmDelete(cmd.Context(), c, sessions, *yes || *asJSON); err != nil {
				return err
			}
			for _, id := range sessions {
				if *forget { // before the directory of the session is deleted with it
					if _, err := c.Forget(cmd.Context(), api.MemoryForgetParams{SessionID: id, Cwd: here()}); err != nil {
						return err
					}
				}
				if _, err := c.Delete(cmd.Context(), id); err != nil {
					return err
				}
				if !*asJSON {
					a.out.printf("deleted session %s\n", id)
				}
			}
			if *asJSON {
				return a.out.json(map[string]any{"deleted": sessions})
			}
			return nil
		})
	}
	return c
}

// confirmDelete shows the sessions that are to be deleted and asks the person at the terminal,
// if there is one. In a script, who names a session has decided.
func (a *app) confirmDelete(ctx context.Context, c *client.Client, sessions []event.SessionID, yes bool) error {
	if yes {
		return nil
	}
	p := a.newPrompter()
	if p == nil {
		return nil
	}
	for _, id := range sessions {
		info, err := c.Metadata(ctx, id)
		if err != nil {
			return err
		}
		if info != nil {
			a.err.printf("%s  %s  %s\n", plain(string(id)), info.State(), about(*info))
		}
	}
	what := "this session"
	if len(sessions) > 1 {
		what = fmt.Sprintf("these %d sessions", len(sessions))
	}
	agreed, err := p.confirm(ctx, "delete "+what+" permanently? (y/n)")
	if err == nil && !agreed {
		err = errors.New("nothing was deleted: you did not say yes")
	}
	return err
}
