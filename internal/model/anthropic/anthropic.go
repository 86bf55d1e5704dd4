// Package anthropic speaks Anthropic Messages. What package remote promises
// holds for it.
//
//   - History is never encoded twice, though the wire joins messages of one side
//     and all results of an answer into one message.
//   - What a model thought goes back as it came, byte for byte and in its place
//     among texts and calls.
//   - Tools, system prompt and history are marked for the provider's cache so
//     that each request finds what the one before it left there.
package anthropic

import (
	"net/http"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config says where the model is and how to reach it. The base URL goes up
	// to and without /v1/messages, or up to and without /messages.
	Config = remote.Config
	// A Client is a model behind Anthropic Messages.
	Client = remote.Client
)

// New returns a client. A base URL that makes no sense is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

var wire = remote.Wire{
	Name:      "Anthropic Messages",
	BaseURL:   "https://api.anthropic.com",
	Version:   "v1",
	Path:      "messages",
	KeyHeader: "X-Api-Key",
	Header:    setHeader,
	Body:      fragments,
	Decoder:   func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// setHeader says which wire is spoken. Models that think within a budget only do
// so between two calls if they are asked to.
func setHeader(h http.Header, q *remote.Query) {
	h.Set("Anthropic-Version", "2023-06-01")
	if thinkingOf(q).budget > 0 {
		h.Set("Anthropic-Beta", "interleaved-thinking-2025-05-14")
	}
}
