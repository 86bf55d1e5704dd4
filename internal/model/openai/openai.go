// Package openai is the client of the Chat Completions API, which most providers and
// local servers support. It keeps the promises of package remote.
//
//   - History is never encoded twice. The encoded forms of messages and tools are
//     cached, and a request is sent from these pieces.
//   - Several choices are joined into one message.
//
// The API does not support images in tool results; callers put them into a user message
// after the results. What a provider added to its messages and calls (signatures, structured
// reasoning) is recorded with the answer and sent back to the same host and model, as far
// as the profile of the provider allows it.
package openai

import (
	"net/url"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config configures the client. The base URL is the URL without
	// /chat/completions.
	Config = remote.Config
	// A Client is a model that is reached by Chat Completions.
	Client = remote.Client
)

// New returns a client. An invalid base URL is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

// Kind is the row of the wire in the table of wires.
var Kind = remote.Kind{
	Types: []string{"openai", "azure"},
	API:   "completions",
	New:   New,
	Vendors: []remote.Vendor{
		{Scheme: "openai", Type: "openai", KeyEnv: "OPENAI_API_KEY", BaseEnv: "OPENAI_BASE_URL", URL: wire.BaseURL, Usual: true},
		{Scheme: "azure", Type: "azure", KeyEnv: "AZURE_OPENAI_API_KEY", BaseEnv: "AZURE_OPENAI_API_ENDPOINT"},
	},
}

var wire = remote.Wire{
	Name:      "Chat Completions",
	BaseURL:   "https://api.openai.com/v1",
	BaseEnv:   "OPENAI_BASE_URL",
	KeyEnv:    "OPENAI_API_KEY",
	Path:      "chat/completions",
	Azure:     azurePath,
	Documents: func(p *profile.Profile) bool { return p.ChatDocuments != profile.DocumentNone },
	Body:      fragments,
	Decoder:   func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// azurePath returns the path at an Azure resource. The versioned route contains the name
// of the deployment.
func azurePath(a remote.Azure, name string) string {
	if a.APIVersion == "" {
		return "openai/v1/chat/completions"
	}
	return "openai/deployments/" + url.PathEscape(name) + "/chat/completions"
}
