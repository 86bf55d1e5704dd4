package turn_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

func TestWhatARequestWouldExceed(t *testing.T) {
	tokens := func(n int64) event.BudgetRules { return event.BudgetRules{SessionTokens: &n} }
	money := func(usd float64) event.BudgetRules { return event.BudgetRules{SessionUSD: &usd} }
	spent := func(n int64) turn.Spending { return turn.Spending{NanoUSD: n, Tokens: n} }
	for name, c := range map[string]struct {
		rules       event.BudgetRules
		spent, next turn.Spending
		raised      string // empty if the request may be made
	}{
		"fits exactly":            {tokens(100), spent(90), spent(10), ""},
		"one token too many":      {tokens(100), spent(90), spent(11), `{"sessionTokens":200}`},
		"nothing is left":         {tokens(100), spent(100), spent(1), `{"sessionTokens":200}`},
		"far beyond":              {tokens(100), spent(250), spent(60), `{"sessionTokens":400}`},
		"a whole step beyond":     {tokens(100), spent(100), spent(100), `{"sessionTokens":200}`},
		"nothing":                 {tokens(0), spent(0), spent(80), `{"sessionTokens":106}`},
		"huge":                    {tokens(math.MaxInt64), spent(math.MaxInt64), spent(math.MaxInt64), ""},
		"nearly huge":             {tokens(math.MaxInt64 - 5), spent(math.MaxInt64), spent(1), `{"sessionTokens":9223372036854775807}`},
		"a billionth of a dollar": {money(1e-9), spent(0), spent(1), ""},
		"two of them":             {money(1e-9), spent(1), spent(1), `{"sessionCostUsd":2e-9}`},
		"more money than exists":  {money(1e300), spent(math.MaxInt64), spent(math.MaxInt64), ""},
		"no money":                {money(0), spent(0), spent(8), `{"sessionCostUsd":2.5e-8}`},
		"no limit":                {event.BudgetRules{}, spent(math.MaxInt64), spent(math.MaxInt64), ""},
		"other sessions":          {event.BudgetRules{DayTokens: new(int64(10))}, spent(0), spent(11), `{"dayTokens":20}`},
	} {
		w := newWriter(t).add(start, event.SessionConfiguredData{Budget: c.rules})
		asked := turn.Purchase{Session: c.spent, Day: c.spent, Next: c.next}
		reached := w.state.Limits("2026-01-02").Exceeds(asked)
		if reached == nil {
			if c.raised != "" {
				t.Errorf("%s: the request is made, want the limits %s", name, c.raised)
			}
			continue
		}
		if raised, _ := json.Marshal(reached.Raised); string(raised) != c.raised {
			t.Errorf("%s: the limits become %s, want %s", name, raised, c.raised)
		}
		form := turn.AskBudget("b", *reached)
		w.add(form)
		record, ok, err := w.state.FillIn("b", "", turn.Filled{Action: turn.Accept})
		if !ok || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.add(record...)
		if left := w.state.Limits("2026-01-02").Exceeds(asked); left != nil {
			t.Errorf("%s: after a yes it still exceeds %+v", name, left)
		}
		if left := w.state.Limits("2026-01-03").Exceeds(asked); (left == nil) != (c.rules.DayTokens == nil) {
			t.Errorf("%s: on the next day it exceeds %+v", name, left)
		}
	}
}

// Whoever sets other limits has the last word: what was agreed to before does not count.
func TestOtherLimitsOfTheConfigurationReplaceRaisedOnes(t *testing.T) {
	limit := func(n int64) event.SessionConfiguredData {
		return event.SessionConfiguredData{Budget: event.BudgetRules{SessionTokens: new(int64(100))}, Limit: event.BudgetRules{SessionTokens: &n}}
	}
	raised := event.BudgetRaisedData{Limits: event.BudgetRules{SessionTokens: new(int64(1000))}}
	asked := turn.Purchase{Session: turn.Spending{Tokens: 500}}
	for name, c := range map[string]struct {
		then event.SessionConfiguredData
		over bool
	}{
		"the same": {limit(10), false},
		"less":     {limit(5), true},
		"more":     {limit(600), false},
	} {
		w := newWriter(t).add(start, limit(10), raised, c.then)
		if over := w.state.Limits("").Exceeds(asked) != nil; over != c.over {
			t.Errorf("%s: the request exceeds the limit: %v", name, over)
		}
	}
}
