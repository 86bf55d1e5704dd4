package profile

import (
	"strings"
	"testing"
)

func TestTheDefaultModelIsAChoiceWithAReason(t *testing.T) {
	for _, test := range []struct {
		profile, names string
		want, why      string
	}{
		{"openai", "text-embedding-3-small gpt-4o-audio-preview gpt-4o gpt-5-mini gpt-5 gpt-5.2 gpt-5.10 gpt-5.2-2025-12-11 gpt-5.2-codex whisper-1", "gpt-5.10", "newest general model of OpenAI"},
		{"openai", "gpt-5.5 gpt-5.6 gpt-5.6-sol gpt-6-astra gpt-6-sol gpt-6-luna gpt-6.1-sol gpt-6.1-terra gpt-6.1-sol-2026-09-29", "gpt-6.1-sol", "newest Sol"},
		{"openai", "gpt-5-mini gpt-4.1-mini", "gpt-5-mini", "no larger one"},
		{"anthropic", "claude-haiku-4-5-20251001 claude-opus-4-6 claude-sonnet-4-5-20250929 claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929", "newest Sonnet"},
		{"anthropic", "claude-sonnet-5 claude-sonnet-4-6 claude-sonnet-5-20260801", "claude-sonnet-5", "newest Sonnet"},
		{"anthropic", "claude-haiku-4-5 claude-opus-4-6", "claude-opus-4-6", "newest Opus"},
		{"gemini", "models/gemini-embedding-001 models/gemini-2.5-pro models/gemini-2.5-flash models/gemini-2.0-flash models/gemini-2.5-flash-lite models/gemini-2.5-flash-image", "models/gemini-2.5-flash", "every key"},
		{"deepseek", "deepseek-reasoner deepseek-chat", "deepseek-chat", "calls tools"},
		{"deepseek", "deepseek-v4-pro deepseek-flash", "deepseek-flash", "calls tools"},
		{"mistral", "codestral-latest mistral-small-latest mistral-large-latest mistral-large-2411 mistral-embed", "mistral-large-latest", "largest"},
		{"openrouter", "openrouter/auto openai/gpt-5.2 anthropic/claude-sonnet-4.5 anthropic/claude-sonnet-4.6 anthropic/claude-opus-4.6", "anthropic/claude-sonnet-4.6", "newest Sonnet"},
		{"ollama", "nomic-embed-text:latest llama3.2:3b qwen3:8b qwen3-coder:30b", "qwen3-coder:30b", "coding"},
		{"ollama", "mxbai-embed-large:latest phi4:latest", "phi4:latest", "only one"},
		{"vllm", "Qwen/Qwen3-32B", "Qwen/Qwen3-32B", "only one"},
		{"lmstudio", "text-embedding-nomic-embed-text-v1.5 openai/gpt-oss-20b google/gemma-3-12b", "openai/gpt-oss-20b", "calls tools"},
		{"github", "openai/gpt-4.1 openai/gpt-5 openai/text-embedding-3-large meta/llama-3.3-70b-instruct", "openai/gpt-5", "newest general model"},
		{"other", "zeta gpt-4.1 my-model", "gpt-4.1", "newest general model"},
		{"other", "a b", "", "the 2 that are listed: a, b"},
		{"other", "a b c d e f", "", "the 6 that are listed, such as a, b, c"},
		{"openai", "text-embedding-3-small tts-1", "", "none that can talk"},
		{"openai", "", "", "none that can talk"},
	} {
		p, _ := Named(test.profile)
		names := strings.Fields(test.names)
		name, why := p.Default(names)
		if name != test.want || !strings.Contains(why, test.why) {
			t.Errorf("%s with %s: %q because %s", test.profile, test.names, name, why)
		}
		for i := range names { // the order of the list does not matter
			if again, _ := p.Default(append(names[i:len(names):len(names)], names[:i]...)); again != name {
				t.Errorf("%s: %q in another order", test.profile, again)
			}
		}
	}
}

func TestEveryPreferenceHasAProfileAndAReason(t *testing.T) {
	for name, list := range preferences {
		if _, ok := Named(name); !ok || len(list) == 0 {
			t.Errorf("there is no profile %s, or nothing to prefer", name)
		}
		for _, p := range list {
			p.pattern.MatchString("") // panics if it is no pattern
			if p.why == "" {
				t.Errorf("%s: a preference has no reason", name)
			}
		}
	}
}
