package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/event"
)

func (a *app) pruneCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "prune",
		Short: "Delete old sessions permanently",
		Long: `Delete the sessions that were last modified before some time. This cannot be undone;
--dry-run only says what would be deleted, and why the rest would be kept.

A session is kept if it is unfinished, waits for an answer, runs a command, is in use,
is damaged, or has a name (unless --include-named is given). Without --older-than, the
age is that of [retention] sessions in the configuration, which abide serve applies by
itself, every hour. Nothing is deleted by itself if that is not set.`,
		Example: "  abide sessions prune --older-than 90d --dry-run",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	age := c.Flags().String("older-than", "", "`AGE` from which sessions are deleted, like 36h, 90d or 12w")
	p := api.PruneParams{}
	c.Flags().BoolVar(&p.DryRun, "dry-run", false, "delete nothing")
	c.Flags().BoolVar(&p.IncludeNamed, "include-named", false, "also delete sessions that have a name")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		keep, err := a.retention(*age)
		if err != nil {
			return err
		}
		p.ModifiedBefore = event.FormatTime(time.Now().Add(-keep))
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			result, err := c.Prune(cmd.Context(), p)
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(result)
			}
			return a.printPruned(result)
		})
	}
	return c
}

// retention returns the age from which sessions are deleted: that of the flag, or that of
// the configuration.
func (a *app) retention(flag string) (time.Duration, error) {
	if flag != "" {
		keep, err := config.ParseAge(flag)
		if err != nil {
			return 0, usagef("--older-than: %v", err)
		}
		return keep, nil
	}
	loaded, err := a.settings()
	if err != nil {
		return 0, err
	}
	if loaded.Config.Retention.Sessions == "" {
		return 0, usagef("say which sessions are old with --older-than, or set sessions in [retention] of the configuration")
	}
	return loaded.Config.Retention.Sessions.Value(), nil
}

func (a *app) printPruned(r api.PruneResult) error {
	done := "deleted"
	if r.DryRun {
		done = "would go"
	}
	t := &table{head: []string{"ID", "MODIFIED", "VERDICT", "WHY", "ABOUT"}}
	for _, s := range r.Old {
		verdict, why := done, "it is old"
		if reason := r.Reasons[s.SessionID]; reason != "" {
			verdict, why = "kept", reason
		}
		t.add(plain(startOf(string(s.SessionID))), age(s.ModifiedTime, time.Now()), verdict, why, about(s))
	}
	if len(t.rows) > 0 {
		if err := a.print(t); err != nil {
			return err
		}
	}
	if !a.quiet {
		a.err.printf("%s: %d of %d old sessions, %s\n", done, len(r.Candidates)-droppedCandidates(r), len(r.Old), size(r.FreedBytes))
	}
	return nil
}

// droppedCandidates counts the candidates that were kept after all, because they were used
// meanwhile.
func droppedCandidates(r api.PruneResult) (n int) {
	for _, id := range r.Candidates {
		if r.Reasons[id] != "" {
			n++
		}
	}
	return n
}
