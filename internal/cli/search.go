package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
)

func (a *app) searchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "search TEXT",
		Short:   "Search the messages of all sessions, ignoring case",
		Example: "  abide sessions search \"connection refused\"",
		Args:    arguments(1, -1, "a TEXT"),
	}
	asJSON := jsonFlag(c)
	most := c.Flags().Int("max", 50, "show at most `N` matches")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text := strings.Join(args, " ")
		if text == "" {
			return usagef("the TEXT to search for is empty")
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			found, err := c.Search(cmd.Context(), api.SearchParams{Text: text, Max: *most})
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(found)
			}
			all, err := c.List(cmd.Context(), "")
			if err != nil {
				return err
			}
			return a.printMatches(found, shorten(ids(all)))
		})
	}
	return c
}

func (a *app) printMatches(found api.SearchResult, short map[string]string) error {
	t := &table{head: []string{"ID", "EVENT", "WHO", "LINE"}}
	for _, m := range found.Matches {
		who, _, _ := strings.Cut(string(m.Type), ".")
		t.add(plain(short[string(m.Session.SessionID)]), strconv.FormatInt(int64(m.Seq), 10), who, oneLine(m.Line))
	}
	if len(t.rows) > 0 {
		if err := a.print(t); err != nil {
			return err
		}
	}
	switch {
	case a.quiet:
	case len(t.rows) == 0:
		a.err.printf("no matches\n")
	case found.More:
		a.err.printf("there are more matches; increase --max to see them\n")
	}
	return nil
}
