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
		Long: `Stops commands with all that they started: first with a request to end, then with
force. It returns when nothing of them is left. Their agents are told.`,
		Example: "  abide ps\n  abide stop dev-server",
		Args:    arguments(1, 1000, "one TASK or more"),
	}
	session := c.Flags().String("session", "", "the session, if several have such a TASK")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
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
