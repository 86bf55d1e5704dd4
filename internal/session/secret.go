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

// keys are what a session's providers must be told to answer. They are stored as
// one JSON object: the members of the session's own provider, and below "named"
// those of the providers that its client listed.
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

// bind returns the keys with each that is not bound yet bound to the endpoint that
// a configuration has for it.
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
	key[boundTo], _ = json.Marshal(endpoint) // a string
	return key
}

// usable returns the keys that are for the endpoints of a configuration. Every use
// of a key comes through here: no endpoint is told the key of another.
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

// endpointOf says where a provider is: two of the same type at the same address are
// the same, whatever else is configured for them. A type without an address is the
// vendor's own. It is empty if there is no provider.
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

// keys returns all keys that are kept for the session. They are read once: a request
// should not wait for the store. A transaction that changes them has the last word.
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

// usableKeys returns what the providers of a configuration must be told to answer.
func (s *Session) usableKeys(ctx context.Context, config event.SessionConfiguredData) ([]byte, error) {
	text, err := s.keys(ctx)
	if err != nil {
		return nil, err
	}
	return usableKeys(text, config)
}

// usableKeys returns what the session's providers must be told to answer.
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

// keepSecret stores a value beside the log, together with what the transaction records.
func (tx *txn) keepSecret(name string, value []byte) {
	tx.secrets = append(tx.secrets, eventlog.Secret{Name: name, Value: value})
}

// pendingSecret returns what the transaction stores beside the log under a name, or nil.
func (tx *txn) pendingSecret(name string) []byte {
	for _, s := range slices.Backward(tx.secrets) {
		if s.Name == name {
			return s.Value
		}
	}
	return nil
}

// keepSecrets keeps what a client brings for a configuration that is recorded in
// the same transaction. It comes before the configuration is recorded: keys that
// stay are bound to what the session was configured with until now.
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

// keys returns all keys of the session, as the transaction leaves them so far.
func (tx *txn) keys() ([]byte, error) {
	if pending := tx.pendingSecret(secretProvider); pending != nil {
		return pending, nil
	}
	if tx.State.Seq == 0 {
		return nil, nil
	}
	return tx.s.keys(tx.s.host.ctx)
}

// renewSecrets keeps what a client brings for a session that it does not configure:
// of the providers that the session has, and of no others.
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

// replace takes over what was stored, so that the next request has it.
func (kept *secrets) replace(secrets []eventlog.Secret) {
	for _, secret := range secrets {
		switch secret.Name {
		case secretProvider:
			kept.provider.Store(&secret.Value)
		case secretEnv:
			var env []string
			if json.Unmarshal(secret.Value, &env) == nil { // it was encoded by us
				kept.env.Store(&env)
			}
		}
	}
}

// forget lets go of the secrets of a session that is no more.
func (kept *secrets) forget() {
	kept.provider.Store(nil)
	kept.env.Store(nil)
}

// The names of what is kept beside the log.
const (
	secretEnv      = "env"      // the session's environment, as JSON
	secretProvider = "provider" // keys of the session's own provider, as JSON
)
