package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) logsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "logs TASK",
		Short: "Print the output of a command",
		Long: `Print the output of a command, byte for byte. On a terminal, only its text and its
colours are printed, so that the terminal stays as it was. With -f, follow it until the
command ends. The exit code does not depend on that of the command, which "abide ps
--all" shows.`,
		Example: "  abide logs -f dev-server\n  abide logs --tail 4096 --stream stderr dev-server",
		Args:    arguments(1, 1, "one TASK"),
	}
	session := c.Flags().String("session", "", "`SESSION` of the TASK, if several sessions have one with this name")
	follow := c.Flags().BoolP("follow", "f", false, "follow the output until the command ends")
	tail := c.Flags().Int64("tail", 0, "print only the last `N` bytes")
	stream := c.Flags().String("stream", "", "print only one `STREAM`: stdout or stderr")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		with := a.withVisitor
		if *follow {
			with = a.withClient // following may take long, so this process may become the engine
		}
		return with(cmd.Context(), func(c *client.Client) error {
			t, err := theTask(cmd.Context(), c, args[0], *session)
			if err != nil {
				return err
			}
			return a.logs(cmd.Context(), c, *follow, api.TaskOutputParams{SessionID: t.SessionID, TaskID: t.TaskID, Tail: *tail, Stream: *stream})
		})
	}
	return c
}

// theTask finds a task by its name, in the given session if there is one.
func theTask(ctx context.Context, c *client.Client, name, session string) (api.Task, error) {
	if session == "" {
		return findTask(ctx, c, name)
	}
	info, err := find(ctx, c, session)
	return api.Task{SessionID: info.SessionID, TaskID: name}, err
}

// logs prints the output of a task: all of it if follow is true, and otherwise what
// there was when it began. A command may print faster than anybody reads.
func (a *app) logs(ctx context.Context, c *client.Client, follow bool, p api.TaskOutputParams) error {
	p.Wait = follow
	var out io.Writer = a.out
	if terminal(a.out.w) != nil {
		calm := &calmWriter{w: a.out}
		defer func() { _ = calm.Close() }() // the terminal is gone if that fails
		out = calm
	}
	end := int64(-1)
	for {
		r, err := c.TaskOutput(ctx, p)
		if err != nil {
			return err
		}
		if end < 0 {
			end = r.Task.Bytes
		}
		if r.Omitted > 0 {
			a.err.printf("abide: %d bytes of output are missing here: they were not kept\n", r.Omitted)
		}
		if _, err := out.Write(r.Data); err != nil {
			return err
		}
		if r.End || !follow && (r.Next >= end || len(r.Data) == 0 && r.Omitted == 0) {
			return nil
		}
		p.Offset, p.Tail = r.Next, 0
	}
}
