package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/abide-run/abide/internal/model"
)

// FirstModel asks the provider for its models and returns the first one, which
// is used when nobody names another.
func (c *Client) FirstModel(ctx context.Context) (string, error) {
	if c.invalid != nil {
		return "", &model.Error{Kind: model.KindRequest, Message: c.invalid.Error()}
	}
	a := c.begin(ctx, &model.Request{})
	defer a.end()
	name, err := a.firstModel()
	if err != nil {
		return "", a.explain(err)
	}
	if name == "" {
		return "", &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf("%s does not say which models it has: name one with --model.", c.endpoint.Host)}
	}
	return name, nil
}

func (a *attempt) firstModel() (string, error) {
	list := a.client.endpoint.JoinPath("../../models")
	req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, list.String(), nil)
	if err != nil {
		return "", err
	}
	if err := a.setHeaders(req.Header, false); err != nil {
		return "", err
	}
	resp, err := a.client.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", a.refusal(resp)
	}
	var models struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, replyLimit)).Decode(&models); err != nil {
		return "", err
	}
	if len(models.Data) == 0 {
		return "", nil
	}
	return models.Data[0].ID, nil
}
