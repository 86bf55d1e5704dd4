package profile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestAHostHasTheProfileOfItsProvider(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com": "openai", "API.OpenAI.com:443": "openai", "x.openai.azure.com": "azure", "models.inference.ai.azure.com": "github",
		"api.anthropic.com": "anthropic", "generativelanguage.googleapis.com": "gemini", "us-central1.aiplatform.googleapis.com": "gemini",
		"api.deepseek.com": "deepseek", "api.mistral.ai": "mistral", "openrouter.ai": "openrouter", "localhost:11434": "ollama", "[::1]:1234": "lmstudio",
		"models.github.ai": "github", "localhost:8000": "other", "": "other", "evil-api.openai.com.example": "other", "notopenrouter.ai": "other",
	} {
		if got := At(host).Name; got != want {
			t.Errorf("%q has the profile %s, want %s", host, got, want)
		}
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	names := Names()
	for _, p := range append(slices.Clone(table), Other) {
		if found, ok := Named(p.Name); !ok || found != p || p.Limit == "" || p.SystemRole == "" {
			t.Errorf("the row of %s lacks something, or is not found by its name", p.Name)
		}
		if p != Other && len(p.Pages) == 0 {
			t.Errorf("%s names no page that its row follows", p.Name)
		}
		if p.Unsigned != "" && !json.Valid([]byte("{"+p.Unsigned+"}")) {
			t.Errorf("%s: the member of an unsigned call is no JSON: %s", p.Name, p.Unsigned)
		}
		if p.NeedsThoughts != "" && p.Thoughts != ThoughtsAsTheyCame {
			t.Errorf("%s needs reasoning, and is not sent it", p.Name)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(table)+1 {
		t.Errorf("two profiles have one name: %s", strings.Join(names, ", "))
	}
	if _, ok := Named("nobody"); ok {
		t.Error("there is a profile of nobody")
	}
}
