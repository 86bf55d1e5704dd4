package cli

import (
	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) deleteCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "delete SESSION…",
		Aliases: []string{"rm"},
		Short:   "Delete sessions permanently",
		Long: `Stop sessions and delete them. This cannot be undone. Events that a fork shares are
kept until the last such fork is deleted. What memory has learned from a session is
kept, unless --forget is given.`,
		Example: "  abide sessions delete 0198c2f1\n  abide sessions delete --forget 0198c2f1",
		Args:    arguments(1, -1, "at least one SESSION"),
	}
	asJSON := jsonFlag(c)
	forget := c.Flags().Bool("forget", false, "also remove from memory what came only from these sessions")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			sessions, err := named(cmd.Context(), c, args) // finds all sessions before one is deleted
			if err != nil {
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
