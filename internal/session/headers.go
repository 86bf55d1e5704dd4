package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
)

// secretHeaders names the headers of inputs in the store: a JSON object by the ids of
// the inputs. Its member headersFor says for which endpoint the headers of each input
// are.
const (
	secretHeaders = "headers"
	headersFor    = "for"
)

// keepHeaders keeps the headers of an input for the model requests of its turn. They
// may be secret, so they are kept beside the log, and only the provider that the
// session has now gets them. The headers of inputs that are done are removed.
func (tx *txn) keepHeaders(inputID string, headers map[string]string) error {
	kept, err := tx.headers()
	if err != nil {
		return err
	}
	to, err := endpointOf(tx.State.Setup.Config, tx.State.Setup.Model)
	if err != nil {
		return err
	}
	needed := func(id string) bool {
		return (tx.State.Turn != nil && slices.Contains(tx.State.Turn.Headers, id)) ||
			slices.ContainsFunc(tx.State.Queue.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == id })
	}
	bound := kept[headersFor]
	if bound == nil {
		bound = make(map[string]string)
	}
	maps.DeleteFunc(kept, func(id string, _ map[string]string) bool { return !needed(id) })
	maps.DeleteFunc(bound, func(id, _ string) bool { return !needed(id) })
	kept[inputID], bound[inputID], kept[headersFor] = headers, to, bound
	b, err := json.Marshal(kept)
	if err == nil {
		tx.keepSecret(secretHeaders, b)
	}
	return err
}

// headers returns the headers of all inputs, with the changes of this transaction.
func (tx *txn) headers() (map[string]map[string]string, error) {
	if pending := tx.pendingSecret(secretHeaders); pending != nil {
		return parseHeaders(pending)
	}
	return tx.s.readHeaders(tx.s.host.ctx)
}

func (s *Session) readHeaders(ctx context.Context) (map[string]map[string]string, error) {
	b, err := s.host.store.Secret(ctx, s.id, secretHeaders)
	if err != nil {
		return nil, err
	}
	return parseHeaders(b)
}

func parseHeaders(b []byte) (map[string]map[string]string, error) {
	kept := make(map[string]map[string]string)
	if b == nil {
		return kept, nil
	}
	return kept, json.Unmarshal(b, &kept)
}

// endpointOf returns the endpoint of one of the session's models.
func endpointOf(config event.SessionConfiguredData, name string) (string, error) {
	set, err := provider.Of(config)
	if err != nil {
		return "", err
	}
	as, err := set.Choose(name)
	return as.Provider.Endpoint(), err
}

// headers returns the headers that the inputs of a turn want in requests to a model.
// Headers for another endpoint are left out.
func (s *Session) headers(ctx context.Context, inputs []string, config event.SessionConfiguredData, name string) map[string]string {
	if len(inputs) == 0 {
		return nil
	}
	kept, err := s.readHeaders(ctx)
	to, unknown := endpointOf(config, name)
	if err = errors.Join(err, unknown); err != nil {
		s.host.log.Warn("the headers of a message could not be read", "session", s.id, "err", err)
		return nil
	}
	all := make(map[string]string)
	for _, id := range inputs {
		if bound, is := kept[headersFor][id]; !is || bound == to {
			maps.Copy(all, kept[id])
		}
	}
	return all
}
