package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) rulesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rules",
		Short: "List what you have allowed for longer than a session, and take it back",
		Long: `Lists what was allowed with "approve-here", in all sessions that work in a place,
and with "approve-always". What the configuration allows is not among it: abide
config show has that.`,
		Example: "  abide rules\n  abide rules revoke 'shell(git push)'",
		Args:    arguments(0, 0, "no arguments"),
	}
	asJSON := jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
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
		a.err.printf("nothing is allowed for longer than a session\n")
		return nil
	}
	return a.print(t)
}

func (a *app) revokeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "revoke RULE",
		Short: "Take back what was allowed for longer than a session",
		Long: `Takes a rule back, as abide rules shows it. That holds at once, in all sessions;
calls that were made are not undone.`,
		Example: "  abide rules revoke 'shell(git push)'\n  abide rules revoke --at ~/project 'shell(make)'",
		Args:    arguments(1, 1, "one RULE, as abide rules shows it"),
	}
	at := c.Flags().String("at", "", "the `PLACE` that it holds in (default: everywhere)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.visit(cmd.Context(), func(c *client.Client) error {
			found, err := c.RevokeRule(cmd.Context(), api.RevokeParams{Location: *at, Rule: args[0]})
			switch {
			case err != nil:
				return err
			case !found && *at == "":
				return usagef("there is no rule %q that holds everywhere; abide rules lists what there is, and --at PLACE means one of a place", args[0])
			case !found:
				return usagef("there is no rule %q for %s; abide rules lists what there is", args[0], *at)
			}
			a.out.printf("%s is asked about again\n", args[0])
			return nil
		})
	}
	return c
}
