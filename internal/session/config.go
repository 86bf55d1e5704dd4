package session

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/turn"
)

// Settings reads and changes what sessions are configured with.
type Settings struct{ host *Host }

// SetMode changes the mode in which a session's agent works.
func (set Settings) SetMode(ctx context.Context, id event.SessionID, mode string) error {
	return set.host.change(ctx, id, func(tx *txn) error {
		if was := tx.State.Mode(); was != mode {
			return tx.record(event.ModeChangedData{NewMode: mode, PreviousMode: was})
		}
		return nil
	})
}

// SuggestName gives a session a name unless a person has given it one.
func (set Settings) SuggestName(ctx context.Context, id event.SessionID, name string) (taken bool, err error) {
	err = set.host.change(ctx, id, func(tx *txn) error {
		if taken = tx.State.About.Name == "" || tx.State.About.AutoNamed; !taken {
			return nil
		}
		tx.send(event.TitleChangedData{Title: name})
		return tx.record(event.SessionNamedData{Name: name, Auto: true})
	})
	return taken, err
}

// Configure changes the configuration of a session.
func (h *Host) Configure(ctx context.Context, id event.SessionID, f func(*event.SessionConfiguredData) error) error {
	return h.change(ctx, id, func(tx *txn) error {
		to := tx.State.Setup.Config
		if err := f(&to); err != nil {
			return err
		}
		return tx.record(to)
	})
}

// ChangeProviders changes the providers and models of a session. The function change
// is given them with their keys, and changes them.
func (set Settings) ChangeProviders(ctx context.Context, id event.SessionID, change func(*provider.Set) error) error {
	return set.host.change(ctx, id, func(tx *txn) error {
		providers, err := tx.providers()
		if err != nil {
			return err
		}
		if err := change(&providers); err != nil {
			return err
		}
		to := tx.State.Setup.Config
		keys, err := providers.Record(&to)
		if err != nil {
			return err
		}
		if err := tx.keepKeys(keys, &to); err != nil {
			return err
		}
		if err := tx.stopForOtherProviders(providers); err != nil {
			return err
		}
		return tx.record(to)
	})
}

// Provider returns the provider of a session's model, with its keys; nil if there is
// none. An empty name is the model in use.
func (set Settings) Provider(ctx context.Context, id event.SessionID, name string) (*provider.Provider, error) {
	var as provider.Choice
	err := set.host.inspect(ctx, id, func(tx *txn) error {
		providers, err := tx.providers()
		if err != nil {
			return err
		}
		if as, err = providers.Choose(cmp.Or(name, tx.State.Setup.Model)); err != nil {
			return err
		}
		return as.Provider.Err()
	})
	return as.Provider, err
}

// OfferedTools returns the tools that a session offers to its model. Without a
// session, they are the tools of the runtime.
func (set Settings) OfferedTools(ctx context.Context, id event.SessionID) ([]model.Tool, error) {
	if id == "" {
		return set.host.opts.Tools.Offer(turn.New(id)), nil
	}
	var list []model.Tool
	err := set.host.inspect(ctx, id, func(tx *txn) error {
		list = set.host.opts.Tools.Offer(tx.State)
		return nil
	})
	return list, err
}

// Bare reports whether the clients of a session want it to have no folder.
func (set Settings) Bare(id event.SessionID) bool {
	s := set.host.peek(id)
	return s != nil && s.bare.Load()
}

// Endpoint resolves a model as a session's own requests do: with the same provider,
// keys and clients.
func (set Settings) Endpoint(ctx context.Context, id event.SessionID, config event.SessionConfiguredData, name string) (Endpoint, error) {
	s := set.host.peek(id)
	if s == nil {
		s = newSession(set.host, id)
	}
	return s.resolveModel(ctx, &config, name)
}

// Environment returns the environment of a session's commands; nil if it has
// none of its own.
func (set Settings) Environment(ctx context.Context, id event.SessionID) ([]string, error) {
	return set.host.get(id).environment(ctx)
}

// environment returns the session's environment; nil if it has none of its own. It is
// read from the store once. If a client replaces it meanwhile, the client's is kept.
func (s *Session) environment(ctx context.Context) (env []string, err error) {
	if known := s.secrets.env.Load(); known != nil {
		return *known, nil
	}
	text, _, err := s.readSecret(ctx, secretEnv)
	if err == nil && text != nil {
		err = json.Unmarshal(text, &env)
	}
	if err == nil {
		s.secrets.env.CompareAndSwap(nil, &env)
	}
	return env, err
}

// A Choice is a model, with what a client knows about it.
type Choice struct {
	Model, Effort string
	Vision        *bool // true if the model sees images; nil if that is unknown
	Window        int   // tokens that fit into a request and its reply
}

// SetModel changes the model from the next request on.
func (h *Host) SetModel(ctx context.Context, id event.SessionID, to Choice) error {
	return h.change(ctx, id, func(tx *txn) error {
		return tx.setModel(to)
	})
}

func (tx *txn) setModel(m Choice) error {
	to := tx.State.Setup.Config
	to.Model, to.ReasoningEffort, to.Vision, to.Window = m.Model, m.Effort, m.Vision, m.Window
	return tx.record(event.SessionModelChangeData{NewModel: m.Model, PreviousModel: tx.State.Setup.Model, ReasoningEffort: m.Effort}, to)
}

// Rename gives a session a name.
func (h *Host) Rename(ctx context.Context, id event.SessionID, name string) error {
	return h.change(ctx, id, func(tx *txn) error {
		return tx.rename(name)
	})
}

func (tx *txn) rename(name string) error {
	if name == "" || (name == tx.State.About.Name && !tx.State.About.AutoNamed) {
		return nil
	}
	tx.send(event.TitleChangedData{Title: name})
	return tx.record(event.SessionNamedData{Name: name})
}
