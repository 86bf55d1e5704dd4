package session_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// overHTTP resolves models as the daemon does, and tells which choices it was given.
func overHTTP(choices chan<- provider.Choice) session.Resolver {
	return func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
		select {
		case choices <- as:
		default:
		}
		p := as.Provider
		return session.Endpoint{Model: openai.New(openai.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, Headers: p.Headers}), Name: p.WireModel}, nil
	}
}

// A provider that a newer version recorded has members that this one does not know. It
// is loaded, asked with what is known of it, and recorded again byte for byte.
func TestAProviderOfANewerVersionIsKeptAndAsked(t *testing.T) {
	type asked struct{ path, key, header string }
	requests := make(chan asked, 10)
	answers := openaitest.Handler(offline.Model{}, openaitest.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- asked{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Tenant")}
		answers.ServeHTTP(w, r)
	}))
	defer server.Close()
	text := `{"zone":{"n":1.10,"s":"<\u003c>"},"baseUrl":"` + server.URL + `","wireModel":"w","transport":null,"type":"openai"}`
	choices := make(chan provider.Choice, 10)
	b := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: overHTTP(choices)})
	b.Start()
	spec := session.Spec{
		Config: event.SessionConfiguredData{Provider: json.RawMessage(text), Model: "m"},
		Keys:   &provider.Keys{Own: &provider.Secret{APIKey: "k", Headers: map[string]string{"X-Tenant": "me"}}},
	}
	if _, err := b.Host.Create(t.Context(), "s", spec, nil); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"m", "n"} {
		b.Restart() // everything that the new host knows comes from the log
		v := b.Resume("s", session.Resume{}, &session.Client{})
		if err := b.Host.SetModel(t.Context(), "s", session.Choice{Model: model}); err != nil {
			t.Fatal(err)
		}
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
		v.Await(t, 0, event.SessionIdle)
		if got, want := <-requests, (asked{"/chat/completions", "Bearer k", "me"}); got != want {
			t.Errorf("the provider was asked %+v, want %+v", got, want)
		}
		as := <-choices
		if all, err := json.Marshal(as.Provider); err != nil || !strings.Contains(string(all), `"zone":{"n":1.10,`) || !strings.Contains(string(all), `"transport":null`) {
			t.Errorf("the model is resolved with %s, %v", all, err)
		}
	}
	recorded := 0
	for _, e := range b.Verify("s") {
		if config, err := event.As[event.SessionConfiguredData](e); e.Type == event.SessionConfigured {
			recorded++
			if err != nil || string(config.Provider) != text {
				t.Errorf("event %d has the provider %s, %v; want %s", e.Seq, config.Provider, err, text)
			}
		}
	}
	if recorded < 2 {
		t.Errorf("the configuration was recorded %d times, want it recorded again", recorded)
	}
}

// A provider that cannot be read is reported when its model is asked, and a client can
// bring another.
func TestAProviderThatCannotBeReadCanBeReplaced(t *testing.T) {
	upstream := openaitest.NewServer(offline.Model{}, openaitest.Options{})
	defer upstream.Close()
	b := sessiontest.On(t, eventlog.NewMemory(), session.Options{Resolve: overHTTP(nil)})
	b.Start()
	broken := session.Spec{Config: event.SessionConfiguredData{Provider: json.RawMessage(`{"baseUrl":"http://a","maxOutputTokens":"many"}`)}}
	if _, err := b.Host.Create(t.Context(), "s", broken, nil); err != nil {
		t.Fatal(err)
	}
	b.Restart()
	v := b.Resume("s", session.Resume{}, &session.Client{})
	if _, err := b.Host.SendWith(t.Context(), "s", event.InputAcceptedData{Prompt: "hello"}, map[string]string{"X-A": "b"}); err != nil {
		t.Fatal(err)
	}
	e, _ := v.Await(t, 0, event.SessionError)
	failed, err := event.As[event.SessionErrorData](e)
	if want := "provider.maxOutputTokens: want int, have string"; err != nil || !strings.Contains(failed.Message, want) {
		t.Errorf("the error is %q, %v; want %q", failed.Message, err, want)
	}
	v.Await(t, 0, event.SessionIdle)
	other := session.Spec{Config: event.SessionConfiguredData{Provider: json.RawMessage(`{"baseUrl":"` + upstream.URL + `"}`)}}
	v = b.Resume("s", session.Resume{Spec: other}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HI"})
	e, _ = v.Await(t, 0, event.AssistantMessage)
	answer, err := event.As[event.AssistantMessageData](e)
	if err != nil || answer.Content != "HI" {
		t.Errorf("the other provider answers %q, %v", answer.Content, err)
	}
}
