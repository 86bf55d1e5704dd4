package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/abide-run/abide/internal/model"
)

// A Secret is the part of a provider that is never in a configuration. Its fields are
// in the order of their names, in which they have always been stored.
type Secret struct {
	APIKey string `json:"apiKey,omitempty"`
	// BaseURL is the base URL if it has a user, a password or a query, any of which may be a key.
	// The configuration then has it without them.
	BaseURL     string `json:"baseUrl,omitempty"`
	BearerToken string `json:"bearerToken,omitempty"`
	// For is the endpoint that the secret is for. It is nil if a version that did not
	// bind secrets has stored it: it is for the provider that the session has.
	For     *string           `json:"for,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// KeyCommand prints the key. It starts a program, so it is sealed and bound like a key.
	KeyCommand *KeyCommand `json:"keyCommand,omitempty"`

	rest
}

// Keys are the secrets of a session's providers. They are stored beside the log as one
// JSON object: the members of the secret of the session's own provider, and below
// "named" the secrets of those that its client listed. Keys do not change once they
// are made.
type Keys struct {
	Own   *Secret            // nil if there is none
	Named map[string]*Secret // secrets by the names of their providers
	Lost  error              // why the stored keys cannot be read; nil if they can. It is not stored
}

const namedMember = "named"

// ParseKeys decodes stored keys. There are none if the text is empty.
func ParseKeys(text []byte) (*Keys, error) {
	if len(text) == 0 {
		return &Keys{}, nil
	}
	var own Secret
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, fieldError("the keys of the providers", err)
	}
	k := &Keys{}
	if named := own.unknown[namedMember]; named != nil {
		if err := json.Unmarshal(named, &k.Named); err != nil {
			return nil, fieldError("the keys of the providers", err)
		}
		delete(own.unknown, namedMember)
	}
	if len(own.unknown) == 0 {
		own.unknown = nil
	}
	if !reflect.DeepEqual(own, Secret{}) {
		k.Own = &own
	}
	return k, nil
}

// Encode returns the keys as they are stored.
func (k *Keys) Encode() ([]byte, error) {
	var own Secret
	if k.Own != nil {
		own = *k.Own
	}
	all := members{}
	for name, value := range own.unknown {
		all[name] = value
	}
	if len(k.Named) > 0 {
		named, err := json.Marshal(k.Named)
		if err != nil {
			return nil, fmt.Errorf("the keys of the providers: %w", err)
		}
		all[namedMember] = named
	}
	return encode(secretOnly(own), all)
}

// Bind returns the keys with every unbound key bound to the endpoint of its provider.
func (k *Keys) Bind(to Set) *Keys {
	return k.each(to, func(key *Secret, endpoint string) *Secret {
		if key == nil || key.For != nil {
			return key
		}
		bound := *key
		bound.For = &endpoint
		return &bound
	})
}

// Usable returns the keys that are for the endpoints of the providers, without their
// bindings.
func (k *Keys) Usable(by Set) *Keys {
	return k.each(by, func(key *Secret, endpoint string) *Secret {
		if key == nil || key.For != nil && model.OpenURL(*key.For) != endpoint {
			return nil
		}
		usable := *key
		usable.For = nil
		return &usable
	})
}

// each returns the keys that a function makes of each key and the endpoint of its
// provider. A key that becomes nil is left out.
func (k *Keys) each(set Set, change func(key *Secret, endpoint string) *Secret) *Keys {
	changed := &Keys{Own: change(k.Own, set.Own.Endpoint())}
	if len(k.Named) == 0 {
		return changed
	}
	changed.Named = make(map[string]*Secret)
	endpoints := set.endpoints()
	for name, key := range k.Named {
		if key = change(key, endpoints[name]); key != nil {
			changed.Named[name] = key
		}
	}
	return changed
}

// OfListed returns the keys of the listed providers alone.
func (k *Keys) OfListed() *Keys {
	if k == nil {
		return nil
	}
	return &Keys{Named: k.Named}
}

// takeSecret moves the secret out of a provider.
func (p *Provider) takeSecret() *Secret {
	s := &Secret{APIKey: p.APIKey, BearerToken: p.BearerToken, Headers: p.Headers, KeyCommand: p.KeyCommand()}
	p.APIKey, p.BearerToken, p.Headers = "", "", nil
	if open := model.OpenURL(p.BaseURL); open != p.BaseURL {
		s.BaseURL, p.BaseURL = p.BaseURL, open
	}
	p.setKeyCommand(nil)
	return s
}

// addSecret gives a provider a bound secret, which may be nil, if it is for the
// provider's endpoint. Every use of a key comes through here, so that no endpoint gets
// the key of another.
func (p *Provider) addSecret(s *Secret) {
	if s != nil && model.OpenURL(*s.For) == p.Endpoint() {
		p.APIKey, p.BearerToken, p.Headers = s.APIKey, s.BearerToken, s.Headers
		p.BaseURL = cmp.Or(s.BaseURL, p.BaseURL)
		p.setKeyCommand(s.KeyCommand)
	}
}
