package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
)

// A receivedRequest is a request that reached an endpoint, with the key that it had.
type receivedRequest struct{ url, key, header string }

// endpointModels is a model at any endpoint. The one at "http://a" does not answer before
// it is cancelled.
type endpointModels struct {
	answers model.Model // says "done" if nil

	mu   sync.Mutex
	seen []receivedRequest
}

func (g *endpointModels) resolve(_ context.Context, as provider.Choice) (session.Endpoint, error) {
	var p provider.Provider
	if as.Provider != nil {
		p = *as.Provider
	}
	return session.Endpoint{Model: endpointModel{g, receivedRequest{url: p.BaseURL, key: p.APIKey}}, Name: "m"}, nil
}

func (g *endpointModels) all() []receivedRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

// reached returns what the endpoint at a URL was told last.
func (g *endpointModels) reached(url string) (last receivedRequest) {
	for _, a := range g.all() {
		if a.url == url {
			last = a
		}
	}
	return last
}

type endpointModel struct {
	*endpointModels
	receivedRequest
}

func (g endpointModel) Ask(ctx context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	g.header = q.Headers["X-Tenant"]
	g.mu.Lock()
	g.seen = append(g.seen, g.receivedRequest)
	g.mu.Unlock()
	if g.url == "http://a" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if g.answers != nil {
		return g.answers.Ask(ctx, q, nil)
	}
	return &model.Reply{Text: "done"}, nil
}

// at is a session whose provider is at a URL, with a key for it.
func at(url, key string) session.Spec {
	return session.Spec{
		Config: event.SessionConfiguredData{Provider: json.RawMessage(fmt.Sprintf(`{"type":"openai","baseUrl":%q}`, url))},
		Keys:   &provider.Keys{Own: &provider.Secret{APIKey: key}},
	}
}

// checkKeys checks that no endpoint was told the key of another: the key for
// http://a is "key of http://a".
func (g *endpointModels) checkKeys(t testing.TB) {
	t.Helper()
	for _, a := range g.all() {
		if a.key != "" && a.key != "key of "+a.url {
			t.Errorf("%s was told %q", a.url, a.key)
		}
	}
}

// A failingStore stops taking writes after a number of them, as if the process had
// been killed.
type failingStore struct {
	eventlog.Store
	mu   sync.Mutex
	left int // negative for any number
}

var errKilled = errors.New("killed")

func (b *failingStore) write() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 {
		return errKilled
	}
	b.left--
	return nil
}

func (b *failingStore) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	if err := b.write(); err != nil {
		return eventlog.End{}, err
	}
	return b.Store.Append(ctx, id, batch)
}

func (b *failingStore) PutSecrets(ctx context.Context, id event.SessionID, secrets ...eventlog.Secret) error {
	if err := b.write(); err != nil {
		return err
	}
	return b.Store.PutSecrets(ctx, id, secrets...)
}

// suspendAtA makes a session whose turn waits for the endpoint http://a.
func suspendAtA(t testing.TB, b *sessiontest.Fixture) {
	t.Helper()
	if _, err := b.Host.Create(t.Context(), "s", at("http://a", "key of http://a"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Host.SendWith(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}, map[string]string{"X-Tenant": "of http://a"}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if err := b.Host.Suspend(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
}

func newGateways(t testing.TB, store eventlog.Store) (*endpointModels, *sessiontest.Fixture) {
	g := &endpointModels{}
	b := sessiontest.On(t, store, session.Options{Resolve: g.resolve})
	b.Start()
	return g, b
}

func TestAResumeWithAnotherProviderSendsItOnlyItsOwnKey(t *testing.T) {
	for name, c := range map[string]struct {
		spec session.Spec
		want receivedRequest // request that http://b receives
	}{
		"another provider":         {at("http://b", "key of http://b"), receivedRequest{"http://b", "key of http://b", ""}},
		"no key":                   {session.Spec{Config: at("http://b", "").Config}, receivedRequest{"http://b", "", ""}},
		"an empty key":             {at("http://b", ""), receivedRequest{"http://b", "", ""}},
		"another key, no provider": {session.Spec{Keys: at("", "lost").Keys}, receivedRequest{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, b := newGateways(t, eventlog.NewMemory())
				suspendAtA(t, b)
				if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: c.spec}, nil); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				g.checkKeys(t)
				if got := g.reached("http://b"); got != c.want {
					t.Errorf("http://b was told %+v, want %+v", got, c.want)
				}
				b.Restart()
				synctest.Wait()
				g.checkKeys(t)
				b.Host.Close()
			})
		})
	}
}

func TestAKillWhileTheProviderChangesMixesNoKeys(t *testing.T) {
	for left := range 6 {
		synctest.Test(t, func(t *testing.T) {
			store := &failingStore{Store: eventlog.NewMemory(), left: -1}
			g, b := newGateways(t, store)
			suspendAtA(t, b)
			store.mu.Lock()
			store.left = left
			store.mu.Unlock()
			_, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: at("http://b", "key of http://b")}, nil)
			if (err == nil) != (left > 0) {
				t.Errorf("%d writes: err = %v", left, err)
			}
			synctest.Wait()
			b.Host.Close()
			b.Store = store.Store
			b.Start()
			synctest.Wait()
			g.checkKeys(t)
			if _, err := b.Host.Resume(t.Context(), "s", session.Resume{}, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			g.checkKeys(t)
			if last := g.all()[len(g.all())-1]; last.key != "key of "+last.url {
				t.Errorf("after %d writes %s was told %q", left, last.url, last.key)
			}
			b.Host.Close()
		})
	}
}

func TestCreatingASessionThatExistsBringsNoKeyOfAnotherProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		for _, spec := range []session.Spec{at("http://b", "old"), at("http://c", "key of http://c"), at("http://b", "key of http://b"), at("http://c", "key of http://c")} {
			if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := []receivedRequest{{"http://b", "key of http://b", ""}}; !slices.Equal(g.all(), want) {
			t.Errorf("the endpoints were told %+v, want %+v", g.all(), want)
		}
		b.Host.Close()
	})
}

// Older versions stored keys and headers that are not bound: they go on working for
// the provider that the session has, and for no other.
func TestAKeyThatIsNotBoundIsForTheProviderThatTheSessionHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		spec := at("http://b", "")
		spec.Keys = nil
		if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
			t.Fatal(err)
		}
		b.Host.Close()
		if err := b.Store.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "provider", Value: []byte(`{"apiKey":"key of http://b"}`)}); err != nil {
			t.Fatal(err)
		}
		send := func() receivedRequest {
			t.Helper()
			if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return g.all()[len(g.all())-1]
		}
		b.Start()
		if got, want := send(), (receivedRequest{"http://b", "key of http://b", ""}); got != want {
			t.Errorf("told %+v, want %+v", got, want)
		}
		resume := func(url string) {
			t.Helper()
			if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: session.Spec{Config: at(url, "").Config}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		resume("http://c")
		if got, want := send(), (receivedRequest{"http://c", "", ""}); got != want {
			t.Errorf("told %+v, want %+v", got, want)
		}
		b.Restart()
		if got, want := send(), (receivedRequest{"http://c", "", ""}); got != want {
			t.Errorf("told %+v after a restart, want %+v", got, want)
		}
		resume("http://b")
		if got, want := send(), (receivedRequest{"http://b", "key of http://b", ""}); got != want {
			t.Errorf("told %+v when it is back, want %+v", got, want)
		}
		b.Host.Close()
	})
}

// listed is a session with two providers that its client listed.
func listed(model string) session.Spec {
	return session.Spec{
		Config: event.SessionConfiguredData{
			Model:     model,
			Providers: json.RawMessage(`[{"name":"x","baseUrl":"http://x"},{"name":"y","baseUrl":"http://y"}]`),
			Models:    json.RawMessage(`[{"provider":"x","id":"m"},{"provider":"y","id":"m"}]`),
		},
		Keys: &provider.Keys{Named: map[string]*provider.Secret{"x": {APIKey: "key of http://x"}, "y": {APIKey: "key of http://y"}}},
	}
}

func TestListedProvidersKeepTheirKeysApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		if _, err := b.Host.Create(t.Context(), "s", listed("x/m"), nil); err != nil {
			t.Fatal(err)
		}
		check := func(want receivedRequest) {
			t.Helper()
			if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := g.all()[len(g.all())-1]; got != want {
				t.Errorf("told %+v, want %+v", got, want)
			}
		}
		check(receivedRequest{"http://x", "key of http://x", ""})
		if err := b.Host.SetModel(t.Context(), "s", session.Choice{Model: "y/m"}); err != nil {
			t.Fatal(err)
		}
		check(receivedRequest{"http://y", "key of http://y", ""})

		// One of the two moves to another address, and no key is given for it.
		moved := listed("y/m").Config
		moved.Providers = json.RawMessage(`[{"name":"x","baseUrl":"http://x"},{"name":"y","baseUrl":"http://z"}]`)
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: session.Spec{Config: moved}}, nil); err != nil {
			t.Fatal(err)
		}
		check(receivedRequest{"http://z", "", ""})

		// A provider of the session's own comes in addition: the keys of the list stay.
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: at("http://b", "key of http://b")}, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Host.SetModel(t.Context(), "s", session.Choice{Model: "x/m"}); err != nil {
			t.Fatal(err)
		}
		check(receivedRequest{"http://x", "key of http://x", ""})
		if err := b.Host.SetModel(t.Context(), "s", session.Choice{Model: "other"}); err != nil {
			t.Fatal(err)
		}
		check(receivedRequest{"http://b", "key of http://b", ""})
		b.Restart()
		check(receivedRequest{"http://b", "key of http://b", ""})
		b.Host.Close()
	})
}

// A client that creates a session that exists does not change its list: the keys of a
// list with another endpoint do not replace those that the session needs.
func TestCreatingASessionThatExistsTakesNoKeyOfItsListAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		other := listed("x/m")
		other.Config.Providers = json.RawMessage(`[{"name":"x","baseUrl":"http://z"},{"name":"y","baseUrl":"http://y"}]`)
		other.Keys.Named["x"] = &provider.Secret{APIKey: "key of http://z"}
		for _, spec := range []session.Spec{listed("x/m"), other} {
			if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if got, want := g.all(), []receivedRequest{{"http://x", "key of http://x", ""}}; !slices.Equal(got, want) {
			t.Errorf("told %+v, want %+v", got, want)
		}
		b.Host.Close()
	})
}

// A client whose own provider is only the default of its process leaves the session's as
// it is. The providers that it lists, with their keys, it has named.
func TestADefaultProviderDoesNotTakeTheKeysOfListedOnesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		if _, err := b.Host.Create(t.Context(), "s", at("http://b", "key of http://b"), nil); err != nil {
			t.Fatal(err)
		}
		spec := listed("x/m")
		spec.Config.Provider = json.RawMessage(`{"baseUrl":"http://c","default":true}`)
		spec.Keys.Own = &provider.Secret{APIKey: "key of http://c"}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: spec}, nil); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if err := b.Host.SetModel(t.Context(), "s", session.Choice{Model: "other"}); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		synctest.Wait()
		if got, want := g.all(), []receivedRequest{{"http://x", "key of http://x", ""}, {"http://b", "key of http://b", ""}}; !slices.Equal(got, want) {
			t.Errorf("told %+v, want %+v", got, want)
		}
		b.Host.Close()
	})
}

func TestAddedProvidersAndTheirKeysAreStoredTogether(t *testing.T) {
	for left := range 3 {
		synctest.Test(t, func(t *testing.T) {
			store := &failingStore{Store: eventlog.NewMemory(), left: -1}
			g, b := newGateways(t, store)
			if _, err := b.Host.Create(t.Context(), "s", at("http://b", "key of http://b"), nil); err != nil {
				t.Fatal(err)
			}
			store.mu.Lock()
			store.left = left
			store.mu.Unlock()
			err := b.Host.Settings.ChangeProviders(t.Context(), "s", func(to *provider.Set) error {
				if to.Own.APIKey != "key of http://b" {
					t.Errorf("the key was %q", to.Own.APIKey)
				}
				to.Own = &provider.Provider{Type: "openai", BaseURL: "http://c", APIKey: "key of http://c"}
				return nil
			})
			if (err == nil) != (left > 0) {
				t.Errorf("%d writes: err = %v", left, err)
			}
			b.Host.Close()
			b.Store = store.Store
			b.Start()
			if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			want := receivedRequest{"http://b", "key of http://b", ""}
			if left > 0 {
				want = receivedRequest{"http://c", "key of http://c", ""}
			}
			if got := g.all()[0]; got != want {
				t.Errorf("%d writes: told %+v, want %+v", left, got, want)
			}
			b.Host.Close()
		})
	}
}

// A session that was deleted leaves nothing to one of the same name.
func TestADeletedSessionLeavesItsSecretsToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		v := sessiontest.NewViewer() // keeps the session known
		spec := at("http://b", "key of http://b")
		spec.Env = []string{"SECRET=1"}
		if _, err := b.Host.Create(t.Context(), "s", spec, &session.Client{Viewer: v}); err != nil {
			t.Fatal(err)
		}
		if err := b.Host.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Create(t.Context(), "s", session.Spec{Config: spec.Config}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := []receivedRequest{{"http://b", "", ""}}; !slices.Equal(g.all(), want) {
			t.Errorf("told %+v, want %+v", g.all(), want)
		}
		if env, err := b.Host.Settings.Environment(t.Context(), "s"); err != nil || env != nil {
			t.Errorf("environment = %q, %v", env, err)
		}
		b.Host.Close()
	})
}

// A sub-agent gets the keys of the configuration that it gets, bound as its parent's
// are; a fork shares the log and gets no key.
func TestAgentsShareTheKeysOfTheirParentAndForksDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		g.answers = offline.Model{}
		b.Options.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
		b.Restart()
		spec := at("http://b", "key of http://b")
		spec.Env = []string{"TOKEN=1"}
		if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Send(t.Context(), "s", delegate("general-purpose", "Reply with exactly: CHILD")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		agent := child(t, b.Verify("s"))
		if env, err := b.Host.Settings.Environment(t.Context(), agent); err != nil || !slices.Equal(env, spec.Env) {
			t.Errorf("environment of the agent = %q, %v", env, err)
		}
		for _, a := range g.all() {
			if a != (receivedRequest{"http://b", "key of http://b", ""}) {
				t.Errorf("told %+v", a)
			}
		}
		if n := len(g.all()); n < 3 {
			t.Errorf("the endpoint was asked %d times, want the parent and the agent", n)
		}
		for resumed, want := range map[event.SessionID]receivedRequest{agent: {"http://c", "", ""}, "fork": {"http://b", "", ""}} {
			r := session.Resume{Spec: session.Spec{Config: at("http://c", "").Config}}
			if resumed == "fork" {
				r = session.Resume{}
				if _, err := b.Host.Fork(t.Context(), "fork", "s", 0, ""); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.Host.Resume(t.Context(), resumed, r, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Host.Send(t.Context(), resumed, event.InputAcceptedData{Prompt: "Reply with exactly: HI"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := g.all()[len(g.all())-1]; got != want {
				t.Errorf("%s: told %+v, want %+v", resumed, got, want)
			}
		}
		b.Host.Close()
	})
}

// A client gives tokens for the provider that it came with: a request to the provider
// before it is not waiting for them.
func TestATokenIsForTheProviderThatItsClientCameWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := map[string]string{}
		b := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: askFunc(func(ctx context.Context, q *model.Request) (*model.Reply, error) {
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() == nil {
					sent[as.Provider.BaseURL] = q.Headers["Authorization"]
				}
				return &model.Reply{Text: "done"}, ctx.Err()
			}), Name: "m"}, nil
		}})
		b.Start()
		if _, err := b.Host.Create(t.Context(), "s", tokenAt("http://a"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Send(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it waits for a client with a token
		second := &session.Client{Token: func(context.Context, event.SessionID, string, string) (string, error) { return "of b", nil }}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: tokenAt("http://b"), Continue: new(bool)}, second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		if token, leaked := sent["http://a"]; leaked {
			t.Errorf("http://a was sent %q", token)
		}
		if sent["http://b"] != "Bearer of b" {
			t.Errorf("http://b was sent %q", sent["http://b"])
		}
		mu.Unlock()
		b.Host.Close()
	})
}

// tokenAt is a session whose provider needs tokens of a client.
func tokenAt(url string) session.Spec {
	return session.Spec{Config: event.SessionConfiguredData{Provider: json.RawMessage(fmt.Sprintf(`{"baseUrl":%q,"hasBearerTokenProvider":true}`, url))}}
}

// tokenClient is a client that came with such a provider.
func tokenClient(url string) *session.Client {
	return &session.Client{
		Token:    func(context.Context, event.SessionID, string, string) (string, error) { return "token of " + url, nil },
		TokenFor: map[string]string{"default": "openai " + url},
	}
}

// tokenFixture is a fixture whose models note which token each endpoint is sent.
func tokenFixture(t testing.TB) (b *sessiontest.Fixture, check func(want ...string)) {
	var mu sync.Mutex
	sent := map[string]bool{}
	b = sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
		return session.Endpoint{Model: askFunc(func(ctx context.Context, q *model.Request) (*model.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			sent[as.Provider.BaseURL+": "+q.Headers["Authorization"]] = true
			return offline.Model{}.Ask(ctx, q, func(model.Delta) {})
		}), Name: "m"}, nil
	}})
	b.Options.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
	b.Start()
	return b, func(want ...string) {
		t.Helper()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if got := slices.Sorted(maps.Keys(sent)); !slices.Equal(got, want) {
			t.Errorf("the endpoints were sent %q, want %q", got, want)
		}
	}
}

// Two clients are attached that came with different endpoints: the one that came first
// is not asked for the tokens of the other's.
func TestATokenIsNotSentToTheEndpointOfAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, check := tokenFixture(t)
		if _, err := b.Host.Create(t.Context(), "s", tokenAt("http://a"), tokenClient("http://a")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: tokenAt("http://b")}, tokenClient("http://b")); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
		check("http://b: Bearer token of http://b")
		b.Host.Close()
	})
}

// An agent stays at the endpoint that its session had when it was started. The token of
// a client that came with another one since is not for it.
func TestATokenIsNotSentToAnAgentAtAnotherEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, check := tokenFixture(t)
		first, left, asked := tokenClient("http://a"), make(chan struct{}), 0
		first.Token = func(context.Context, event.SessionID, string, string) (string, error) {
			if asked++; asked == 1 {
				return "token of http://a", nil
			}
			<-left
			return "", session.ErrLeft
		}
		if _, err := b.Host.Create(t.Context(), "s", tokenAt("http://a"), first); err != nil {
			t.Fatal(err)
		}
		b.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
		synctest.Wait() // the agent waits for its token
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: tokenAt("http://b")}, tokenClient("http://b")); err != nil {
			t.Fatal(err)
		}
		b.Host.Detach("s", first, false)
		close(left)
		check("http://a: Bearer token of http://a")
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Quiet: true}, tokenClient("http://a")); err != nil {
			t.Fatal(err)
		}
		check("http://a: Bearer token of http://a", "http://b: Bearer token of http://b") // the agent has ended, and its session goes on
		b.Host.Close()
	})
}

// An agent stays at its endpoint although the client moves the provider of the session
// before it answers with the agent's token, which may be for the new endpoint.
func TestATokenIsNotSentToAnAgentWhereItsProviderWasBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, check := tokenFixture(t)
		c, moved, asked := tokenClient("http://a"), make(chan struct{}), 0
		c.Token = func(context.Context, event.SessionID, string, string) (string, error) {
			if asked++; asked == 1 {
				return "token of http://a", nil
			}
			<-moved
			return "token of http://b", nil
		}
		if _, err := b.Host.Create(t.Context(), "s", tokenAt("http://a"), c); err != nil {
			t.Fatal(err)
		}
		b.Send("s", delegate("general-purpose", "Reply with exactly: CHILD"))
		synctest.Wait() // the agent waits for its token
		err := b.Host.Settings.ChangeProviders(t.Context(), "s", func(to *provider.Set) error {
			to.Own = &provider.Provider{BaseURL: "http://b", HasToken: true}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Host.Clients.AddTokens("s", c, tokenClient("http://b").TokenFor, c.Token)
		close(moved)
		check("http://a: Bearer token of http://a")
		b.Host.Close()
	})
}

// A summary is asked for with a token too.
func TestACompactionIsStoppedWhenItsProviderMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, check := tokenFixture(t)
		c, asked := tokenClient("http://a"), 0
		c.Token = func(ctx context.Context, _ event.SessionID, _, _ string) (string, error) {
			if asked++; asked == 1 {
				return "token of http://a", nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		}
		if _, err := b.Host.Create(t.Context(), "s", tokenAt("http://a"), c); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
		synctest.Wait()
		ended := make(chan event.CompactionCompleteData, 1)
		go func() {
			d, _ := b.Host.Context.Compact(t.Context(), "s", session.Squeeze{}) // its outcome says why it failed
			ended <- d
		}()
		synctest.Wait() // the summary waits for its token
		if asked != 2 {
			t.Fatalf("%d tokens were asked for, want one for the summary", asked)
		}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: tokenAt("http://b")}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case d := <-ended:
			if d.Outcome != event.OutcomeFailed || d.Cause != event.CauseInterrupted {
				t.Errorf("the compaction ended with %+v", d)
			}
		default:
			t.Error("the compaction still waits for the token of http://a")
		}
		check("http://a: Bearer token of http://a")
		b.Host.Close()
	})
}

// A client can add a provider that it gives tokens for, and move one.
func TestAClientGivesTokensForTheProvidersThatItAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, check := tokenFixture(t)
		c := &session.Client{}
		if _, err := b.Host.Create(t.Context(), "s", session.Spec{}, c); err != nil {
			t.Fatal(err)
		}
		for _, url := range []string{"http://a", "http://b"} {
			err := b.Host.Settings.ChangeProviders(t.Context(), "s", func(to *provider.Set) error {
				to.Own = &provider.Provider{BaseURL: url, HasToken: true}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
			synctest.Wait() // the request waits for a token for this endpoint
			added := tokenClient(url)
			b.Host.Clients.AddTokens("s", c, added.TokenFor, func(_ context.Context, _ event.SessionID, _, endpoint string) (string, error) {
				return "token of " + strings.TrimPrefix(endpoint, "openai "), nil
			})
			synctest.Wait()
		}
		check("http://a: Bearer token of http://a", "http://b: Bearer token of http://b")
		b.Host.Close()
	})
}

// askFunc is a model that is a function.
type askFunc func(context.Context, *model.Request) (*model.Reply, error)

func (f askFunc) Ask(ctx context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	return f(ctx, q)
}

// A provider whose URL goes without saying is told by its type: the key of one vendor
// does not go to another.
func TestAKeyIsForOneTypeOfProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		vendor := func(name string, keys *provider.Keys) session.Spec {
			return session.Spec{
				Config: event.SessionConfiguredData{Provider: json.RawMessage(fmt.Sprintf(`{"type":%q}`, name))},
				Keys:   keys,
			}
		}
		if _, err := b.Host.Create(t.Context(), "s", vendor("anthropic", at("", "of anthropic").Keys), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Host.Resume(t.Context(), "s", session.Resume{Spec: vendor("openai", nil)}, nil); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "hi"})
		synctest.Wait()
		if got := g.all(); len(got) != 1 || got[0].key != "" {
			t.Errorf("the other vendor was told %+v", got)
		}
		b.Host.Close()
	})
}

// An agent gets no key for an endpoint that its session has left: whoever resumes the
// agent there brings its own.
func TestAnAgentGetsNoKeyOfAnEndpointThatItsSessionHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateways(t, eventlog.NewMemory())
		g.answers = offline.Model{}
		b.Options.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) }
		b.Restart()
		if _, err := b.Host.Create(t.Context(), "s", at("http://b", "key of http://b"), nil); err != nil {
			t.Fatal(err)
		}
		ask := func(id event.SessionID, url string, input event.InputAcceptedData) {
			if _, err := b.Host.Resume(t.Context(), id, session.Resume{Spec: session.Spec{Config: at(url, "").Config}}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Host.Send(t.Context(), id, input); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		ask("s", "http://c", delegate("general-purpose", "Reply with exactly: CHILD"))
		ask(child(t, b.Verify("s")), "http://b", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
		if got := g.reached("http://b"); got != (receivedRequest{url: "http://b"}) {
			t.Errorf("the agent told %+v, want no key", got)
		}
		b.Host.Close()
	})
}
