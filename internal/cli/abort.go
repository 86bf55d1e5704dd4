package cli

import (
	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
)

func (a *app) abortCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "abort SESSION",
		Short: "Stop the current turn of a session",
		Long: `Stop the current turn of a session, close its open questions and discard queued
prompts. The session stays usable.`,
		Example: "  abide abort 0198c2f1",
		Args:    arguments(1, 1, "one SESSION"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if err := c.Abort(cmd.Context(), info.SessionID, "user_initiated"); err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(map[string]any{"sessionId": info.SessionID, "success": true})
			}
			a.out.printf("session %s is idle\n", info.SessionID)
			return nil
		})
	}
	return c
}
