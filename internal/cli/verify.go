package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify [SESSION…]",
		Short: "Verify the hash chain of sessions",
		Long: `Read every event of the given sessions, or of all and of their agents, and check it
against the session's hash chain. If a session is damaged, report where, why and what
can be done, and exit with code 1. A session that was marked as damaged and is intact
after all, because it was repaired or because this version can read it, can be used
again. Without a session it also reports secrets that cannot be opened, because their key
is missing: that is no damage, and does not change the exit code.`,
		Example: "  abide sessions verify\n  abide sessions verify 0198c2f1 --json",
		Args:    cobra.ArbitraryArgs,
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			sessions, err := named(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			checked, err := a.verify(cmd.Context(), c, sessions)
			if err != nil {
				return err
			}
			if *asJSON {
				err = a.out.json(checked)
			} else {
				err = a.printVerified(checked)
			}
			if len(args) == 0 {
				a.printSecrets(cmd.Context())
			}
			if err == nil && a.printDamage(checked) {
				err = &exitError{code: exitFailed}
			}
			return err
		})
	}
	return c
}

// named returns the named sessions, or all sessions if no name is given.
func named(ctx context.Context, c *client.Client, names []string) ([]event.SessionID, error) {
	var list []event.SessionID
	for _, name := range names {
		info, err := find(ctx, c, name)
		if err != nil {
			return nil, err
		}
		list = append(list, info.SessionID)
	}
	if len(names) > 0 {
		return list, nil
	}
	for s, err := range c.Sessions(ctx, api.Filter{Unlisted: true}) {
		if err != nil {
			return nil, err
		}
		list = append(list, s.SessionID)
	}
	return list, nil
}

func (a *app) verify(ctx context.Context, c *client.Client, sessions []event.SessionID) ([]api.VerifyResult, error) {
	checked := []api.VerifyResult{}
	show := a.newMeter("sessions")
	defer show.end()
	for _, id := range sessions {
		r, err := c.Verify(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("verify session %s: %w", id, err)
		}
		checked = append(checked, r)
		show.tell(int64(len(checked)), int64(len(sessions)))
	}
	return checked, nil
}

func (a *app) printVerified(checked []api.VerifyResult) error {
	if len(checked) == 0 {
		return nil
	}
	t := &table{head: []string{"ID", "EVENTS", "CHAIN", "HASH"}}
	for _, r := range checked {
		verdict := "intact"
		if r.Damage != nil {
			verdict = "DAMAGED"
		}
		t.add(plain(string(r.SessionID)), strconv.FormatInt(int64(r.Events), 10), verdict, r.Hash)
	}
	return a.print(t)
}

// printSecrets prints which secrets of the log cannot be opened. They belong to no chain, so
// sessions without them are intact.
func (a *app) printSecrets(ctx context.Context) {
	dir, path, err := a.store()
	if err != nil {
		return // the sessions were read, so there is nothing to open yet
	}
	file, found, err := daemon.InspectSecrets(ctx, path, a.keyFile(dir))
	if err != nil {
		a.err.printf("abide: %v\n", plain(err.Error()))
		return
	}
	for _, line := range secretFindings(file, found) {
		a.err.printf("abide: %s\n", plain(line))
	}
}

// printDamage prints the damage of each damaged session, and reports whether there is one.
func (a *app) printDamage(checked []api.VerifyResult) bool {
	found := false
	for _, r := range checked {
		if r.Damage != nil {
			found = true
			a.err.printf("abide: session %s is damaged at event %d: %s; %s\n",
				plain(string(r.SessionID)), r.Damage.Position, plain(r.Damage.Reason), damageHint(r.SessionID, r.Damage.Position-1))
		}
	}
	return found
}
