package cli

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

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

func TestDistanceCountsLetters(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
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
