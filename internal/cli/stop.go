package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) stopCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "stop TASK...",
		Short: "Stop commands that agents run",
		Long: `Stop commands and every process that they started: with SIGTERM first, then with
SIGKILL. Return when no process is left. Their agents are notified.`,
		Example: "  abide ps\n  abide stop dev-server",
		Args:    arguments(1, 1000, "at least one TASK"),
	}
	session := c.Flags().String("session", "", "`SESSION` of the TASK, if several sessions have one with this name")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			var failed error
			for _, name := range args {
				t, err := theTask(cmd.Context(), c, name, *session)
				if err == nil {
					t, err = c.StopTask(cmd.Context(), api.TaskParams{SessionID: t.SessionID, TaskID: t.TaskID})
				}
				if err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				a.out.printf("%s %s\n", t.TaskID, ending(t))
			}
			return failed
		})
	}
	return c
}
