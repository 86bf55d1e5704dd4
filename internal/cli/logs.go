package cli

import (
	"bytes"
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
		Example: "  abide logs -f dev-server\n  abide logs -n 20 -f --stream stderr dev-server",
		Args:    arguments(1, 1, "one TASK"),
	}
	session := c.Flags().String("session", "", "`SESSION` of the TASK, if several sessions have one with this name")
	follow := c.Flags().BoolP("follow", "f", false, "follow the output until the command ends")
	lines := c.Flags().IntP("tail", "n", -1, "print only the last `N` lines; all if negative")
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
			return a.logs(cmd.Context(), c, *follow, *lines, api.TaskOutputParams{SessionID: t.SessionID, TaskID: t.TaskID, Stream: *stream})
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

// logs prints the output of a task: all of it if follow is true, and otherwise what there
// was when it began. Only the last lines are printed if their number is not negative. A
// command may print faster than anybody reads.
func (a *app) logs(ctx context.Context, c *client.Client, follow bool, lines int, p api.TaskOutputParams) error {
	var out io.Writer = a.out
	if terminal(a.out.w) != nil {
		calm := &calmWriter{w: a.out}
		defer func() { _ = calm.Close() }() // the terminal is gone if that fails
		out = calm
	}
	if lines >= 0 {
		last, next, err := lastLines(ctx, c, lines, p)
		if err != nil {
			return err
		}
		if _, err := out.Write(last); err != nil || !follow {
			return err
		}
		p.Offset = next
	}
	p.Wait = follow
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
		p.Offset = r.Next
	}
}

// The number of bytes in which the last lines are looked for: few at first, and not more than
// fit into memory.
const (
	firstTail = 16 << 10
	mostTail  = 64 << 20
)

// lastLines returns the last lines of the output of a task as it is now, and the offset behind
// them.
func lastLines(ctx context.Context, c *client.Client, lines int, p api.TaskOutputParams) (last []byte, next int64, err error) {
	for p.Tail = firstTail; ; p.Tail *= 4 {
		found, next, err := lastBytes(ctx, c, p)
		if err != nil {
			return nil, 0, err
		}
		if last, whole := cutLines(found, lines); whole || next <= p.Tail || p.Tail >= mostTail {
			return last, next, nil
		}
	}
}

// lastBytes returns the last bytes of the output of a task as it is now, and the offset behind
// them.
func lastBytes(ctx context.Context, c *client.Client, p api.TaskOutputParams) (found []byte, next int64, err error) {
	for end := int64(-1); ; p.Offset, p.Tail = next, 0 {
		r, err := c.TaskOutput(ctx, p)
		if err != nil {
			return nil, 0, err
		}
		found, next, end = append(found, r.Data...), r.Next, max(end, r.Task.Bytes)
		if r.End || next >= end || len(r.Data) == 0 && r.Omitted == 0 {
			return found, next, nil
		}
	}
}

// cutLines returns the last lines of an output, and whether the first of them begins in it.
func cutLines(output []byte, lines int) (last []byte, whole bool) {
	from := len(output)
	for range lines {
		if from == 0 {
			return output, false
		}
		from = bytes.LastIndexByte(output[:from-1], '\n') + 1
	}
	return output[from:], from > 0
}
