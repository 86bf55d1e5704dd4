package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/provider"
)

// secrets are what a session in memory knows of what is kept beside its log. Requests
// read them while the session's goroutine replaces them.
type secrets struct {
	keys atomic.Pointer[provider.Keys] // the keys of its providers, once they were read
	env  atomic.Pointer[[]string]      // its environment, once it was read
	// decoded are the providers of the configuration that was used last, without keys.
	decoded atomic.Pointer[decodedProviders]
}

// decodedProviders are the providers of a configuration.
type decodedProviders struct {
	config event.SessionConfiguredData
	set    provider.Set
}

// decode returns the providers of a configuration, which is nearly always that of the
// last request.
func (s *secrets) decode(config *event.SessionConfiguredData) (provider.Set, error) {
	if last := s.decoded.Load(); last != nil && provider.SameIn(&last.config, config) {
		return last.set, nil
	}
	set, err := provider.Of(config)
	if err == nil {
		s.decoded.Store(&decodedProviders{*config, set})
	}
	return set, err
}

// keys returns all stored keys of the session. They are read from the store once, so
// that requests do not wait for it. If a transaction changes them meanwhile, its keys
// are kept.
func (s *Session) keys(ctx context.Context) (*provider.Keys, error) {
	if kept := s.secrets.keys.Load(); kept != nil {
		return kept, nil
	}
	text, lost, err := s.readSecret(ctx, secretProvider)
	if err != nil {
		return nil, err
	}
	keys, err := provider.ParseKeys(text)
	if err == nil {
		keys.Lost = lost
		s.secrets.keys.CompareAndSwap(nil, keys)
	}
	return keys, err
}

// readSecret reads what is stored under a name. If the store cannot open it, the session
// goes on as if there were none: lost says why, and a client can give it again.
func (s *Session) readSecret(ctx context.Context, name string) (value []byte, lost, err error) {
	value, err = s.host.store.Secret(ctx, s.id, name)
	if errors.Is(err, eventlog.ErrSealed) {
		s.host.log.Warn("a session goes on without a secret, which a client has to give again", "session", s.id, "name", name, "err", err)
		return nil, err, nil
	}
	return value, nil, err
}

// providers returns the providers of a configuration with their keys.
func (s *Session) providers(ctx context.Context, config *event.SessionConfiguredData) (provider.Set, error) {
	return s.secrets.withKeys(config, func() (*provider.Keys, error) { return s.keys(ctx) })
}

// providers returns the session's providers with their keys, and with the changes of
// this transaction.
func (tx *txn) providers() (provider.Set, error) {
	return tx.s.secrets.withKeys(tx.State.ReadSettings(), tx.keys)
}

func (s *secrets) withKeys(config *event.SessionConfiguredData, read func() (*provider.Keys, error)) (provider.Set, error) {
	set, err := s.decode(config)
	if err != nil {
		return set, err
	}
	keys, err := read()
	if err != nil {
		return set, err
	}
	return set.WithKeys(keys), nil
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
		usable := usableVariables(spec.Env)
		env, err := json.Marshal(usable)
		if err != nil {
			return err
		}
		tx.keepSecret(secretEnv, env)
		tx.env = usable
	}
	if err := tx.keepMCPSecrets(spec.MCP); err != nil {
		return err
	}
	if spec.Keys == nil && spec.Config.Provider == nil && spec.Config.Providers == nil {
		return nil
	}
	return tx.keepKeys(spec.Keys, &spec.Config)
}

// replaceLostEnv gives a session the environment of the client that resumes it, if its own
// cannot be opened any more: commands would have to do without.
func (tx *txn) replaceLostEnv(spec *Spec) error {
	if spec.Env != nil || spec.SpareEnv == nil {
		return nil
	}
	_, lost, err := tx.s.readSecret(tx.s.host.ctx, secretEnv)
	if lost != nil {
		spec.Env = spec.SpareEnv
	}
	return err
}

// usableVariables returns the variables of an environment that a command can get: those with
// a name, and of several with the same name the last one. The others are not stored. All
// that are left are needed: an empty variable is another thing than none, and one that this
// process has, too, is perhaps not one of the next engine, in which a command must find the
// same environment. The keys that abide itself reads are removed by the process whose
// environment it is.
func usableVariables(env []string) []string {
	last := make(map[string]int, len(env)) // index of the last entry of each name
	for i, entry := range env {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" && !strings.ContainsRune(entry, 0) {
			last[name] = i
		}
	}
	if len(last) == len(env) {
		return env // all sessions of a client share the slice
	}
	usable := make([]string, 0, len(last))
	for _, i := range slices.Sorted(maps.Values(last)) {
		usable = append(usable, env[i])
	}
	return usable
}

// keepKeys replaces the keys of those providers that a configuration names. A client
// that brings none has nil.
func (tx *txn) keepKeys(brought *provider.Keys, config *event.SessionConfiguredData) error {
	to, err := provider.Of(config)
	if err != nil {
		return err
	}
	is, err := provider.Of(tx.State.ReadSettings())
	if err != nil {
		return err
	}
	had, err := tx.keys()
	if err != nil {
		return err
	}
	kept := had.Bind(is)
	if brought != nil {
		bound := brought.Bind(to)
		if to.Own != nil && bound.Own != nil {
			kept.Own = bound.Own
		}
		if config.Providers != nil {
			kept.Named = bound.Named
		}
	}
	return tx.replaceKeys(had, kept)
}

// replaceKeys stores keys if they are not those that are stored.
func (tx *txn) replaceKeys(had, kept *provider.Keys) error {
	before, err := had.Encode()
	if err != nil {
		return err
	}
	now, err := kept.Encode()
	if err == nil && !bytes.Equal(now, before) {
		tx.keepSecret(secretProvider, now)
	}
	return err
}

// keys returns all keys of the session, with the changes of this transaction.
func (tx *txn) keys() (*provider.Keys, error) {
	if pending := tx.pendingSecret(secretProvider); pending != nil {
		return provider.ParseKeys(pending)
	}
	if tx.State.Seq == 0 {
		return &provider.Keys{}, nil
	}
	return tx.s.keys(tx.s.host.ctx)
}

// renewSecrets stores the secrets that a client brings for a session that it does not
// configure: only those of providers that the session has.
func (tx *txn) renewSecrets(spec Spec) error {
	is, err := provider.Of(tx.State.ReadSettings())
	if err != nil {
		return err
	}
	offered, err := provider.Of(&spec.Config)
	if err != nil {
		return err
	}
	if offered.Own.Endpoint() != is.Own.Endpoint() {
		spec.Config.Provider = nil
	}
	if !offered.SameListed(is) {
		spec.Config.Providers = nil
	}
	return tx.keepSecrets(spec)
}

// replace sets the secrets that were stored, so that the next request has them. The
// environment is shared with the client that brought it: most sessions of a client have
// the same, and there may be many sessions.
func (kept *secrets) replace(secrets []eventlog.Secret, env []string) {
	if env != nil {
		its := env // the address of env would cost an allocation in every transaction
		kept.env.Store(&its)
	}
	for _, secret := range secrets {
		if secret.Name != secretProvider {
			continue
		}
		if keys, err := provider.ParseKeys(secret.Value); err == nil { // keepKeys has encoded it
			kept.keys.Store(keys)
		}
	}
}

// forget drops the secrets of a deleted session.
func (kept *secrets) forget() {
	kept.keys.Store(nil)
	kept.env.Store(nil)
}

// These are the names of what is stored beside the log.
const (
	secretEnv      = "env"      // the session's environment, as JSON
	secretProvider = "provider" // keys of the session's own provider, as JSON
)
