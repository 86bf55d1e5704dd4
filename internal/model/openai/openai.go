// Package openai speaks Chat Completions, the wire that most providers and
// local servers understand. What package remote promises holds for it.
//
//   - History is never encoded twice. Messages and tools keep their wire form,
//     and a request is read from these pieces as it is sent.
//   - Several choices are parts of one message.
//
// The wire has no place for pictures in tool results; whoever wants to show one
// puts it into a user message after them. Reasoning is read and never sent back.
package openai

import (
	"net/url"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config says where the model is and how to reach it. The base URL goes up
	// to and without /chat/completions.
	Config = remote.Config
	// A Client is a model behind Chat Completions.
	Client = remote.Client
)

// New returns a client. A base URL that makes no sense is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

var wire = remote.Wire{
	Name:    "Chat Completions",
	BaseURL: "https://api.openai.com/v1",
	Path:    "chat/completions",
	Azure:   azurePath,
	Body:    fragments,
	Decoder: func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// azurePath is where a resource of Azure answers. The versioned route names the
// deployment.
func azurePath(a remote.Azure, name string) string {
	if a.APIVersion == "" {
		return "openai/v1/chat/completions"
	}
	return "openai/deployments/" + url.PathEscape(name) + "/chat/completions"
}
