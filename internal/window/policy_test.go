package window_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

func ptr[T any](v T) *T { return &v }

func TestTheLimitIsTheWindowLessTheAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		can  model.Capabilities
		max  int
		want int
	}{
		"the longest answer":            {model.Capabilities{Window: 200_000, MaxOutput: 64_000}, 0, 136_000},
		"a shorter one":                 {model.Capabilities{Window: 200_000, MaxOutput: 64_000}, 4000, 196_000},
		"nothing is known":              {model.Capabilities{}, 0, 128_000},
		"no window is known":            {model.Capabilities{MaxOutput: 8000}, 0, 120_000},
		"an answer as long as it all":   {model.Capabilities{Window: 8000, MaxOutput: 8000}, 0, 4000},
		"an answer longer than it all":  {model.Capabilities{Window: 8000}, 100_000, 4000},
		"numbers that make no sense":    {model.Capabilities{Window: -1, MaxOutput: -1}, -1, 128_000},
		"a window of a single token":    {model.Capabilities{Window: 1, MaxOutput: 1}, 0, 1},
		"a request for a single letter": {model.Capabilities{Window: 100, MaxOutput: 10}, 1, 99},
	} {
		if got := window.LimitsOf(test.can, test.max).Request(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestSettings(t *testing.T) {
	l := window.Limits{Window: 1200, Output: 200}
	for name, test := range map[string]struct {
		say   window.Settings
		want  window.Policy
		warns string // part of the only warning
	}{
		"nothing":    {window.Settings{}, window.Policy{Limit: 1000, Background: 800, Between: 950, Retained: -1}, ""},
		"seed 004":   {window.Settings{Threshold: ptr(1), Retained: ptr(0)}, window.Policy{Limit: 1000, Before: 1, Background: 800, Between: 950}, ""},
		"mid-turn":   {window.Settings{RequestThreshold: ptr(100)}, window.Policy{Limit: 1000, Background: 800, Between: 100, Retained: -1}, ""},
		"shares":     {window.Settings{Background: ptr(0.005), Exhaustion: ptr(0.01)}, window.Policy{Limit: 1000, Background: 5, Between: 10, Retained: -1}, ""},
		"both":       {window.Settings{RequestThreshold: ptr(100), Exhaustion: ptr(0.5)}, window.Policy{Limit: 1000, Background: 800, Between: 100, Retained: -1}, ""},
		"one off":    {window.Settings{RequestThreshold: ptr(0), Exhaustion: ptr(0.5)}, window.Policy{Limit: 1000, Background: 800, Between: 500, Retained: -1}, ""},
		"all off":    {window.Settings{Enabled: ptr(false), Threshold: ptr(1), Background: ptr(0.1)}, window.Policy{Limit: 1000, Retained: -1}, ""},
		"zeros":      {window.Settings{Threshold: ptr(0), RequestThreshold: ptr(0), Background: ptr(0.0)}, window.Policy{Limit: 1000, Retained: -1}, ""},
		"negative":   {window.Settings{Threshold: ptr(-5)}, window.Policy{Limit: 1000, Background: 800, Between: 950, Retained: -1}, "compact_threshold is -5, which is negative"},
		"too large":  {window.Settings{Threshold: ptr(5000), RequestThreshold: ptr(0)}, window.Policy{Limit: 1000, Before: 1000, Background: 800, Retained: -1}, "room for 1000 tokens"},
		"reversed":   {window.Settings{Threshold: ptr(500), RequestThreshold: ptr(300)}, window.Policy{Limit: 1000, Before: 500, Between: 300, Background: 800, Retained: -1}, "compact_threshold (500) is above"},
		"no share":   {window.Settings{Background: ptr(1.5)}, window.Policy{Limit: 1000, Background: 800, Between: 950, Retained: -1}, "backgroundCompactionThreshold is 1.5"},
		"no number":  {window.Settings{Exhaustion: ptr(math.NaN())}, window.Policy{Limit: 1000, Background: 800, Between: 950, Retained: -1}, "bufferExhaustionThreshold is NaN"},
		"keeps much": {window.Settings{Retained: ptr(5000)}, window.Policy{Limit: 1000, Background: 800, Between: 950, Retained: 1000}, "compact_retained_tokens is 5000"},
	} {
		got, warnings := test.say.Policy(l)
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if test.warns == "" && len(warnings) > 0 || test.warns != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], test.warns)) {
			t.Errorf("%s: warnings %q, want %q", name, warnings, test.warns)
		}
	}
}

func TestDecisions(t *testing.T) {
	p := window.Policy{Limit: 1000, Before: 300, Background: 500, Between: 700, Retained: -1}
	for _, test := range []struct {
		at     window.Point
		tokens int
		want   window.Verdict
	}{
		{window.BeforeRun, 300, window.Verdict{}}, // thresholds are exceeded, not reached
		{window.BeforeRun, 301, window.Verdict{Action: window.Compact, Threshold: 300}},
		{window.BetweenRequests, 301, window.Verdict{}},
		{window.BetweenRequests, 501, window.Verdict{Action: window.Prepare, Threshold: 500}},
		{window.BetweenRequests, 701, window.Verdict{Action: window.Compact, Threshold: 700}},
		{window.BetweenRequests, 1000, window.Verdict{Action: window.Compact, Threshold: 700}},
		{window.BetweenRequests, 1001, window.Verdict{Action: window.Must, Threshold: 1000}},
		{window.BeforeRun, 1001, window.Verdict{Action: window.Must, Threshold: 1000}},
	} {
		if got := p.Decide(test.at, window.Reading{Tokens: test.tokens}, window.Gate{}, time.Time{}); got != test.want {
			t.Errorf("%d tokens at point %d: %+v, want %+v", test.tokens, test.at, got, test.want)
		}
	}
	if off := (window.Policy{Limit: 1000}).Decide(window.BeforeRun, window.Reading{Tokens: 999}, window.Gate{}, time.Time{}); off.Action != window.Go {
		t.Errorf("with all thresholds off: %+v", off)
	}
	if p.Retain(800) != 50 || (window.Policy{Retained: 0}).Retain(800) != 0 || (window.Policy{Retained: 7}).Retain(800) != 7 {
		t.Error("what is retained is not what was said, or a part of the threshold")
	}
}

func TestTheLimitCannotBeTurnedOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		enabled := rapid.Bool().Draw(t, "enabled")
		p, _ := window.Settings{
			Enabled: &enabled, Threshold: ptr(rapid.Int().Draw(t, "before")), RequestThreshold: ptr(rapid.Int().Draw(t, "between")),
			Background: ptr(rapid.Float64().Draw(t, "background")), Exhaustion: ptr(rapid.Float64().Draw(t, "exhaustion")),
		}.Policy(window.Limits{Window: rapid.IntRange(1, 1<<20).Draw(t, "window")})
		now := time.Unix(1000, 0)
		var g window.Gate
		for range rapid.IntRange(0, 5).Draw(t, "failures") {
			g.Failed(p.Limit, now)
		}
		tokens := p.Limit + 1 + rapid.IntRange(0, 100).Draw(t, "over")
		if v := p.Decide(window.BetweenRequests, window.Reading{Tokens: tokens}, g, now); v.Action != window.Must {
			t.Fatalf("%+v", v)
		}
		if v := p.Decide(window.BeforeRun, window.Reading{Tokens: p.Limit}, g, now); !enabled && v.Action != window.Go {
			t.Fatalf("all is off, but %+v", v)
		}
	})
}

func TestAThresholdFiresAgainOnlyAfterGrowth(t *testing.T) {
	p := window.Policy{Limit: 1000, Between: 100}
	decide := func(tokens int, g window.Gate) window.Action {
		return p.Decide(window.BetweenRequests, window.Reading{Tokens: tokens}, g, time.Time{}).Action
	}
	var g window.Gate
	g.Settled(400) // a compaction has ended above its threshold
	for tokens, want := range map[int]window.Action{400: window.Go, 499: window.Go, 500: window.Compact, 1001: window.Must} {
		if got := decide(tokens, g); got != want {
			t.Errorf("%d tokens after a compaction to 400: action %d, want %d", tokens, got, want)
		}
	}
	g.Settled(960) // close to the limit
	if decide(969, g) != window.Go || decide(970, g) != window.Compact {
		t.Error("close to the limit a quarter of what is left is growth enough")
	}
}

func TestAfterFailuresThresholdsWaitForAMessage(t *testing.T) {
	p := window.Policy{Limit: 1000, Between: 100}
	now := time.Unix(1000, 0)
	var g window.Gate
	tokens := 200
	for i := range 3 {
		if p.Decide(window.BetweenRequests, window.Reading{Tokens: tokens}, g, now).Action != window.Compact {
			t.Fatalf("attempt %d is not made", i+1)
		}
		g.Failed(tokens, now)
		tokens *= 2
	}
	tokens = 990
	decide := func(g window.Gate, after time.Duration) window.Action {
		return p.Decide(window.BetweenRequests, window.Reading{Tokens: tokens}, g, now.Add(after)).Action
	}
	if decide(g, 0) != window.Go {
		t.Error("a fourth attempt is made at once")
	}
	if decide(g, 10*time.Minute) != window.Compact {
		t.Error("no attempt is made after a while")
	}
	g.Reset()
	if decide(g, 0) != window.Compact {
		t.Error("no attempt is made although somebody has spoken")
	}
}

// The number of compactions goes with the number of tokens, however bad they are.
func TestCompactionsAreInProportionToWhatIsSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := window.Policy{Limit: rapid.IntRange(1000, 100_000).Draw(t, "limit")}
		p.Between = rapid.IntRange(1, p.Limit).Draw(t, "threshold")
		var g window.Gate
		tokens, grown, cost := 0, 0, 0
		for range 200 {
			grow := rapid.IntRange(1, p.Limit/20).Draw(t, "grow")
			tokens, grown = tokens+grow, grown+grow
			if p.Decide(window.BetweenRequests, window.Reading{Tokens: tokens}, g, time.Time{}).Action < window.Compact {
				continue
			}
			cost += tokens
			tokens = min(tokens, rapid.IntRange(1, p.Limit/2).Draw(t, "after")) // a summary helps, or not at all
			g.Settled(tokens)
		}
		// What is there when it fires is at most five times what came since, and
		// at the threshold the first time.
		if cost > 5*grown+p.Limit {
			t.Fatalf("%d tokens were summarised for %d that were said", cost, grown)
		}
	})
}
