package config

import (
	"strings"
	"testing"
)

func TestABudgetIsAnAmount(t *testing.T) {
	for text, want := range map[string]string{
		"session_cost = 0.0":               "",
		"session_cost = 1e300":             "",
		"session_tokens = 0":               "",
		"day_tokens = 9223372036854775807": "",
		"session_cost = -0.5":              "budget.session_cost: -0.5 is negative; use 0 or more",
		"day_cost = inf":                   "budget.day_cost: +Inf is not an amount of US dollars",
		"day_cost = -inf":                  "budget.day_cost: -Inf is not an amount",
		"session_cost = nan":               "budget.session_cost: NaN is not an amount",
		"session_tokens = -1":              "budget.session_tokens: -1 is negative",
		"day_tokens = 9223372036854775808": "too large to fit",
		"daily = 3":                        "daily",
	} {
		_, err := Load(Layer{Name: "c.toml", Data: []byte("[budget]\n" + text)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
