package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write the events of a session as JSON lines",
		Long: `Write the events of a session, one per line, byte for byte as they are stored, so
that the hash chain can be checked (docs/EVENTS.md). Of a damaged session, write the
events before the damage and exit with code 1.`,
		Example: "  abide sessions export 0198c2f1 -o session.jsonl",
		Args:    arguments(1, 1, "one SESSION"),
	}
	file := c.Flags().StringP("output", "o", "", "write to `FILE`, which must not exist")
	jsonFlag(c) // accepted for consistency: the output is always JSON
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			info, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if *file != "" {
				return exportFile(cmd.Context(), c, info.SessionID, *file)
			}
			return a.out.buffered(func(w io.Writer) error { return export(cmd.Context(), c, info.SessionID, w) })
		})
	}
	return c
}

// export writes all events of a session.
func export(ctx context.Context, c *client.Client, id event.SessionID, w io.Writer) error {
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil {
			return explainDamage(id, err)
		}
		if _, err := w.Write(append(e.Bytes[:len(e.Bytes):len(e.Bytes)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

// explainDamage adds the way out to the error of a damaged session.
func explainDamage(id event.SessionID, err error) error {
	var damage *client.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	return fmt.Errorf("%w; %s", err, damageHint(id, damage.After))
}

// damageHint returns what can be done with a session that is intact up to a position.
func damageHint(id event.SessionID, whole event.Seq) string {
	if whole == 0 {
		return fmt.Sprintf("no event is intact; delete it with: abide sessions delete %s", id)
	}
	return fmt.Sprintf("to continue from before the damage: abide sessions fork %s --at %d", id, whole)
}

func exportFile(ctx context.Context, c *client.Client, id event.SessionID, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usagef("--output: %w", err)
	}
	p := &printer{w: f}
	err = p.buffered(func(w io.Writer) error { return export(ctx, c, id, w) })
	return errors.Join(err, f.Close())
}
