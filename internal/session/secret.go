package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// keys are the secrets of a session's providers. They are stored as one JSON object:
// the members of the session's own provider, and below "named" those of the providers
// that its client listed.
type keys struct {
	own   members
	named map[string]members
}

// boundTo names the member that says which endpoint a key is for. A key without it
// was stored by a version that did not bind keys; it is for the provider that the
// session has.
const boundTo = "for"

func parseKeys(text []byte) (k keys, err error) {
	if len(text) == 0 {
		return k, nil
	}
	if err = json.Unmarshal(text, &k.own); err == nil && k.own["named"] != nil {
		err = json.Unmarshal(k.own["named"], &k.named)
	}
	delete(k.own, "named")
	if err != nil {
		err = fmt.Errorf("providers' keys: %w", err)
	}
	return k, err
}

// encode writes keys as they are stored.
func (k keys) encode() ([]byte, error) {
	all := members{}
	maps.Copy(all, k.own)
	if len(k.named) > 0 {
		named, err := json.Marshal(k.named)
		if err != nil {
			return nil, err
		}
		all["named"] = named
	}
	return json.Marshal(all)
}

// bind returns the keys, with every unbound key bound to its endpoint in a
// configuration.
func (k keys) bind(config event.SessionConfiguredData) (keys, error) {
	to, err := endpointsOf(config)
	if err != nil {
		return keys{}, err
	}
	bound := keys{own: bindTo(k.own, to.own), named: make(map[string]members)}
	for name, key := range k.named {
		bound.named[name] = bindTo(key, to.named[name])
	}
	return bound, nil
}

func bindTo(key members, endpoint string) members {
	if key == nil || key[boundTo] != nil {
		return key
	}
	key = maps.Clone(key)
	key[boundTo], _ = json.Marshal(endpoint) // encoding a string cannot fail
	return key
}

// usable returns the keys for the endpoints of a configuration. Every use of a key
// comes through here, so that no endpoint gets the key of another.
func (k keys) usable(config event.SessionConfiguredData) (keys, error) {
	to, err := endpointsOf(config)
	if err != nil {
		return keys{}, err
	}
	fit := keys{own: fitting(k.own, to.own), named: make(map[string]members)}
	for name, key := range k.named {
		if key = fitting(key, to.named[name]); key != nil {
			fit.named[name] = key
		}
	}
	return fit, nil
}

// fitting returns a key without its binding, or nil if it is for another endpoint.
func fitting(key members, endpoint string) members {
	bound, is := key[boundTo]
	if !is {
		return key
	}
	if jsonString(bound) != endpoint {
		return nil
	}
	key = maps.Clone(key)
	delete(key, boundTo)
	return key
}

// endpoints are where the providers of a configuration are.
type endpoints struct {
	own   string
	named map[string]string
}

func endpointsOf(config event.SessionConfiguredData) (endpoints, error) {
	to := endpoints{own: endpointOf(config.Provider), named: make(map[string]string)}
	if config.Providers == nil {
		return to, nil
	}
	var listed []json.RawMessage
	if err := json.Unmarshal(config.Providers, &listed); err != nil {
		return to, fmt.Errorf("providers: %w", err)
	}
	for _, p := range listed {
		var named struct{ Name string }
		if err := json.Unmarshal(p, &named); err != nil {
			return to, fmt.Errorf("providers: %w", err)
		}
		to.named[named.Name] = endpointOf(p)
	}
	return to, nil
}

// endpointOf identifies the endpoint of a provider: providers of the same type at the
// same address have the same endpoint, whatever else is configured for them. A type
// without an address is the vendor's own endpoint. It is empty if there is no
// provider.
func endpointOf(provider json.RawMessage) string {
	var p struct {
		Type    string `json:"type"`
		BaseURL string `json:"baseUrl"`
	}
	if json.Unmarshal(provider, &p) != nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(p.Type, "openai") + " " + p.BaseURL)
}

// secrets are what a session in memory knows of what is kept beside its log. Requests
// read them while the session's goroutine replaces them.
type secrets struct {
	provider atomic.Pointer[[]byte]   // the keys of its providers as they are stored, once they were read
	env      atomic.Pointer[[]string] // its environment, once it was read
}

// keys returns all stored keys of the session. They are read from the store once, so
// that requests do not wait for it. If a transaction changes them meanwhile, its keys
// are kept.
func (s *Session) keys(ctx context.Context) ([]byte, error) {
	if kept := s.secrets.provider.Load(); kept != nil {
		return *kept, nil
	}
	text, err := s.host.store.Secret(ctx, s.id, secretProvider)
	if err == nil {
		s.secrets.provider.CompareAndSwap(nil, &text)
	}
	return text, err
}

// usableKeys returns the keys of the providers of a configuration.
func (s *Session) usableKeys(ctx context.Context, config event.SessionConfiguredData) ([]byte, error) {
	text, err := s.keys(ctx)
	if err != nil {
		return nil, err
	}
	return usableKeys(text, config)
}

// usableKeys returns the keys of the session's providers, with the changes of this
// transaction.
func (tx *txn) usableKeys() ([]byte, error) {
	text, err := tx.keys()
	if err != nil {
		return nil, err
	}
	return usableKeys(text, tx.State.Setup.Config)
}

func usableKeys(text []byte, config event.SessionConfiguredData) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	kept, err := parseKeys(text)
	if err == nil {
		kept, err = kept.usable(config)
	}
	if err != nil {
		return nil, err
	}
	return kept.encode()
}

// keepSecret stores a value beside the log, together with what the transaction
// records.
func (tx *txn) keepSecret(name string, value []byte) {
	tx.secrets = append(tx.secrets, eventlog.Secret{Name: name, Value: value})
}

// pendingSecret returns the value that this transaction will store under a name, or
// nil.
func (tx *txn) pendingSecret(name string) []byte {
	for _, s := range slices.Backward(tx.secrets) {
		if s.Name == name {
			return s.Value
		}
	}
	return nil
}

// keepSecrets stores the secrets that a client brings for a configuration that this
// transaction records. It must come before the configuration is recorded, because
// keys that stay are bound to the endpoints of the configuration before it.
func (tx *txn) keepSecrets(spec Spec) error {
	if spec.Env != nil {
		env, err := json.Marshal(spec.Env)
		if err != nil {
			return err
		}
		tx.keepSecret(secretEnv, env)
	}
	if spec.Provider == nil && spec.Config.Provider == nil && spec.Config.Providers == nil {
		return nil
	}
	return tx.keepKeys(spec.Provider, spec.Config)
}

// keepKeys replaces the keys of those providers that a configuration names.
func (tx *txn) keepKeys(secret []byte, config event.SessionConfiguredData) error {
	brought, err := parseKeys(secret)
	if err == nil {
		brought, err = brought.bind(config)
	}
	if err != nil {
		return err
	}
	text, err := tx.keys()
	if err != nil {
		return err
	}
	kept, err := parseKeys(text)
	if err == nil {
		kept, err = kept.bind(tx.State.Setup.Config)
	}
	if err != nil {
		return err
	}
	if config.Provider != nil && brought.own != nil {
		kept.own = brought.own
	}
	if config.Providers != nil && secret != nil {
		kept.named = brought.named
	}
	now, err := kept.encode()
	if err == nil && !bytes.Equal(now, text) {
		tx.keepSecret(secretProvider, now)
	}
	return err
}

// keys returns all keys of the session, with the changes of this transaction.
func (tx *txn) keys() ([]byte, error) {
	if pending := tx.pendingSecret(secretProvider); pending != nil {
		return pending, nil
	}
	if tx.State.Seq == 0 {
		return nil, nil
	}
	return tx.s.keys(tx.s.host.ctx)
}

// renewSecrets stores the secrets that a client brings for a session that it does not
// configure: only those of providers that the session has.
func (tx *txn) renewSecrets(spec Spec) error {
	is, err := endpointsOf(tx.State.Setup.Config)
	if err != nil {
		return err
	}
	offered, err := endpointsOf(spec.Config)
	if err != nil {
		return err
	}
	if offered.own != is.own {
		spec.Config.Provider = nil
	}
	if !maps.Equal(offered.named, is.named) {
		spec.Config.Providers = nil
	}
	return tx.keepSecrets(spec)
}

// replace sets the secrets that were stored, so that the next request has them.
func (kept *secrets) replace(secrets []eventlog.Secret) {
	for _, secret := range secrets {
		switch secret.Name {
		case secretProvider:
			kept.provider.Store(&secret.Value)
		case secretEnv:
			var env []string
			if json.Unmarshal(secret.Value, &env) == nil { // keepSecrets has encoded it
				kept.env.Store(&env)
			}
		}
	}
}

// forget drops the secrets of a deleted session.
func (kept *secrets) forget() {
	kept.provider.Store(nil)
	kept.env.Store(nil)
}

// These are the names of what is stored beside the log.
const (
	secretEnv      = "env"      // the session's environment, as JSON
	secretProvider = "provider" // keys of the session's own provider, as JSON
)
