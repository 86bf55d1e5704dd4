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
		Short:   "Delete sessions for good",
		Long: `Stops the work of sessions and deletes them. There is no way back. Events that a
fork shares stay until the last such fork is deleted. What memory has from them stays,
unless --forget says otherwise.`,
		Example: "  abide sessions delete 0198c2f1\n  abide sessions delete --forget 0198c2f1",
		Args:    arguments(1, -1, "at least one SESSION"),
	}
	asJSON := jsonFlag(c)
	forget := c.Flags().Bool("forget", false, "also remove what memory has only from them")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
			sessions, err := named(cmd.Context(), c, args) // all are known before one is deleted
			if err != nil {
				return err
			}
			for _, id := range sessions {
				if *forget { // while it is known where the session worked
					if _, err := c.Forget(cmd.Context(), api.MemoryForgetParams{SessionID: id, Cwd: here()}); err != nil {
						return err
					}
				}
				if _, err := c.Delete(cmd.Context(), id); err != nil {
					return err
				}
				if !*asJSON {
					a.out.printf("session %s is deleted\n", id)
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
