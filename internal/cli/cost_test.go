package cli

import (
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

// TestModelsOfAbideAreFree: they have a price in every sum, and no other model without a
// price has.
func TestModelsOfAbideAreFree(t *testing.T) {
	dollar := 1.0
	costs := []api.CostSum{
		{Day: "d1", Model: "offline", Requests: 2, Unpriced: 2},
		{Day: "d1", Model: "m", Requests: 1, CostUSD: &dollar},
		{Day: "d2", Model: "scripted:f", Requests: 1, Unpriced: 1},
		{Day: "d3", Model: "x", Requests: 1, Unpriced: 1},
	}
	for column, want := range map[string][]string{
		"model": {"offline free", "m $1.00", "scripted:f free", "x unknown"},
		"day":   {"d1 $1.00", "d2 free", "d3 unknown"},
	} {
		var got []string
		for _, c := range sumUp(costs, []string{column}) {
			got = append(got, costKeys(c, []string{column})[0]+" "+price(c))
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %s: %q, want %q", column, got, want)
		}
	}
	if *costs[1].CostUSD != 1 || costs[0].Unpriced != 2 {
		t.Errorf("the costs were changed: %+v", costs)
	}
}
