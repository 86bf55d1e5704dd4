// Package anthropic is the client of the Anthropic Messages API. It keeps the promises
// of package remote.
//
//   - History is never encoded twice, although the API joins consecutive messages of one
//     role, and all results of an answer, into one message.
//   - Thinking is sent back byte for byte, at its place among texts and calls.
//   - Tools, system prompt and history are marked for the provider's cache so that each
//     request finds what the request before it has cached.
package anthropic

import (
	"net/http"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config configures the client. The base URL is the URL without /v1/messages, or
	// without /messages.
	Config = remote.Config
	// A Client is a model that is reached by Anthropic Messages.
	Client = remote.Client
)

// New returns a client. An invalid base URL is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

// Kind is the row of the wire in the table of wires.
var Kind = remote.Kind{
	Types:   []string{"anthropic"},
	New:     New,
	Streams: true,
	Vendors: []remote.Vendor{{
		Scheme: "anthropic", Type: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", TokenEnv: "ANTHROPIC_AUTH_TOKEN", BaseEnv: "ANTHROPIC_BASE_URL",
		URL: wire.BaseURL, Models: "claude", Usual: true,
	}},
}

var wire = remote.Wire{
	Name:      "Anthropic Messages",
	BaseURL:   "https://api.anthropic.com",
	BaseEnv:   "ANTHROPIC_BASE_URL",
	KeyEnv:    "ANTHROPIC_API_KEY",
	Version:   "v1",
	Path:      "messages",
	KeyHeader: "X-Api-Key",
	Header:    setHeader,
	Documents: func(p *profile.Profile) bool { return !p.NoDocuments },
	Body:      fragments,
	Decoder:   func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// setHeader sets the version of the API. For models that think within a budget, it also
// asks for thinking between calls, which is off by default.
func setHeader(h http.Header, q *remote.Query) {
	h.Set("Anthropic-Version", "2023-06-01")
	if thinkingOf(q).budget > 0 {
		h.Set("Anthropic-Beta", "interleaved-thinking-2025-05-14")
	}
}
