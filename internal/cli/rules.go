package cli

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) rulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "List and revoke permissions that outlast a session",
		Long: `List what was approved with "approve-here", for all sessions of a directory, and with
"approve-always". Permissions from the configuration are not included; see "abide
config show".`,
		Example: "  abide rules\n  abide rules revoke 'shell(git push)'",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			rules, err := c.Rules(cmd.Context())
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(rules)
			}
			return a.listRules(rules)
		})
	}
	c.AddCommand(a.revokeCommand())
	return c
}

func (a *app) listRules(rules api.RulesResult) error {
	t := &table{head: []string{"RULE", "WHERE"}}
	for _, r := range rules.Always {
		t.add(r.Text, "everywhere")
	}
	for _, place := range slices.Sorted(maps.Keys(rules.Locations)) {
		for _, r := range rules.Locations[place] {
			t.add(r.Text, place)
		}
	}
	if len(t.rows) == 0 {
		a.err.printf("there are no rules: nothing was approved beyond a session\n")
		return nil
	}
	return a.print(t)
}

func (a *app) revokeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke RULE",
		Short: "Revoke a rule",
		Long: `Revoke a rule that "abide rules" lists. This takes effect at once, in all sessions;
calls that were already made are not undone.`,
		Example: "  abide rules revoke 'shell(git push)'\n  abide rules revoke --at ~/project 'shell(make)'",
		Args:    arguments(1, 1, "one RULE as abide rules prints it"),
	}
	at := c.Flags().String("at", "", "directory `DIR` that the rule applies to (default: everywhere)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			place, err := placeOf(*at)
			if err != nil {
				return err
			}
			found, err := c.RevokeRule(cmd.Context(), api.RevokeParams{Location: place, Rule: args[0]})
			switch {
			case err != nil:
				return err
			case !found && *at == "":
				return usagef("there is no rule %q that applies everywhere; list the rules with: abide rules (and name the directory of a rule with --at DIR)", args[0])
			case !found:
				return usagef("there is no rule %q for %s; list the rules with: abide rules", args[0], place)
			}
			a.out.printf("revoked %s\n", args[0])
			return nil
		})
	}
	return c
}

// placeOf returns the place that a directory belongs to, under which its rules are kept;
// empty for everywhere.
func placeOf(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	absolute, err := filepath.Abs(dir)
	return places.Locate(absolute).Key, err
}
