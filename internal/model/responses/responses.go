// Package responses speaks OpenAI Responses. What package remote promises holds
// for it.
//
//   - Nothing is left with the provider: each request carries the whole
//     conversation, and asks for reasoning in a form that can be given back.
//   - What a model answered goes back to it item by item as it came, encrypted
//     reasoning byte for byte before the calls that it led to.
//   - History is never encoded twice.
package responses

import (
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

type (
	// Config says where the model is and how to reach it. The base URL goes up
	// to and without /responses.
	Config = remote.Config
	// A Client is a model behind OpenAI Responses.
	Client = remote.Client
)

// New returns a client. A base URL that makes no sense is reported by Ask.
func New(c Config) *Client { return remote.New(c, wire) }

var wire = remote.Wire{
	Name:    "OpenAI Responses",
	BaseURL: "https://api.openai.com/v1",
	Path:    "responses",
	Azure:   azurePath,
	Body:    fragments,
	Decoder: func(q *remote.Query, on func(model.Delta)) remote.Decoder { return newBuilder(q, on) },
}

// azurePath is where a resource of Azure answers. Here, no route names the
// deployment: it stands in the request.
func azurePath(a remote.Azure, _ string) string {
	if a.APIVersion == "" {
		return "openai/v1/responses"
	}
	return "openai/responses"
}
