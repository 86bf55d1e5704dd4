package cli

import (
	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) abortCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "abort SESSION",
		Short: "Stop the current turn of a session",
		Long: `Stop the current turn of a session and the commands that it waits for: with SIGINT
first, then with SIGTERM, then with SIGKILL. Close its open questions and discard queued
prompts. Return when the commands have ended. The session stays usable.

Commands in the background go on. If no turn is running, their end begins one; "abide
stop" holds the session until you send it a message, and with --all ends them too.`,
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
			r, err := abortTurn(cmd.Context(), c, api.AbortParams{SessionID: info.SessionID})
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(struct {
					SessionID event.SessionID `json:"sessionId"`
					api.AbortResult
				}{info.SessionID, r})
			}
			a.printStop(info.SessionID, r)
			return nil
		})
	}
	return c
}

// printStop prints what an abort has stopped, and what it has not.
func (a *app) printStop(id event.SessionID, r api.AbortResult) {
	a.out.printf("session %s is idle: %s\n", id, describeStop(r))
	if more := goesOn(id, r); more != "" && !a.quiet {
		a.err.printf("%s\n", more)
	}
}
