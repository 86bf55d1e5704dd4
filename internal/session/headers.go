package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// secretHeaders names the headers that inputs came with, as JSON, by the ids of
// the inputs. What stands under headersFor says which endpoint the headers of each
// input are for, by the ids of the inputs as well.
const (
	secretHeaders = "headers"
	headersFor    = boundTo
)

// keepHeaders keeps the headers that an input comes with for the model requests of
// its turn. They may be secret, so they are kept beside the log, and only the
// provider that the session has now is sent them. Those of inputs that are done
// with are let go.
func (tx *txn) keepHeaders(inputID string, headers map[string]string) error {
	kept, err := tx.headers()
	if err != nil {
		return err
	}
	to, err := providerOf(tx.State.Setup.Config, tx.State.Setup.Model)
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

// headers returns the headers of all inputs, as the transaction leaves them so far.
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

// providerOf says at which endpoint a model of the session is.
func providerOf(config event.SessionConfiguredData, name string) (string, error) {
	as, err := chooseModel(config, name, nil)
	return endpointOf(as.config.Provider), err
}

// headers are what the inputs of a turn want sent along with its requests to a
// model. What came for another endpoint is left out.
func (s *Session) headers(ctx context.Context, inputs []string, config event.SessionConfiguredData, name string) map[string]string {
	if len(inputs) == 0 {
		return nil
	}
	kept, err := s.readHeaders(ctx)
	to, unknown := providerOf(config, name)
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
