package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
)

// ErrLeft means that a client left before it could do what it was asked for.
var ErrLeft = errors.New("the client has left")

// resolveModel finds the model of a session and how it is reached: a client may have
// to make the requests, or give a token for each request.
func (s *Session) resolveModel(ctx context.Context, config *event.SessionConfiguredData, name string) (Endpoint, error) {
	providers, err := s.providers(ctx, config)
	if err != nil {
		return Endpoint{}, err
	}
	as, err := providers.Choose(name)
	if err == nil {
		err = as.Provider.Err()
	}
	if err != nil {
		return Endpoint{}, err
	}
	through := config.ClientHTTP || s.clients.find(transports) != nil
	if through {
		ctx = model.WithTransport(ctx, clientTransport{s})
	}
	to, err := s.host.opts.Resolve(ctx, as)
	to.provider = as.Provider
	if keys := s.secrets.keys.Load(); err == nil && keys != nil && keys.Lost != nil {
		to.Model = &keyless{to.Model, keys.Lost}
	}
	token := as.Provider.TokenName()
	if err != nil || (token == "" && !through && !as.Listed) {
		return to, err
	}
	to.Model = &reached{Model: to.Model, session: s, name: to.Name, provider: token, endpoint: as.Provider.Endpoint(), through: through}
	if as.Listed {
		to.Name = cmp.Or(name, to.Name)
	}
	return to, nil
}

// A keyless model is one whose stored key cannot be read. It may need none; if it does, its
// error tells the reason and the way out.
type keyless struct {
	model.Model
	lost error
}

// Ask makes one attempt.
func (m *keyless) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	reply, err := m.Model.Ask(ctx, req, on)
	if refused, ok := errors.AsType[*model.Error](err); ok && refused.Kind == model.KindAuth {
		told := *refused
		told.Message = fmt.Sprintf("%s (the key that the session had cannot be read; resume the session with a key: %v)", refused.Message, m.lost)
		return reply, &told
	}
	return reply, err
}

// A reached model is a model whose requests need a client.
type reached struct {
	model.Model
	session  *Session
	name     string // the name that is sent to the provider
	provider string // the provider that needs a client's token for each request; empty if none does
	endpoint string // the endpoint of that provider
	through  bool   // true if a client makes the requests
}

// Ask makes one attempt.
func (m *reached) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	own := *req
	own.Model = m.name
	if m.provider != "" {
		token, err := m.session.askToken(ctx, m.provider, m.endpoint)
		if err != nil {
			return nil, err
		}
		own.Headers = maps.Clone(req.Headers)
		if own.Headers == nil {
			own.Headers = make(map[string]string)
		}
		own.Headers["Authorization"] = "Bearer " + token
	}
	if m.through {
		ctx = model.WithTransport(ctx, clientTransport{m.session})
	}
	return m.Model.Ask(ctx, &own, on)
}

var errOtherProvider = errors.New("the session has another provider now")

// stopForResume stops requests under way if the resuming client brings other providers.
func (tx *txn) stopForResume(to event.SessionConfiguredData) error {
	is, err := provider.Of(tx.State.ReadSettings())
	if err != nil {
		return err
	}
	next, err := provider.Of(&to)
	if err != nil {
		return err
	}
	if next.Own == nil || !tx.takesProvider(to.Provider) {
		next.Own = is.Own
	}
	if to.Providers == nil {
		next.Listed = is.Listed
	}
	return tx.stopForOtherProviders(next)
}

// stopForOtherProviders stops requests under way if a provider that clients give tokens
// for moves to another endpoint. Otherwise a request that waits for a token would get
// the token of another endpoint. The model is asked again. It must come before the other
// providers are recorded.
func (tx *txn) stopForOtherProviders(next provider.Set) error {
	is, err := provider.Of(tx.State.ReadSettings())
	if err != nil {
		return err
	}
	if is.MovesTokens(next) {
		tx.s.asking.stop(errOtherProvider)
		tx.s.compacting.stop(errOtherProvider)
	}
	return nil
}

// askToken asks a client for the token of a provider at an endpoint. Clients that came
// with a provider of that name at another endpoint are not asked, because their token
// is for that one. The token of a client that moved the provider before it answered is
// dropped, because it may be for the new endpoint. If the client leaves before it
// answers, the next one is asked.
func (s *Session) askToken(ctx context.Context, provider, endpoint string) (string, error) {
	lost := make(map[*Client]bool)
	for {
		c, err := s.clients.await(ctx, func(c *Client) bool { return tokens(c) && !lost[c] && c.givesTokensAt(provider, endpoint) })
		if err != nil {
			return "", err
		}
		token, err := c.Token(ctx, s.id, provider, endpoint)
		switch {
		case ctx.Err() == nil && err == nil && !s.clients.giveTokensAt(c, provider, endpoint):
			continue // the session's own requests were stopped, but an agent stays at its endpoint
		case errors.Is(err, ErrLeft) && ctx.Err() == nil:
			lost[c] = true
			continue
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", &model.Error{Kind: model.KindAuth, Message: fmt.Sprintf("The client gave no token for the provider %s: %v", provider, err), Err: err}
		case token == "":
			return "", &model.Error{Kind: model.KindAuth, Message: fmt.Sprintf("The client gave an empty token for the provider %s.", provider)}
		}
		return token, nil
	}
}

// clientTransport lets a client make HTTP requests.
type clientTransport struct{ session *Session }

// RoundTrip makes one request.
func (t clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.session.clients.await(req.Context(), transports)
	if err != nil {
		return nil, err
	}
	return c.Transport.RoundTrip(req)
}
