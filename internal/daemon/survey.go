package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/remote"
)

// A Survey is the answer of a provider that was asked for its models.
type Survey struct {
	Models []string  // empty if the provider does not list its models
	Asked  bool      // true if the provider was asked and answered
	Date   time.Time // time of the provider's clock; zero if it is not known

	// Default is the model that is used if none is named, and Why is the reason. It is
	// empty if there is no reason for any of the models.
	Default, Why string
}

// surveyTimeout is the time within which a provider must answer.
const surveyTimeout = 5 * time.Second

// Ask asks a provider for its models. An error is one sentence for people; the survey
// then has what is known nevertheless. A command that prints the provider's key gets the
// environment.
func Ask(ctx context.Context, p provider.Provider, version string, env []string) (Survey, error) {
	if command := p.KeyCommand(); command != nil {
		key, err := RunKeyCommand(ctx, *command, env)
		if err != nil {
			return Survey{}, err
		}
		p.APIKey = key
	}
	wire, err := Wires.Find(p.Type, p.WireAPI)
	if err != nil {
		return Survey{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, surveyTimeout, timeoutError(p))
	defer cancel()
	heard := &dateRecorder{next: http.DefaultTransport}
	config := remoteConfig(p, "abide/"+version)
	config.Transport = heard
	client := wire.New(config)
	names, err := client.Models(ctx)
	s := Survey{Models: names, Asked: heard.asked, Date: heard.date}
	if len(names) > 0 {
		s.Default, s.Why = client.Prefer(names)
	}
	return s, err
}

// timeoutError returns the error of a provider that did not answer in time.
func timeoutError(p provider.Provider) error {
	return &model.Error{
		Kind: model.KindTimeout, Message: fmt.Sprintf("%s did not answer within %v; check the network and the base URL", host(p), surveyTimeout),
	}
}

func host(p provider.Provider) string {
	if u, err := url.Parse(p.BaseURL); err == nil && u.Host != "" {
		return u.Host
	}
	return "the provider"
}

// A dateRecorder records the time of the provider's clock.
type dateRecorder struct {
	next  http.RoundTripper
	asked bool
	date  time.Time
}

func (l *dateRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		l.asked = true
		l.date, _ = http.ParseTime(resp.Header.Get("Date")) // zero if it is invalid
	}
	return resp, err
}

// remoteConfig returns the configuration of a client of a provider.
func remoteConfig(p provider.Provider, agent string) remote.Config {
	c := remote.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, BearerToken: p.BearerToken, Headers: p.Headers, UserAgent: agent}
	if p.Abide != nil {
		c.Profile, c.ExtraBody, c.CacheTTL = p.Abide.Profile, p.Abide.ExtraBody, p.Abide.CacheTTL
	}
	if p.Type == "azure" {
		c.Azure = &remote.Azure{APIVersion: p.Azure.APIVersion}
	}
	return c
}
