package catalog_test

import (
	"math"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
)

func TestTheLongestNameThatFitsDecides(t *testing.T) {
	for name, want := range map[string]struct {
		window, output int
		reasons        bool
		thinking       model.Thinking
		input          float64 // price; 0 if unknown
	}{
		"claude-opus-4-5-20251101":                    {200_000, 64_000, true, model.ThinkByBudget, 5},
		"claude-opus-4-20250514":                      {200_000, 32_000, true, model.ThinkByBudget, 15},
		"claude-opus-4-1":                             {200_000, 32_000, true, model.ThinkByBudget, 15},
		"claude-opus-4-7":                             {1_000_000, 128_000, true, model.ThinkByEffort, 5},
		"claude-opus-5-5":                             {1_000_000, 128_000, true, model.ThinkAlways, 4},
		"claude-sonnet-4.5":                           {200_000, 64_000, true, model.ThinkByBudget, 3},
		"anthropic/claude-sonnet-4.6":                 {200_000, 64_000, true, model.ThinkByEffort, 3},
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": {200_000, 64_000, true, model.ThinkByBudget, 1},
		"claude-opus-4-1@20250805":                    {200_000, 32_000, true, model.ThinkByBudget, 15},
		"claude-3-5-haiku-latest":                     {200_000, 8192, false, model.ThinkByBudget, 0.80},
		"claude-next-9":                               {200_000, 64_000, true, model.ThinkByEffort, 0},
		"gpt-4o":                                      {128_000, 16_384, false, model.ThinkByEffort, 2.50},
		"GPT-4o-mini-2024-07-18":                      {128_000, 16_384, false, model.ThinkByEffort, 0.15},
		"gpt-4.1-nano":                                {1_047_576, 32_768, false, model.ThinkByEffort, 0.10},
		"gpt-5-2025-08-07":                            {400_000, 128_000, true, model.ThinkByEffort, 1.25},
		"openai/gpt-5.2-codex":                        {400_000, 128_000, true, model.ThinkByEffort, 1.75},
		"gpt-5.4":                                     {1_050_000, 128_000, true, model.ThinkByEffort, 2.50},
		"gpt-5.6-sol":                                 {1_050_000, 128_000, true, model.ThinkByEffort, 0},
		"gpt-6.1-sol-2026-09-29":                      {1_050_000, 128_000, true, model.ThinkByEffort, 2},
		"gpt-6.2":                                     {1_050_000, 128_000, true, model.ThinkByEffort, 0},
		"claude-sonnet-5-5":                           {1_000_000, 128_000, true, model.ThinkByEffort, 2},
		"deepseek-flash":                              {1_000_000, 384_000, true, 0, 0},
		"gpt-5-chat-latest":                           {128_000, 16_384, false, model.ThinkByEffort, 1.25},
		"o3":                                          {200_000, 100_000, true, model.ThinkByEffort, 2},
		"gpt-oss:20b":                                 {131_072, 32_768, true, 0, 0},
		"accounts/fireworks/models/kimi-k2-instruct":   {256_000, 32_768, false, 0, 0},
		"models/gemini-2.5-pro":                        {1_048_576, 65_536, true, 0, 0},
		"gpt-99-whatever":                              {128_000, 16_384, true, model.ThinkByEffort, 0},
		"vertex_ai/claude-sonnet-4-5@20250929":         {200_000, 64_000, true, model.ThinkByBudget, 3},
		"bedrock/eu.anthropic.claude-opus-4-6-v1":      {1_000_000, 128_000, true, model.ThinkByEffort, 5},
		"arn:aws:bedrock/anthropic.claude-3-opus-2024": {200_000, 4096, false, model.ThinkByBudget, 15},
	} {
		c, known := catalog.Lookup(name)
		price := 0.0
		if c.Price != nil {
			price = c.Price.Input
		}
		if !known || c.Window != want.window || c.MaxOutput != want.output || c.Reasoning != want.reasons || c.Thinking != want.thinking || price != want.input {
			t.Errorf("%s: known %v, %+v, price %v, want %+v", name, known, c, price, want)
		}
	}
}

func TestAnUnknownModelGetsCarefulDefaultsAndNoPrice(t *testing.T) {
	for _, name := range []string{"", "m", "o10", "my-gpt-4o", "llama3.1:8b", "gptx", "claudette", "/"} {
		c, known := catalog.Lookup(name)
		if known || c.Window != 128_000 || c.MaxOutput <= 0 || c.Vision || c.Reasoning || c.Price != nil {
			t.Errorf("%q: known %v, %+v", name, known, c)
		}
	}
}

func TestACostIsTheSumOfItsParts(t *testing.T) {
	c, _ := catalog.Lookup("claude-opus-4-5")
	usage := model.Usage{Input: 1_000_000, Output: 100_000, CacheRead: 2_000_000, CacheWrite: 400_000, Reasoning: 50_000}
	if got, want := c.Price.Cost(usage), 5+2.5+1+2.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("the cost is %v, want %v: reasoning is output and not paid twice", got, want)
	}
}

func TestAnotherModelIsOneThatIsCertainlyNotTheOneAsked(t *testing.T) {
	for _, test := range []struct {
		asked, answered string
		want            bool
	}{
		{"gpt-5", "gpt-5-2025-08-07", false},
		{"gpt-5-chat-latest", "gpt-5-chat-2025-08-07", false},
		{"anthropic/claude-sonnet-4.5", "claude-sonnet-4-5-20250929", false},
		{"claude-opus-4-5-20251101", "claude-opus-4-5", false},
		{"models/gemini-2.5-pro", "gemini-2.5-pro", false},
		{"gpt-5", "gpt-4o-mini", true},
		{"claude-sonnet-4-5", "claude-haiku-4-5", true},
		{"gpt-4o", "llama3.1:8b", true},
		{"gpt-4o", "", false},
		{"my-deployment", "gpt-5", false},
		{"qwen3:8b", "/models/qwen.gguf", false},
	} {
		if got := catalog.Another(test.asked, test.answered); got != test.want {
			t.Errorf("%s answered by %s: %v", test.asked, test.answered, got)
		}
	}
}

func TestALongRequestCostsMore(t *testing.T) {
	c, _ := catalog.Lookup("gpt-6.1-sol")
	for _, test := range []struct {
		usage model.Usage
		want  float64
	}{
		{model.Usage{Input: 272_000, Output: 100_000}, 0.544 + 1},
		{model.Usage{Input: 272_001, Output: 100_000}, 1.088004 + 1.5},
		{model.Usage{Input: 100_000, CacheRead: 100_000, CacheWrite: 72_000}, 0.2 + 0.01 + 0.18},
		{model.Usage{Input: 100_000, CacheRead: 100_000, CacheWrite: 80_000}, 0.4 + 0.02 + 0.4},
	} {
		if got := c.Price.Cost(test.usage); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v costs %v, want %v", test.usage, got, test.want)
		}
	}
}

func TestTheCatalogSaysFromWhenItIs(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, catalog.Checked); err != nil || len(catalog.Pages) == 0 {
		t.Errorf("the catalog is of %q, and follows %d pages", catalog.Checked, len(catalog.Pages))
	}
}

func FuzzEveryNameHasAWindow(f *testing.F) {
	for _, name := range []string{"", "gpt-5", "anthropic.", "a/b/c", "claude-3-5-sonnet@x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if c, _ := catalog.Lookup(name); c.Window <= 0 || c.MaxOutput <= 0 || c.MaxOutput > c.Window {
			t.Errorf("%q: %+v", name, c)
		}
	})
}
