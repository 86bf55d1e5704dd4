package cli

import (
	"math"
	"strconv"

	"github.com/abide-run/abide/internal/config"
	"github.com/abide-run/abide/internal/event"
)

// budgetRules converts the limits of the configuration. config.Load has checked them.
func budgetRules(c config.Budget) event.BudgetRules {
	tokens := func(n *int) *int64 {
		if n == nil {
			return nil
		}
		return new(int64(*n))
	}
	return event.BudgetRules{SessionUSD: c.SessionCost, SessionTokens: tokens(c.SessionTokens), DayUSD: c.DayCost, DayTokens: tokens(c.DayTokens)}
}

// limit returns the limits that the flags set for the session.
func (f *runFlags) limit() (r event.BudgetRules, err error) {
	if f.maxCost != "" {
		usd, err := strconv.ParseFloat(f.maxCost, 64)
		if err != nil || !(usd >= 0) || math.IsInf(usd, 0) {
			return r, usagef("--max-cost: %q is not an amount of US dollars; give 0 or more, like 2.50", f.maxCost)
		}
		r.SessionUSD = &usd
	}
	if f.maxTokens != "" {
		tokens, err := strconv.ParseInt(f.maxTokens, 10, 64)
		if err != nil || tokens < 0 {
			return r, usagef("--max-tokens-total: %q is not a number of tokens; give 0 or more, like 500000", f.maxTokens)
		}
		r.SessionTokens = &tokens
	}
	return r, nil
}

// asksBudget reports whether the question is whether to go on although a budget is reached.
func (q question) asksBudget() bool { return q.Form != nil && q.Form.Budget != nil }
