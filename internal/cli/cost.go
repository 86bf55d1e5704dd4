package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/scripted"
)

var costHelp = `Show what the model requests of all sessions, or of one, have cost: the tokens that the
providers have counted, the share of the input that came from their caches, and the price.

Requests of agents are counted with the session that started them. What deleted sessions
have cost stays in the sums, without their names. Days are those of the machine's time
zone.

The price of a request is the one that was known when it was made: that of [models] in the
configuration, or of the built-in list, which is of ` + catalog.Checked + `. A sum with requests
whose price is not known is marked with a + and says how many they are; it never counts
them as free. Only the models that abide itself brings, offline and scripted, are free.`

// costColumns are the names of what costs can be summed up by.
var costColumns = []string{"session", "day", "model", "purpose"}

func (a *app) costCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "cost [SESSION]",
		Short:   "Show what model requests have cost",
		Long:    costHelp,
		Example: "  abide cost\n  abide cost 0198c2f1 --by model,purpose\n  abide cost --since 7d --by day --json | jq '.costs[].costUsd'",
		Args:    arguments(0, 1, "at most one SESSION"),
	}
	asJSON := jsonFlag(c)
	by := c.Flags().StringSlice("by", nil, "sum up by `COLUMNS`: any of session, day, model and purpose (default model; with a SESSION, purpose and model)")
	since := c.Flags().String("since", "", "count only the requests since the day of the `TIME`")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := costParams(*by, *since, len(args) == 1)
		if err != nil {
			return err
		}
		return a.withVisitor(cmd.Context(), func(c *client.Client) error {
			if len(args) == 1 {
				info, err := find(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				p.SessionID = info.SessionID
			}
			if *asJSON {
				r, err := c.Cost(cmd.Context(), p)
				return first(err, a.out.json(r))
			}
			wanted := p.By
			if !slices.Contains(p.By, "model") { // without the model nobody can tell which requests were free
				p.By = append(slices.Clip(p.By), "model")
			}
			r, err := c.Cost(cmd.Context(), p)
			if err != nil {
				return err
			}
			r.Costs = sumUp(r.Costs, wanted)
			return a.printCosts(r, wanted)
		})
	}
	return c
}

// costParams returns what is asked for. By is in the order of the columns.
func costParams(by []string, since string, one bool) (p api.CostParams, err error) {
	switch {
	case len(by) == 0 && one:
		by = []string{"model", "purpose"}
	case len(by) == 0:
		by = []string{"model"}
	}
	for _, name := range by {
		if !slices.Contains(costColumns, name) {
			return p, usagef("--by %s: use any of %s", name, strings.Join(costColumns, ", "))
		}
	}
	for _, name := range costColumns {
		if slices.Contains(by, name) {
			p.By = append(p.By, name)
		}
	}
	from, err := timeFlag("since", since, time.Now())
	if err != nil || from == "" {
		return p, err
	}
	t, err := time.Parse(time.RFC3339, from)
	p.Since = t.In(time.Local).Format(time.DateOnly)
	return p, err
}

func (a *app) printCosts(r api.CostResult, by []string) error {
	if len(r.Costs) == 0 {
		if !a.quiet {
			a.err.printf("no model request was made\n")
		}
		return nil
	}
	t := &table{}
	for _, name := range by {
		t.head = append(t.head, strings.ToUpper(name))
	}
	t.head = append(t.head, "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST")
	var total api.CostSum
	for _, c := range r.Costs {
		addSum(&total, c)
		t.add(append(costKeys(c, by), costCells(c)...)...)
	}
	if len(r.Costs) > 1 {
		keys := make([]string, len(by))
		keys[0] = "total"
		t.add(append(keys, costCells(total)...)...)
	}
	if err := a.print(t); err != nil || a.quiet {
		return err
	}
	if n := total.Unpriced - total.Unreported; n > 0 {
		a.err.printf("%s no known price, which is not in the sums: set input_price and output_price in [models.\"NAME\"] for later requests\n", plural(int(n), "request has", "requests have"))
	}
	if n := total.Unreported; n > 0 {
		a.err.printf("%s no tokens that the provider has counted, so neither tokens nor price are in the sums\n", plural(int(n), "request has", "requests have"))
	}
	if r.Unread > 0 {
		a.err.printf("%s not counted, because the log cannot be read: see abide sessions verify\n", plural(r.Unread, "session is", "sessions are"))
	}
	return nil
}

// sumUp sums costs up by the given columns, in the order in which they come. Requests to the
// models that abide brings cost nothing.
func sumUp(costs []api.CostSum, by []string) (sums []api.CostSum) {
	for _, c := range costs {
		if c.Model == offline.Name || c.Model == scripted.Name || strings.HasPrefix(c.Model, scripted.Name+":") {
			c.CostUSD, c.Unpriced = new(float64), 0
		}
		i := slices.IndexFunc(sums, func(s api.CostSum) bool { return slices.Equal(costKeys(s, by), costKeys(c, by)) })
		if i < 0 {
			sums = append(sums, c)
			continue
		}
		addSum(&sums[i], c)
	}
	return sums
}

// addSum adds what matters for the line of totals.
func addSum(to *api.CostSum, c api.CostSum) {
	to.Requests += c.Requests
	to.Failed += c.Failed
	to.Unpriced += c.Unpriced
	to.Unreported += c.Unreported
	to.InputTokens += c.InputTokens
	to.OutputTokens += c.OutputTokens
	to.CacheReadTokens += c.CacheReadTokens
	to.CacheWriteTokens += c.CacheWriteTokens
	switch {
	case c.CostUSD == nil:
	case to.CostUSD == nil:
		to.CostUSD = new(*c.CostUSD)
	default:
		*to.CostUSD += *c.CostUSD
	}
}

// costKeys returns the cells that say what a sum is about.
func costKeys(c api.CostSum, by []string) (cells []string) {
	for _, name := range by {
		switch name {
		case "session":
			id := "(deleted)"
			if c.SessionID != "" {
				id = plain(string(c.SessionID))
			}
			cells = append(cells, id)
		case "day":
			cells = append(cells, c.Day)
		case "model":
			cells = append(cells, oneLine(c.Model))
		case "purpose":
			cells = append(cells, oneLine(c.Purpose))
		}
	}
	return cells
}

// costCells returns the cells with the numbers of a sum.
func costCells(c api.CostSum) []string {
	input := c.InputTokens + c.CacheReadTokens + c.CacheWriteTokens
	cached := "-"
	if input > 0 {
		cached = fmt.Sprintf("%.0f%%", 100*float64(c.CacheReadTokens)/float64(input))
	}
	return []string{grouped(int(c.Requests)), grouped(int(input)), cached, grouped(int(c.OutputTokens)), price(c)}
}

// price returns the price of a sum. What is not known is never zero.
func price(c api.CostSum) string {
	switch {
	case c.CostUSD == nil:
		return "unknown"
	case c.Unpriced > 0:
		return dollars(*c.CostUSD) + " + " + plural(int(c.Unpriced), "unknown", "unknown")
	case *c.CostUSD == 0:
		return "free"
	}
	return dollars(*c.CostUSD)
}
