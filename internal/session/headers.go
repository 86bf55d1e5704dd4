package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/turn"
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
// session has now gets them. They end with the turn (endHeaders).
func (tx *txn) keepHeaders(inputID string, headers map[string]string) error {
	kept, err := tx.headers()
	if err != nil {
		return err
	}
	to, err := endpointOf(tx.State.ReadSettings(), tx.State.Setup.Model)
	if err != nil {
		return err
	}
	bound := dropHeaders(kept, headed(tx.State))
	kept[inputID], bound[inputID], kept[headersFor] = headers, to, bound
	return tx.replaceHeaders(kept)
}

// headed returns the inputs that came with headers and wait, or belong to the turn.
func headed(s *turn.State) (ids []string) {
	if s.Turn != nil {
		ids = slices.Clone(s.Turn.Headers)
	}
	for _, in := range s.Queue.Inputs {
		if in.Headers {
			ids = append(ids, in.InputID)
		}
	}
	return ids
}

// dropHeaders removes the headers of all inputs but the given ones. It returns the
// endpoints that the others are for.
func dropHeaders(kept map[string]map[string]string, needed []string) (bound map[string]string) {
	if bound = kept[headersFor]; bound == nil {
		bound = make(map[string]string)
	}
	maps.DeleteFunc(kept, func(id string, _ map[string]string) bool { return !slices.Contains(needed, id) })
	maps.DeleteFunc(bound, func(id, _ string) bool { return !slices.Contains(needed, id) })
	return bound
}

func (tx *txn) replaceHeaders(kept map[string]map[string]string) error {
	b, err := json.Marshal(kept)
	if err == nil {
		tx.keepSecret(secretHeaders, b)
	}
	return err
}

// endHeaders removes the headers of inputs whose turn this transaction ends, or that it
// drops from the queue.
func (tx *txn) endHeaders() error {
	if len(tx.headed) == 0 {
		return nil
	}
	needed := headed(tx.State)
	if !slices.ContainsFunc(tx.headed, func(id string) bool { return !slices.Contains(needed, id) }) {
		return nil
	}
	kept, err := tx.headers()
	if err != nil {
		return err
	}
	bound := dropHeaders(kept, needed)
	if len(kept) == 0 {
		tx.keepSecret(secretHeaders, nil)
		return nil
	}
	kept[headersFor] = bound
	return tx.replaceHeaders(kept)
}

// headers returns the headers of all inputs, with the changes of this transaction.
func (tx *txn) headers() (map[string]map[string]string, error) {
	if pending := tx.pendingSecret(secretHeaders); pending != nil {
		return parseHeaders(pending)
	}
	return tx.s.readHeaders(tx.s.host.ctx)
}

func (s *Session) readHeaders(ctx context.Context) (map[string]map[string]string, error) {
	b, _, err := s.readSecret(ctx, secretHeaders)
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
func endpointOf(config *event.SessionConfiguredData, name string) (string, error) {
	set, err := provider.Of(config)
	if err != nil {
		return "", err
	}
	as, err := set.Choose(name)
	return as.Provider.Endpoint(), err
}

// headers returns the headers that the inputs of a turn want in requests to a model.
// Headers for another endpoint are left out.
func (s *Session) headers(ctx context.Context, inputs []string, config *event.SessionConfiguredData, name string) map[string]string {
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
