package spelling_test

import (
	"testing"

	"github.com/abide-run/abide/internal/spelling"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"model", "model", 0}, {"model", "mode", 1}, {"model", "modle", 1},
		{"model", "medal", 2}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}, {"müsli", "musli", 1}, {"a", "b", 1}, {"flaw", "lawn", 2},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := spelling.Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
