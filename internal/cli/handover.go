package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/tui"
)

func (a *app) attachCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "attach TASK",
		Short: "Give your terminal to a command in the background",
		Long: `Give your terminal to a command that runs in the background and has a terminal of its
own: you see its screen, which gets the size of yours, and what you type goes to it. A
command without a terminal whose input is open is sent the lines that you type.

Ctrl-] takes the terminal back. The command goes on, and its terminal gets the size that
it had. In the chat, /attach and Ctrl-T do the same.`,
		Example: "  abide attach dev-server",
		Args:    arguments(1, 1, "one TASK"),
	}
	session := c.Flags().String("session", "", "`SESSION` of the TASK, if several sessions have one with this name")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if !a.chats() || dumb() {
			return usagef("abide attach needs a terminal that can be drawn on; to read the output: abide logs -f %s", args[0])
		}
		return a.withClient(cmd.Context(), func(c *client.Client) error {
			t, err := theTask(cmd.Context(), c, args[0], *session)
			if err == nil && *session != "" {
				t, err = taskOf(cmd.Context(), c, t)
			}
			if err != nil {
				return err
			}
			return a.attach(cmd.Context(), c, t)
		})
	}
	return c
}

// taskOf returns what is known of a command of a session.
func taskOf(ctx context.Context, c *client.Client, named api.Task) (api.Task, error) {
	list, err := c.Tasks(ctx, api.TasksParams{SessionID: named.SessionID, All: true})
	if err != nil {
		return named, err
	}
	for _, t := range slices.Backward(list.Tasks) {
		if t.TaskID == named.TaskID {
			return t, nil
		}
	}
	return named, usagef("session %s has no task %s; list the tasks with: abide ps --all %s", named.SessionID, named.TaskID, named.SessionID)
}

// attach gives the terminal to a command until the person takes it back.
func (a *app) attach(ctx context.Context, c *client.Client, t api.Task) error {
	switch {
	case hasEnded(t):
		return usagef("the task %s has ended; to read its output: abide logs %s", t.TaskID, t.TaskID)
	case !t.Input:
		return usagef("the task %s takes no input: it was started without a terminal, and its input is not open; to read its output: abide logs -f %s", t.TaskID, t.TaskID)
	}
	messages := make(chan string, 100)
	back := a.divertErrors(messages)
	defer back()
	_, err := tui.Run(ctx, tui.Options{
		Client: c, In: terminal(a.in), Out: terminal(a.out), Screen: screenOptions(), Attach: &t, Messages: messages,
	})
	return err
}
