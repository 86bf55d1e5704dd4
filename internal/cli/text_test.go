package cli

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func FuzzTextOfOthersIsHarmless(f *testing.F) {
	for _, s := range []string{"", "plain", "a\x1b[31mb", "\u009b31m", "a\nb\tc", "漢字 e\u0301", "\u202eabc", "\xff\xfe"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		got := plain(s)
		if !utf8.ValidString(got) {
			t.Errorf("plain(%q) is not UTF-8", s)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("plain(%q) has %U", s, r)
			}
		}
		if line := oneLine(s); strings.ContainsAny(line, "\n\t") {
			t.Errorf("oneLine(%q) = %q", s, line)
		}
		if most = most % 1000; most > 0 && columns(clip(got, most)) > most {
			t.Errorf("clip(%q, %d) is wider", got, most)
		}
		if most > 1 {
			checkFold(t, got, most)
		}
	})
}

func TestClipShowsThatItCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"漢字", 4, "漢字"}, {"漢字", 3, "漢…"}, {"漢字x", 4, "漢…"}, {"e\u0301e\u0301", 2, "e\u0301e\u0301"}, {"", 3, ""},
	} {
		if got := clip(c.text, c.most); got != c.want {
			t.Errorf("clip(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestTheNearestFlagIsSuggestedIfThereIsOne(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range []string{"model", "max-steps", "name", "p"} {
		flags.String(name, "", "")
	}
	for name, want := range map[string]string{"modle": "model", "modell": "model", "maxsteps": "max-steps", "nam": "name", "zzzzzz": "", "": "", "x": ""} {
		if got := nearest(name, flags); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestShortIdsStillTellSessionsApart(t *testing.T) {
	short := shorten([]string{"0123456789", "0123456799", "012345678", "x", "0123456789"})
	want := map[string]string{"0123456789": "0123456789", "0123456799": "0123456799", "012345678": "012345678", "x": "x"}
	for id, s := range want {
		if short[id] != s {
			t.Errorf("%s is shortened to %s, want %s", id, short[id], s)
		}
	}
	if got := shorten([]string{"abcdefghijk"})["abcdefghijk"]; got != "abcdefgh" {
		t.Errorf("a lone id is shortened to %s", got)
	}
}

func TestAgesAreReadable(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for stamp, want := range map[string]string{
		"2026-11-15T11:59:30.000Z": "just now",
		"2026-11-15T12:00:30.000Z": "just now", // a clock that is ahead
		"2026-11-15T11:55:00.000Z": "5 min ago",
		"2026-11-15T01:00:00.000Z": "11 h ago",
		"2026-11-01T12:00:00.000Z": "14 days ago",
		"2025-11-01T12:00:00.000Z": "2025-11-01",
		"nonsense":                 "nonsense",
	} {
		if got := age(stamp, now); got != want {
			t.Errorf("age(%s) = %q, want %q", stamp, got, want)
		}
	}
}

// checkFold checks that folding loses nothing but blanks, and fits.
func checkFold(t *testing.T, text string, most int) {
	lines := fold(text, most)
	for _, line := range lines {
		if columns(line) > most {
			t.Errorf("fold(%q, %d) has the line %q", text, most, line)
		}
	}
	if got, want := strings.Join(strings.Fields(strings.Join(lines, "")), ""), strings.Join(strings.Fields(text), ""); got != want {
		t.Errorf("fold(%q, %d) = %q", text, most, lines)
	}
}

func TestATableThatWrapsShowsEverything(t *testing.T) {
	table := &table{head: []string{"WHAT", "STATE", "FINDING"}, wrap: true}
	table.add("key of openai", "bad", "there is none: set OPENAI_API_KEY")
	for most, want := range map[int]string{
		0:  "WHAT           STATE  FINDING\nkey of openai  bad    there is none: set OPENAI_API_KEY\n",
		45: "WHAT           STATE  FINDING\nkey of openai  bad    there is none: set\n                      OPENAI_API_KEY\n",
		30: "WHAT           STATE\n  FINDING\nkey of openai  bad\n  there is none: set\n  OPENAI_API_KEY\n",
	} {
		var b strings.Builder
		if err := table.write(&b, painter{}, most); err != nil || b.String() != want {
			t.Errorf("in %d columns, %v:\n%s", most, err, b.String())
		}
	}
}

func TestAmountsKeepDigitsThatSaySomething(t *testing.T) {
	for amount, want := range map[float64]string{0: "$0.00", 12.3456: "$12.35", 0.25: "$0.25", 0.0123: "$0.012", 0.00123: "$0.0012", 0.000001: "$0.000001", 0.0000001: "$0.000000"} {
		if got := dollars(amount); got != want {
			t.Errorf("dollars(%v) = %s, want %s", amount, got, want)
		}
	}
}

func TestACostIsShownOnlyIfAllOfItIsKnown(t *testing.T) {
	half := 0.5
	for name, test := range map[string]struct {
		parts []*float64
		want  float64 // -1: not known
	}{
		"nothing": {nil, -1}, "unknown": {[]*float64{nil}, -1}, "known": {[]*float64{&half, &half}, 1}, "half": {[]*float64{&half, nil}, -1},
	} {
		var c cost
		for _, part := range test.parts {
			c.add(part)
		}
		if got := c.total(); got == nil != (test.want < 0) || got != nil && *got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHelpIsWrapped: the lines of help texts and manual pages are not wrapped by anything
// else.
func TestHelpIsWrapped(t *testing.T) {
	commands := []*cobra.Command{(&app{}).rootCommand()}
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		for line := range strings.Lines(c.Long) {
			if utf8.RuneCountInString(strings.TrimSpace(line)) > 92 {
				t.Errorf("%s --help has a line of more than 92 characters: %s", c.CommandPath(), line)
			}
		}
	}
}
