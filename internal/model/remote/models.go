package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
)

// DefaultModel asks the provider for its models and returns the one that is used if no
// model is configured, and why.
func (c *Client) DefaultModel(ctx context.Context) (name, why string, err error) {
	names, err := c.Models(ctx)
	if err != nil {
		return "", "", err
	}
	if len(names) == 0 {
		return "", "", &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("%s does not say which models it has: name one with --model.", c.base.Host)}
	}
	if name, why = c.Prefer(names); name == "" {
		return "", "", &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("no model is named, and of those at %s %s; name one with --model.", c.base.Host, why)}
	}
	return name, why, nil
}

// Prefer returns which of the provider's models is used if none is named, and why. The
// name is empty if there is no reason for any of them.
func (c *Client) Prefer(names []string) (name, why string) {
	return c.query(new(model.Request), false).As().Default(names)
}

// Models asks the provider for the names of its models. It returns none for an Azure
// resource, which has no such list: there, models have the names of their deployments.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	switch {
	case c.invalid != nil:
		return nil, c.unusable()
	case c.Azure != nil:
		return nil, nil
	}
	a := c.begin(ctx, new(model.Request))
	defer a.end()
	a.endpoint = c.listURL()
	list, err := a.models()
	if err != nil {
		return nil, a.explain(err)
	}
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.ID
		c.windows.Store(m.ID, m.window())
	}
	return names, nil
}

// Window returns the number of tokens that fit into a request and its reply, as the
// provider said when it was last asked for its models; zero if it did not.
func (c *Client) Window(name string) int {
	n, _ := c.windows.Load(name)
	window, _ := n.(int)
	return window
}

// listURL returns the address of the list of models.
func (c *Client) listURL() *url.URL {
	if c.query(new(model.Request), false).As().Windows == profile.WindowsGitHub {
		return c.base.ResolveReference(&url.URL{Path: "/catalog/models"})
	}
	return c.base.JoinPath("models")
}

// A listed is an entry of a provider's list of models. Providers use different fields
// for the size of the window.
type listed struct {
	ID            string `json:"id"`
	ContextLength count  `json:"context_length"`
	ContextWindow count  `json:"context_window"`
	MaxModelLen   count  `json:"max_model_len"`
	MaxContext    count  `json:"max_context_length"`
	MaxInput      count  `json:"max_input_tokens"`
	Capabilities  able   `json:"capabilities"`
	Limits        struct {
		MaxInput count `json:"max_input_tokens"`
	} `json:"limits"`
}

// able is what a model is able to do, as some providers tell it.
type able struct {
	Limits struct {
		Window count `json:"max_context_window_tokens"`
	} `json:"limits"`
}

// UnmarshalJSON decodes an object. Other providers have a list of words there.
func (a *able) UnmarshalJSON(b []byte) error {
	type plain able
	if b[0] != '{' {
		return nil
	}
	return json.Unmarshal(b, (*plain)(a))
}

// A count is a number of tokens. Anything that is not a whole number becomes zero, so
// that the rest of the list can be used. A number that is too large for a window becomes zero,
// too, because callers calculate with it.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	*c = parseCount(string(b))
	return nil
}

func parseCount(text string) count {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || int64(n) > mostTokens {
		return 0
	}
	return count(n)
}

func (m listed) window() int {
	return int(cmp.Or(m.Capabilities.Limits.Window, m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxContext, m.MaxInput, m.Limits.MaxInput))
}

func (a *attempt) models() ([]listed, error) {
	req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.endpoint.String(), nil)
	if err != nil {
		return nil, err
	}
	if err := a.setHeaders(req.Header, &Query{Request: a.req, Host: a.endpoint.Host}); err != nil {
		return nil, err
	}
	resp, err := a.client.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, a.listError(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return readModels(kind, newWatched(resp.Body, a.idle, a.client.IdleTimeout))
}

// listError returns the error for a response that is not a list of models. Its message
// does not mention a model, because the request was about none.
func (a *attempt) listError(resp *http.Response) *model.Error {
	e := a.refusal(resp)
	switch e.Status {
	case http.StatusNotFound:
		e.Message = fmt.Sprintf("%s has no list of models at %s (404); check the base URL", a.endpoint.Host, a.endpoint.Path)
	case http.StatusForbidden:
		e.Message = fmt.Sprintf("%s does not show its models with this key (403); use another key", a.endpoint.Host)
	}
	return e
}

// readModels reads a list of models. kind is the type of its content.
func readModels(kind string, body io.Reader) ([]listed, error) {
	data, err := io.ReadAll(io.LimitReader(body, replyLimit))
	if err != nil {
		return nil, err
	}
	if isPage(kind, data) {
		return nil, errPage
	}
	var list struct {
		Data []listed `json:"data"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) { // without the object around it
		data = slices.Concat([]byte(`{"data":`), data, []byte("}"))
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, NotUnderstood(data, err)
	}
	return list.Data, nil
}
