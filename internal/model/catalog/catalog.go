// Package catalog contains what well-known models can do and what they cost.
//
// It provides defaults only: unknown models get cautious values, and the configuration
// of a model overrides them. Prices are those of the vendors' own pages on the day Checked,
// for requests that are neither batched nor sped up. A price that depends on the time of
// day, or that a vendor asks for until a date, is not in the catalog: it would be wrong
// without anybody noticing.
package catalog

import (
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// Checked is the day on which the catalog was compared with the pages.
const Checked = "2026-11-18"

// Pages are the documentation that the catalog follows.
var Pages = []string{
	"https://platform.claude.com/docs/en/about-claude/pricing",
	"https://platform.claude.com/docs/en/about-claude/models/overview",
	"https://developers.openai.com/api/docs/pricing",
	"https://developers.openai.com/api/docs/models",
	"https://developers.openai.com/api/docs/guides/prompt-caching",
	"https://ai.google.dev/gemini-api/docs/models",
	"https://api-docs.deepseek.com/quick_start/pricing",
}

// Unknown is the capabilities of a model that the catalog does not contain.
var Unknown = model.Capabilities{Window: 128_000, MaxOutput: 16_384}

// Lookup returns the capabilities of a model, and whether the catalog contains it. The
// name may be that of a gateway: "anthropic/claude-opus-4.5" is "claude-opus-4-5". Dates
// and other suffixes are ignored.
func Lookup(name string) (model.Capabilities, bool) {
	name = normalize(name)
	best := -1
	for i, f := range families {
		if strings.HasPrefix(name, f.prefix) && ends(name[len(f.prefix):]) && (best < 0 || len(f.prefix) > len(families[best].prefix)) {
			best = i
		}
	}
	if best < 0 {
		return Unknown, false
	}
	can := families[best].Capabilities
	can.Known = true
	return can, true
}

// Of returns the capabilities of the model of a request: those that the request
// contains, or else those of the model's name.
func Of(req *model.Request) model.Capabilities {
	if req.Can != nil {
		return *req.Can
	}
	can, _ := Lookup(req.Model)
	return can
}

// Another reports whether a model that answered is certainly not the one that was asked: that
// one is in the catalog, and no version of it has the other's name. Names that a provider or
// its customer has chosen, such as those of deployments, say nothing.
func Another(asked, answered string) bool {
	if answered == asked || answered == "" {
		return false
	}
	if _, known := Lookup(asked); !known {
		return false
	}
	a, b := strings.TrimSuffix(normalize(asked), "-latest"), strings.TrimSuffix(normalize(answered), "-latest")
	return !strings.HasPrefix(b, a) && !strings.HasPrefix(a, b)
}

// normalize removes the prefixes that gateways add to a name, and writes versions with
// hyphens.
func normalize(name string) string {
	name = strings.ToLower(name)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.Index(name, "anthropic."); i >= 0 { // region.anthropic.model
		name = name[i+len("anthropic."):]
	}
	return versions.Replace(name)
}

var versions = strings.NewReplacer(".", "-", "_", "-", "@", "-")

// ends reports whether rest can follow the prefix of a family in the name of one of its
// models.
func ends(rest string) bool { return rest == "" || rest[0] == '-' || rest[0] == ':' }

// A family is a group of models whose names begin with the same prefix.
type family struct {
	prefix string
	model.Capabilities
}

func costs(input, output, cacheRead, cacheWrite float64) *model.Price {
	return &model.Price{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: cacheWrite}
}

// longer returns a price that is higher for requests of more than 272,000 tokens, as all
// large models of OpenAI since GPT-5.4 have: twice that of input and of the cache, and half
// as much again for output.
func longer(p *model.Price) *model.Price {
	p.LongFrom = 272 * k
	p.Long = costs(2*p.Input, 1.5*p.Output, 2*p.CacheRead, 2*p.CacheWrite)
	return p
}

// claude returns a family of Anthropic. All of its models can see images.
func claude(prefix string, window, output int, reasons bool, t model.Thinking, p *model.Price) family {
	return family{prefix, model.Capabilities{Window: window, MaxOutput: output, Vision: true, Reasoning: reasons, Thinking: t, Price: p}}
}

// gpt returns a family of OpenAI whose models can see images.
func gpt(prefix string, window, output int, reasons bool, p *model.Price) family {
	return family{prefix, model.Capabilities{Window: window, MaxOutput: output, Vision: true, Reasoning: reasons, Thinking: model.ThinkByEffort, Price: p}}
}

const (
	k       = 1_000
	million = 1_000 * k
)

// families lists the models by the prefix of their names. The longest prefix that
// matches decides, so that a short one covers models that do not exist yet.
var families = []family{
	claude("claude", 200*k, 64*k, true, model.ThinkByEffort, nil),
	claude("claude-3", 200*k, 4096, false, model.ThinkByBudget, nil),
	claude("claude-3-haiku", 200*k, 4096, false, model.ThinkByBudget, costs(0.25, 1.25, 0.03, 0.30)),
	claude("claude-3-opus", 200*k, 4096, false, model.ThinkByBudget, costs(15, 75, 1.50, 18.75)),
	claude("claude-3-5-haiku", 200*k, 8192, false, model.ThinkByBudget, costs(0.80, 4, 0.08, 1)),
	claude("claude-3-5-sonnet", 200*k, 8192, false, model.ThinkByBudget, costs(3, 15, 0.30, 3.75)),
	claude("claude-3-7-sonnet", 200*k, 64*k, true, model.ThinkByBudget, costs(3, 15, 0.30, 3.75)),
	claude("claude-sonnet-4", 200*k, 64*k, true, model.ThinkByBudget, costs(3, 15, 0.30, 3.75)), // 4.5 is the same
	claude("claude-sonnet-4-6", 200*k, 64*k, true, model.ThinkByEffort, costs(3, 15, 0.30, 3.75)),
	claude("claude-opus-4", 200*k, 32*k, true, model.ThinkByBudget, costs(15, 75, 1.50, 18.75)), // 4.1 is the same
	claude("claude-opus-4-5", 200*k, 64*k, true, model.ThinkByBudget, costs(5, 25, 0.50, 6.25)),
	claude("claude-opus-4-6", million, 128*k, true, model.ThinkByEffort, costs(5, 25, 0.50, 6.25)),
	claude("claude-opus-4-7", million, 128*k, true, model.ThinkByEffort, costs(5, 25, 0.50, 6.25)),
	claude("claude-opus-4-8", million, 128*k, true, model.ThinkByEffort, costs(5, 25, 0.50, 6.25)),
	claude("claude-haiku-4-5", 200*k, 64*k, true, model.ThinkByBudget, costs(1, 5, 0.10, 1.25)),
	claude("claude-sonnet-5", million, 128*k, true, model.ThinkByEffort, costs(2, 10, 0.20, 2.50)),
	claude("claude-sonnet-5-5", million, 128*k, true, model.ThinkByEffort, costs(2, 10, 0.10, 2.50)),
	claude("claude-haiku-5-5", million, 128*k, true, model.ThinkByEffort,
		&model.Price{Input: 0.10, Output: 0.50, CacheRead: 0.01, CacheWrite: 0.125, LongFrom: 100 * k, Long: costs(0.50, 2.50, 0.05, 0.625)}),
	claude("claude-opus-5", million, 128*k, true, model.ThinkByEffort, costs(5, 25, 0.50, 6.25)),
	claude("claude-opus-5-5", million, 128*k, true, model.ThinkAlways, costs(4, 20, 0.20, 5)),
	claude("claude-fable-5", million, 128*k, true, model.ThinkAlways, costs(10, 50, 1, 12.50)),
	claude("claude-fable-5-1", million, 128*k, true, model.ThinkAlways, costs(10, 50, 0.25, 12.50)),
	claude("claude-mythos-5", million, 128*k, true, model.ThinkAlways, costs(10, 50, 1, 12.50)),
	claude("claude-mythos-5-1", million, 128*k, true, model.ThinkAlways, costs(10, 50, 0.25, 12.50)),

	{"gpt-3-5", model.Capabilities{Window: 16_385, MaxOutput: 4096}},
	{"gpt-4", model.Capabilities{Window: 8192, MaxOutput: 4096}},
	gpt("gpt-4-turbo", 128*k, 4096, false, nil),
	gpt("gpt-4o", 128*k, 16_384, false, costs(2.50, 10, 1.25, 2.50)),
	gpt("gpt-4o-mini", 128*k, 16_384, false, costs(0.15, 0.60, 0.075, 0.15)),
	gpt("chatgpt-4o", 128*k, 16_384, false, nil),
	gpt("gpt-4-1", 1_047_576, 32_768, false, costs(2, 8, 0.50, 2)),
	gpt("gpt-4-1-mini", 1_047_576, 32_768, false, costs(0.40, 1.60, 0.10, 0.40)),
	gpt("gpt-4-1-nano", 1_047_576, 32_768, false, costs(0.10, 0.40, 0.025, 0.10)),
	gpt("o1", 200*k, 100*k, true, costs(15, 60, 7.50, 15)),
	gpt("o3", 200*k, 100*k, true, costs(2, 8, 0.50, 2)),
	{"o3-mini", model.Capabilities{Window: 200 * k, MaxOutput: 100 * k, Reasoning: true, Price: costs(1.10, 4.40, 0.55, 1.10)}},
	gpt("o3-pro", 200*k, 100*k, true, nil),
	gpt("o4-mini", 200*k, 100*k, true, costs(1.10, 4.40, 0.275, 1.10)),
	gpt("gpt-5", 400*k, 128*k, true, costs(1.25, 10, 0.125, 1.25)),
	gpt("gpt-5-mini", 400*k, 128*k, true, costs(0.25, 2, 0.025, 0.25)),
	gpt("gpt-5-nano", 400*k, 128*k, true, costs(0.05, 0.40, 0.005, 0.05)),
	gpt("gpt-5-pro", 400*k, 272*k, true, nil),
	gpt("gpt-5-chat", 128*k, 16_384, false, costs(1.25, 10, 0.125, 1.25)),
	gpt("gpt-5-1", 400*k, 128*k, true, costs(1.25, 10, 0.125, 1.25)),
	gpt("gpt-5-1-mini", 400*k, 128*k, true, nil),
	gpt("gpt-5-1-chat", 128*k, 16_384, true, costs(1.25, 10, 0.125, 1.25)),
	gpt("gpt-5-2", 400*k, 128*k, true, costs(1.75, 14, 0.175, 1.75)),
	gpt("gpt-5-2-pro", 400*k, 128*k, true, nil),
	gpt("gpt-5-2-chat", 128*k, 16_384, true, costs(1.75, 14, 0.175, 1.75)),
	gpt("gpt-5-3", 400*k, 128*k, true, nil),
	gpt("gpt-5-4", 1_050*k, 128*k, true, longer(costs(2.50, 15, 0.25, 2.50))),
	gpt("gpt-5-4-mini", 400*k, 128*k, true, costs(0.75, 4.50, 0.075, 0.75)),
	gpt("gpt-5-4-nano", 400*k, 128*k, true, costs(0.20, 1.25, 0.02, 0.20)),
	gpt("gpt-5-4-pro", 1_050*k, 128*k, true, nil),
	gpt("gpt-5-5", 1_050*k, 128*k, true, longer(costs(5, 30, 0.50, 5))),
	gpt("gpt-5-5-pro", 1_050*k, 128*k, true, nil),
	// Writing to the cache costs a quarter more than input from GPT-5.6 on, and nothing
	// extra before.
	gpt("gpt-5-6", 1_050*k, 128*k, true, nil), // Sol: the present price is one for a time
	gpt("gpt-5-6-terra", 1_050*k, 128*k, true, longer(costs(2, 12, 0.20, 2.50))),
	gpt("gpt-5-6-luna", 1_050*k, 128*k, true, longer(costs(0.20, 1.20, 0.02, 0.25))),
	gpt("gpt-6", 1_050*k, 128*k, true, nil),
	gpt("gpt-6-astra", 1_050*k, 128*k, true, longer(costs(10, 50, 1, 12.50))),
	gpt("gpt-6-sol", 1_050*k, 128*k, true, longer(costs(2, 10, 0.20, 2.50))),
	gpt("gpt-6-luna", 1_050*k, 128*k, true, longer(costs(0.10, 0.50, 0.01, 0.125))),
	gpt("gpt-6-1-sol", 1_050*k, 128*k, true, longer(costs(2, 10, 0.10, 2.50))),
	gpt("gpt-6-1-terra", 1_050*k, 128*k, true, longer(costs(1, 5, 0.05, 1.25))),
	gpt("gpt", 128*k, 16_384, true, nil),

	{"gemini", model.Capabilities{Window: 1_048_576, MaxOutput: 8192, Vision: true}},
	{"gemini-2-5", model.Capabilities{Window: 1_048_576, MaxOutput: 65_536, Vision: true, Reasoning: true}},
	{"gemini-3", model.Capabilities{Window: 1_048_576, MaxOutput: 65_536, Vision: true, Reasoning: true}},
	{"gpt-oss", model.Capabilities{Window: 131_072, MaxOutput: 32_768, Reasoning: true}},
	{"deepseek", model.Capabilities{Window: 128 * k, MaxOutput: 8192}},
	{"deepseek-flash", model.Capabilities{Window: million, MaxOutput: 384 * k, Vision: true, Reasoning: true}},
	{"deepseek-v4", model.Capabilities{Window: million, MaxOutput: 384 * k, Reasoning: true}},
	{"kimi-k2", model.Capabilities{Window: 256 * k, MaxOutput: 32_768}},
	{"glm-4-6", model.Capabilities{Window: 200 * k, MaxOutput: 64 * k, Reasoning: true}},
}
