package openaitest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with the text of the last message.
type echo struct{}

func (echo) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	return &model.Reply{Text: req.Messages[len(req.Messages)-1].Text}, nil
}

const request = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// post sends a body and returns the status and the answer.
func post(t *testing.T, url, body string) (int, string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	s := NewServer(echo{}, Options{})
	defer s.Close()
	for name, test := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"right":            {"/chat/completions", request, 200, `"content":"hello"`},
		"wrong place":      {"/completions", request, 404, "/completions"},
		"no JSON":          {"/chat/completions", `{`, 400, "no chat request"},
		"unknown role":     {"/chat/completions", `{"messages":[{"role":"wizard"}]}`, 400, `messages[0]: there is no role \"wizard\"`},
		"system twice":     {"/chat/completions", `{"messages":[{"role":"system","content":"a"},{"role":"system","content":"b"}]}`, 400, "messages[1]"},
		"system too late":  {"/chat/completions", `{"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}`, 400, "messages[1]"},
		"content a number": {"/chat/completions", `{"messages":[{"role":"user","content":1}]}`, 400, "messages[0]"},
		"picture elsewhere": {"/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]}`,
			400, "data URL"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body, err := post(t, s.URL+test.path, test.body)
			if err != nil || status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("status %d, err = %v, want %d with %q: %s", status, err, test.status, test.says, body)
			}
		})
	}
}

func FuzzAnyRequestIsReadOrRefused(f *testing.F) {
	f.Add([]byte(request))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"b","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"c"}],` +
		`"tools":[{"function":{"name":"b","parameters":{}}}],"stream":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := decodeRequest(body)
		if (req == nil) == (err == nil) {
			t.Errorf("decoding %q gave %v and %v", body, req, err)
		}
		if err != nil && errors.Unwrap(err) == nil && json.Valid(body) {
			t.Errorf("the error does not say why: %v", err)
		}
	})
}
