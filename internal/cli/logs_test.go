package cli

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

func TestTheLastLinesOfAnOutput(t *testing.T) {
	for _, c := range []struct {
		output string
		lines  int
		want   string
		whole  bool
	}{
		{"a\nb\nc\n", 0, "", true},
		{"a\nb\nc\n", 1, "c\n", true},
		{"a\nb\nc", 1, "c", true},
		{"a\nb\nc\n", 2, "b\nc\n", true},
		{"a\n\n\n", 2, "\n\n", true},
		{"a\nb\n", 2, "a\nb\n", false},
		{"a\nb\n", 9, "a\nb\n", false},
		{strings.Repeat("x", 99), 1, strings.Repeat("x", 99), false},
		{"", 3, "", false},
	} {
		if got, whole := cutLines([]byte(c.output), c.lines); string(got) != c.want || whole != c.whole {
			t.Errorf("the last %d lines of %q: %q, %v, want %q, %v", c.lines, c.output, got, whole, c.want, c.whole)
		}
	}
}

// TestACauseIsSaidOnce: a model that cannot be reached for an hour is tried often, and only the
// time of the next attempt is new.
func TestACauseIsSaidOnce(t *testing.T) {
	var said strings.Builder
	p := &progress{err: &printer{w: &said}}
	for _, message := range []string{
		"no answer. Trying again in 1s; giving up at 8.", "no answer. Trying again in 2s; giving up at 8.",
		"refused. Trying again in 4s; giving up at 8.", "something else.", "refused. Trying again in 8s; giving up at 8.",
	} {
		p.info(event.SessionInfoData{InfoType: "model_retry", Message: message})
	}
	want := `no answer. Trying again in 1s; giving up at 8.
Trying again in 2s; giving up at 8.
refused. Trying again in 4s; giving up at 8.
something else.
Trying again in 8s; giving up at 8.
`
	if said.String() != want {
		t.Errorf("said:\n%s\nwant:\n%s", said.String(), want)
	}
}
