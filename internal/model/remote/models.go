package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/abide-run/abide/internal/model"
)

// FirstModel asks the provider for its models and returns the first one, which is the
// default if no model is configured.
func (c *Client) FirstModel(ctx context.Context) (string, error) {
	names, err := c.Models(ctx)
	if err == nil && len(names) == 0 {
		err = &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("%s does not say which models it has: name one with --model.", c.base.Host)}
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// Models asks the provider for the names of its models. It returns none for an Azure
// resource, which has no such list: there, models have the names of their deployments.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	switch {
	case c.invalid != nil:
		return nil, &model.Error{Kind: model.KindRequest, Message: c.invalid.Error()}
	case c.Azure != nil:
		return nil, nil
	}
	a := c.begin(ctx, new(model.Request))
	defer a.end()
	a.endpoint = c.base.JoinPath("models")
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

// A listed is an entry of a provider's list of models. Providers use different fields
// for the size of the window.
type listed struct {
	ID            string `json:"id"`
	ContextLength count  `json:"context_length"`
	ContextWindow count  `json:"context_window"`
	MaxModelLen   count  `json:"max_model_len"`
	MaxInput      count  `json:"max_input_tokens"`
	Capabilities  struct {
		Limits struct {
			Window count `json:"max_context_window_tokens"`
		} `json:"limits"`
	} `json:"capabilities"`
}

// A count is a number of tokens. Anything that is not a whole number becomes zero, so
// that the rest of the list can be used.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.Atoi(string(b))
	if *c = 0; err == nil {
		*c = count(n)
	}
	return nil
}

func (m listed) window() int {
	return int(max(0, cmp.Or(m.Capabilities.Limits.Window, m.ContextLength, m.ContextWindow, m.MaxModelLen, m.MaxInput)))
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
	return readModels(&watched{r: resp.Body, idle: a.idle, limit: a.client.IdleTimeout})
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

func readModels(body io.Reader) ([]listed, error) {
	data, err := io.ReadAll(io.LimitReader(body, replyLimit))
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []listed `json:"data"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, NotUnderstood(data, err)
	}
	return list.Data, nil
}
