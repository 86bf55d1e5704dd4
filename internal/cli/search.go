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
		Short:   "Find a text in what was said, whatever its case",
		Example: "  abide sessions search \"connection refused\"",
		Args:    arguments(1, -1, "the TEXT to look for"),
	}
	asJSON := jsonFlag(c)
	most := c.Flags().Int("max", 50, "show at most `N` places")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text := strings.Join(args, " ")
		if text == "" {
			return usagef("the text to look for is empty")
		}
		return a.visit(cmd.Context(), func(c *client.Client) error {
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
		a.err.printf("nothing was found\n")
	case found.More:
		a.err.printf("there is more: --max shows it\n")
	}
	return nil
}
