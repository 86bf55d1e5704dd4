// Package responses is the client of the OpenAI Responses API. It keeps the promises of
// package remote.
//
//   - Nothing is stored at the provider: each request contains the whole conversation,
//     and asks for encrypted reasoning, which can be sent back.
//   - An answer is sent back item by item as it was received, with encrypted reasoning
//     byte for byte before its calls.
//   - History is never encoded twice.
package responses

import (
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config configures the client. The base URL is the URL without /responses.
	Config = remote.Config
	// A Client is a model that is reached by OpenAI Responses.
	Client = remote.Client
)

// New returns a client. An invalid base URL is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

// Kind is the row of the wire in the table of wires.
var Kind = remote.Kind{
	Types:   []string{"openai", "azure"},
	API:     "responses",
	New:     New,
	Streams: true,
	Vendors: []remote.Vendor{
		{Scheme: "responses", Type: "openai", API: "responses", KeyEnv: "OPENAI_API_KEY", BaseEnv: "OPENAI_BASE_URL", URL: wire.BaseURL},
	},
}

var wire = remote.Wire{
	Name:      "OpenAI Responses",
	BaseURL:   "https://api.openai.com/v1",
	BaseEnv:   "OPENAI_BASE_URL",
	KeyEnv:    "OPENAI_API_KEY",
	Path:      "responses",
	Azure:     azurePath,
	Documents: func(p *profile.Profile) bool { return !p.NoDocuments },
	Body:      fragments,
	Decoder:   func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// azurePath returns the path at an Azure resource. It does not contain the name of the
// deployment, which is in the request.
func azurePath(a remote.Azure, _ string) string {
	if a.APIVersion == "" {
		return "openai/v1/responses"
	}
	return "openai/responses"
}
