package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

// full is a window that is nearly full.
func full() api.ContextResult {
	return api.ContextResult{
		ContextWindow: api.ContextWindow{SystemTokens: 100, ToolDefinitionsTokens: 100, CurrentTokens: 700, TokenLimit: 900},
		Model:         "m", Source: "usage", Window: 1000, Reserved: 100, Summary: 100, Asked: 100, Answered: 50, Gave: 150, Tail: 50,
		EpochID: "e", Epoch: 2, BeforeRun: 600, Between: 855, Ahead: 720, Pruned: 1234,
	}
}

func TestAWindowIsDrawnToScale(t *testing.T) {
	s := windowView{r: full()}
	on, off := s.thresholds()
	if got := s.bar(20); got != "yyttssppmooor+····░░" {
		t.Errorf("the bar is %q", got)
	}
	if got := s.marks(on, 20); got != "           1 2  34" || len(off) != 0 {
		t.Errorf("the marks are %q, and %v is off", got, off)
	}
	var w strings.Builder
	if err := s.write(&w, "id"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"session id  epoch 2  m\n", "700 of 1,000 tokens used (70.0%), counted by the provider, plus an estimate of everything since\n",
		"1,234 tokens of old tool output are left out of requests\n", "+  not attributed          50    5.0%\n", "·  free                   200   20.0%\n",
		"1  before a turn     600 ", "4  request limit     900 ",
	} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &w)
		}
	}
}

// The parts of a window are estimates. If the provider has counted less, they add up to what it
// has counted.
func TestThePartsOfAWindowAddUpToWhatWasCounted(t *testing.T) {
	r := full()
	r.CurrentTokens = 333
	s := windowView{r: r}
	sum := 0
	for _, p := range s.parts() {
		sum += p.tokens
		if p.name == "tool output" && p.tokens != 77 {
			t.Errorf("%s has %d tokens", p.name, p.tokens)
		}
	}
	if sum != r.Window {
		t.Errorf("the parts have %d tokens of %d", sum, r.Window)
	}
	if got := s.bar(20); strings.Count(got, "·") != 11 {
		t.Errorf("the bar is %q", got)
	}
}

func TestARequestThatDoesNotFitIsDrawnWhole(t *testing.T) {
	r := full()
	r.Gave += 1200
	r.CurrentTokens += 1200
	s := windowView{r: r}
	if got := s.bar(20); columns(got) != 20 || !strings.HasSuffix(got, "░") || strings.Contains(got, "·") {
		t.Errorf("the bar is %q", got)
	}
	var w strings.Builder
	if err := s.write(&w, "id"); err != nil || !strings.Contains(w.String(), "that is 1,000 more than a request can have") {
		t.Errorf("%v\n%s", err, &w)
	}
}

func TestAWindowFitsItsTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) int { return rapid.IntRange(0, 60_000).Draw(t, label) }
		r := api.ContextResult{Model: rapid.String().Draw(t, "model"), Summary: some("summary"), Asked: some("asked"), Answered: some("answered"), Gave: some("gave"), Tail: some("tail"), Reserved: some("reserved")}
		r.SystemTokens, r.ToolDefinitionsTokens = some("system"), some("tools")
		r.TokenLimit = rapid.IntRange(1, 900_000).Draw(t, "limit")
		r.Window = r.TokenLimit + r.Reserved
		r.CurrentTokens = r.SystemTokens + r.ToolDefinitionsTokens + r.Summary + r.Asked + r.Answered + r.Gave + r.Tail + some("more")
		r.BeforeRun, r.Between, r.Ahead = rapid.IntRange(0, r.TokenLimit).Draw(t, "before"), rapid.IntRange(0, r.TokenLimit).Draw(t, "between"), rapid.IntRange(0, r.TokenLimit).Draw(t, "ahead")
		s := windowView{r: r, maxWidth: rapid.IntRange(20, 200).Draw(t, "columns")}
		if got := columns(s.bar(s.maxWidth)); got != s.maxWidth {
			t.Fatalf("the bar has %d columns, want %d", got, s.maxWidth)
		}
		on, _ := s.thresholds()
		if marks := s.marks(on, 20); len(marks) > 20 || !strings.Contains(marks, "1") {
			t.Fatalf("the marks are %q", marks)
		}
		var w strings.Builder
		if err := s.write(&w, "0198c2f1-0000-7000-8000-000000000000"); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(w.String(), "\n") {
			if columns(line) > s.maxWidth {
				t.Fatalf("%q is wider than %d columns", line, s.maxWidth)
			}
		}
		if strings.Contains(w.String(), "\x1b") {
			t.Fatalf("there are colours in\n%s", &w)
		}
	})
}

func TestColoursStandInForKeys(t *testing.T) {
	s := windowView{r: full(), paint: painter{colours: true}}
	var w strings.Builder
	if err := s.write(&w, "id"); err != nil || !strings.Contains(w.String(), "\x1b[34m██") || strings.Contains(w.String(), "y  system") {
		t.Errorf("%v\n%s", err, &w)
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 128_000: "128,000", 1_048_576: "1,048,576", -1: "-1", -1000: "-1,000", -999: "-999"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestWhatCameOfACompactionIsOneLine(t *testing.T) {
	for want, d := range map[string]event.CompactionCompleteData{
		"compacted from 9,000 to 1,200 tokens":                                   {Outcome: event.OutcomeDone, PreTokens: 9000, PostTokens: 1200},
		"compacted from 9,000 to 1,200 tokens, without a model: the key is gone": {Outcome: event.OutcomeDone, PreTokens: 9000, PostTokens: 1200, Digest: true, Error: "the key is gone"},
		"the conversation could not be compacted: the key is gone":               {Outcome: event.OutcomeFailed, Error: "the key is gone"},
		"the conversation was not compacted: it was cancelled":                   {Outcome: event.OutcomeFailed, Cause: event.CauseAborted, Error: "it was cancelled"},
		"the conversation was not compacted: there is nothing to summarise":      {Outcome: event.OutcomeSkipped, Error: "there is nothing to summarise"},
	} {
		if got := compactedTo(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatASummaryTookIsPartOfTheUsage(t *testing.T) {
	o, cost := &outcome{}, 0.5
	o.expect("mine")
	gather(t, o, message("mine", "idle"), event.CompactionCompleteData{Outcome: event.OutcomeDone, CompactionTokensUsed: &event.CompactionUsage{InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4}},
		event.CompactionCompleteData{Outcome: event.OutcomeSkipped}, event.AssistantUsageData{InputTokens: 1, OutputTokens: 1, CostUSD: &cost}, says("A"), idle)
	if want := (usage{Input: 11, Output: 3, CacheRead: 3, CacheWrite: 4}); o.usage != want || o.steps != 1 || o.cost.total() != nil {
		t.Errorf("usage = %+v in %d steps, cost %v", o.usage, o.steps, o.cost.total())
	}
}
