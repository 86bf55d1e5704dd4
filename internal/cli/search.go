package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/eventlog"
)

const searchLong = `Searches what was said by users and models in all sessions, whatever the case, and lists
the messages of the last modified session first. What a rewind has taken back is not found.

All words of TEXT must be in a message. "Words in double quotes" must follow each other,
and a word that ends with * is the start of one. The messages are in an index, which is
brought up to date before it is searched; --rebuild makes a new one from the log.`

func (a *app) searchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "search TEXT",
		Short:   "Search the messages of all sessions, ignoring case",
		Long:    searchLong,
		Example: "  abide sessions search connection refused\n  abide sessions search '\"connection refused\" postgres*'",
		Args:    arguments(1, -1, "a TEXT"),
	}
	asJSON := jsonFlag(c)
	most := c.Flags().Int("max", 50, "show at most `N` matches")
	rebuild := c.Flags().Bool("rebuild", false, "build the index of the messages anew")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text := strings.Join(args, " ")
		if _, err := (eventlog.Search{Text: text}).Phrases(); err != nil {
			return usagef("the TEXT to search for has no word")
		}
		if *most < 0 {
			return usagef("--max: %d is negative; give the number of matches, or 0 for the default", *most)
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			found, err := a.search(cmd.Context(), c, api.SearchParams{Text: text, Max: *most, Rebuild: *rebuild})
			if err != nil {
				return err
			}
			if *asJSON {
				return a.out.json(found)
			}
			return a.printMatches(found)
		})
	}
	return c
}

// search searches until the index has all sessions.
func (a *app) search(ctx context.Context, c *client.Client, p api.SearchParams) (api.SearchResult, error) {
	show := a.newMeter("sessions in the index")
	defer show.end()
	for total := 0; ; {
		found, err := c.Search(ctx, p)
		if err != nil || found.Behind == 0 {
			return found, err
		}
		p.Rebuild = false
		total = max(total, found.Behind)
		show.tell(int64(total-found.Behind), int64(total))
	}
}

func (a *app) printMatches(found api.SearchResult) error {
	t := &table{head: []string{"ID", "EVENT", "WHO", "LINE"}}
	for _, m := range found.Matches {
		who, _, _ := strings.Cut(string(m.Type), ".")
		t.add(plain(startOf(string(m.Session.SessionID))), strconv.FormatInt(int64(m.Seq), 10), who, oneLine(m.Line))
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
