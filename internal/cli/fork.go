package cli

import (
	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) forkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Create a session that continues from a position in another",
		Long: `Create a session that shares the events of another session up to a position, and
print its id. Nothing is copied, and the other session is not changed. A damaged
session can be forked before the damage.`,
		Example: "  abide sessions fork 0198c2f1 --at 12 --name \"second try\"",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	at := c.Flags().Int64("at", 0, "last `POSITION` to include (default the end)")
	name := c.Flags().String("name", "", "`NAME` of the new session")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *at < 0 || cmd.Flags().Changed("at") && *at == 0 {
			return usagef("--at: positions start at 1 (list them with: abide sessions show)")
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if info.Abide != nil && info.Abide.Damage == "" && event.Seq(*at) > info.Abide.Events {
				return usagef("--at: session %s ends at position %d", info.SessionID, info.Abide.Events)
			}
			made, err := c.Fork(cmd.Context(), api.ForkParams{SessionID: info.SessionID, At: event.Seq(*at), Name: *name})
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(made)
			}
			a.out.printf("%s\n", made.SessionID)
			return nil
		})
	}
	return c
}
