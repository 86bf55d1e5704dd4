package cli

import (
	"os"

	"github.com/abide-run/abide/internal/api"
)

// provider is the model endpoint that the environment names, or nil.
func provider() *api.Provider {
	key, url := os.Getenv("OPENAI_API_KEY"), os.Getenv("OPENAI_BASE_URL")
	if key == "" && url == "" {
		return nil
	}
	if url == "" {
		url = "https://api.openai.com/v1"
	}
	return &api.Provider{Type: "openai", BaseURL: url, APIKey: key}
}

// copilotProvider is the model endpoint that an SDK's environment names, or nil.
// The token is in the named variable, or in one of those that SDKs fall back to.
func copilotProvider(tokenEnv string) *api.Provider {
	url := os.Getenv("COPILOT_API_URL")
	if url == "" {
		return nil
	}
	p := &api.Provider{Type: "openai", BaseURL: url}
	for _, name := range []string{tokenEnv, "COPILOT_SDK_AUTH_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if p.BearerToken = os.Getenv(name); p.BearerToken != "" {
			break
		}
	}
	return p
}
