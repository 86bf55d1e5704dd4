//lint:file-ignore SA1019 Roots and log messages are going to be removed from the protocol, and servers of today use them.

package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addOlderParts adds the parts of the protocol that its newest version only keeps for a while.
func (c *client) addOlderParts(o *sdk.ClientOptions) {
	o.Capabilities = &sdk.ClientCapabilities{}
	if !c.set.in.Shared {
		o.Capabilities.RootsV2 = &sdk.RootCapabilities{}
	}
	o.LoggingMessageHandler = func(_ context.Context, r *sdk.LoggingMessageRequest) { c.logMessage(r.Params) }
}

// addSampling lets the server ask the model, in texts and without tools.
func (c *client) addSampling(o *sdk.ClientOptions) {
	o.Capabilities.Sampling = &sdk.SamplingCapabilities{}
	o.CreateMessageWithToolsHandler = c.sample
}

// addRoot tells servers that ask for it where the session works.
func (c *client) addRoot(k *sdk.Client) {
	if c.set.in.Dir != "" && !c.set.in.Shared {
		k.AddRoots(&sdk.Root{URI: fileURL(c.set.in.Dir), Name: "working directory"})
	}
}

func (c *client) logMessage(p *sdk.LoggingMessageParams) {
	text, _ := json.Marshal(p.Data) // what was decoded can be encoded
	c.log.note(Owner(c.set.in.Session), "the server says (%s %s): %s", p.Level, p.Logger, text[:min(len(text), 10_000)])
}
