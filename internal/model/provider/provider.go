// Package provider describes the model providers of sessions: where they are, how they
// are asked, and which keys they are sent.
//
//   - Providers, their models and their keys are decoded and encoded here alone. All
//     other packages get values, so that a field means the same to all of them.
//   - Members that this version has no field for are kept, byte for byte.
//   - A stored provider that cannot be read does no damage: its session is loaded, and
//     what is wrong with it is reported when its model is asked.
//   - A configuration never contains a key, nor a password or the query of a base URL: [Set.Record]
//     separates the two. A key is bound to the endpoint that it was given for, and no other endpoint is sent it.
package provider

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// DefaultType is the type of a provider that names none. Nearly all servers understand
// its API.
const DefaultType = "openai"

// A Provider is a model endpoint, in the protocol's form.
type Provider struct {
	Name        string            `json:"name,omitempty"`
	Type        string            `json:"type,omitempty"` // DefaultType if empty
	WireAPI     string            `json:"wireApi,omitempty"`
	BaseURL     string            `json:"baseUrl"`
	APIKey      string            `json:"apiKey,omitempty"`
	BearerToken string            `json:"bearerToken,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ModelID     string            `json:"modelId,omitempty"`
	HasToken    bool              `json:"hasBearerTokenProvider,omitempty"` // true if the client gives a token for each request
	WireModel   string            `json:"wireModel,omitempty"`
	Azure       Azure             `json:"azure,omitzero"`
	// Maximum length of requests and replies, in tokens.
	MaxPromptTokens int `json:"maxPromptTokens,omitempty"`
	MaxOutputTokens int `json:"maxOutputTokens,omitempty"`
	// Settings that only abide sends.
	Abide *Settings `json:"abide,omitempty"`
	// Default is true if the client named no endpoint, so that this is the default of
	// its process.
	Default bool `json:"default,omitempty"`

	rest
}

// Azure holds the settings of an Azure endpoint.
type Azure struct {
	APIVersion string `json:"apiVersion,omitempty"` // selects the versioned routes
}

// Settings are the configured settings of the models of a provider.
type Settings struct {
	ReasoningEffort string            `json:"reasoningEffort,omitempty"` // default of sessions that set none
	Profile         string            `json:"profile,omitempty"`         // name of a profile; that of the host if empty
	ExtraBody       string            `json:"extraBody,omitempty"`       // JSON object of further members of every request
	CacheTTL        string            `json:"cacheTtl,omitempty"`        // how long the provider keeps its cache: "5m" or "1h"; its default if empty
	Models          map[string]Limits `json:"models,omitempty"`          // limits by model name at the provider

	KeyCommand *KeyCommand `json:"keyCommand,omitempty"` // command that prints the API key; nil if there is none
}

// A KeyCommand is a command that prints the API key of a provider. It is run when the key is
// needed. It is stored like a key and not with the configuration: whoever can write to a log
// must not choose a program that is run.
type KeyCommand struct {
	Command string `json:"command"`           // command line for sh
	Setting string `json:"setting,omitempty"` // setting that it comes from, for errors
}

// Limits are configured limits, capabilities and prices of a model. A zero field is
// not configured. Prices are in US dollars for a million tokens.
type Limits struct {
	Window     int      `json:"window,omitempty"`
	MaxOutput  int      `json:"maxOutput,omitempty"`
	Vision     *bool    `json:"vision,omitempty"`
	Reasoning  *bool    `json:"reasoning,omitempty"`
	Input      *float64 `json:"inputPrice,omitempty"`
	Output     *float64 `json:"outputPrice,omitempty"`
	CacheRead  *float64 `json:"cacheReadPrice,omitempty"`
	CacheWrite *float64 `json:"cacheWritePrice,omitempty"`
	// Settings of requests; the default of the provider if they are nil.
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"topP,omitempty"`
}

// A Model is a model of one of the listed providers of a session, in the protocol's
// form.
type Model struct {
	ID              string          `json:"id"`
	Provider        string          `json:"provider"`
	Name            string          `json:"name,omitempty"`
	WireModel       string          `json:"wireModel,omitempty"`
	ModelID         string          `json:"modelId,omitempty"`
	MaxPromptTokens int             `json:"maxPromptTokens,omitempty"`
	MaxWindow       int             `json:"maxContextWindowTokens,omitempty"`
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	Capabilities    json.RawMessage `json:"capabilities,omitempty"`

	rest
}

// Err returns the error of a stored provider that cannot be read, which names the
// field.
func (p *Provider) Err() error {
	if p == nil {
		return nil
	}
	return p.err
}

// KeyCommand returns the command that prints the provider's key; nil if there is none.
func (p *Provider) KeyCommand() *KeyCommand {
	if p == nil || p.Abide == nil {
		return nil
	}
	return p.Abide.KeyCommand
}

// setKeyCommand sets the command that prints the key. Settings are shared between providers,
// so they are copied.
func (p *Provider) setKeyCommand(k *KeyCommand) {
	if p.KeyCommand() == k {
		return
	}
	own := Settings{}
	if p.Abide != nil {
		own = *p.Abide
	}
	own.KeyCommand = k
	p.Abide = &own
}

// Endpoint identifies where requests go: providers of the same type at the same
// address have the same endpoint, whatever else is configured for them. A type without
// an address is the vendor's own endpoint. It is empty if there is no provider, or
// none that can be read.
func (p *Provider) Endpoint() string {
	if p == nil || p.err != nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(p.Type, DefaultType) + " " + model.OpenURL(p.BaseURL))
}

// Address returns the base URL as people may see it: without a user, a password and a query.
func (p *Provider) Address() string { return model.OpenURL(p.BaseURL) }

// TokenName returns the name under which a client is asked for the provider's tokens;
// empty if clients give none.
func (p *Provider) TokenName() string {
	if p == nil || !p.HasToken {
		return ""
	}
	return cmp.Or(p.Name, "default")
}

// ForModel returns the provider with what one of its models says differently.
func (p Provider) ForModel(m Model) *Provider {
	p.WireModel = cmp.Or(m.WireModel, p.WireModel)
	p.ModelID = cmp.Or(m.ModelID, p.ModelID)
	p.MaxPromptTokens = cmp.Or(m.MaxPromptTokens, p.MaxPromptTokens)
	p.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, p.MaxOutputTokens)
	p.err = cmp.Or(p.err, m.err)
	return &p
}

// WithoutUnknown returns the provider with only the members that this version knows.
// What a client sends is recorded without the others, because one of them may be a
// secret.
func (p Provider) WithoutUnknown() Provider {
	p.unknown = nil
	return p
}

// WithoutUnknown returns the model with only the members that this version knows.
func (m Model) WithoutUnknown() Model {
	m.unknown = nil
	return m
}
