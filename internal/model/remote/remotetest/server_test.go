package remotetest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
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

func TestAFaultIsChosenByTheNumberAndTheBody(t *testing.T) {
	s := openaitest.NewServer(echo{}, openaitest.Options{Fault: func(n int, body []byte) remotetest.Fault {
		if n == 2 || strings.Contains(string(body), "fail") {
			return remotetest.Status(500, "as you wish")
		}
		return nil
	}})
	defer s.Close()
	for i, step := range []struct {
		body   string
		status int
	}{{request, 200}, {request, 500}, {request, 200}, {strings.Replace(request, "hello", "fail", 1), 500}} {
		if status, _, err := post(t, s.URL+"/chat/completions", step.body); status != step.status || err != nil {
			t.Errorf("request %d: status %d, err = %v, want %d", i+1, status, err, step.status)
		}
	}
	if s.Requests() != 4 {
		t.Errorf("there were %d requests, want 4", s.Requests())
	}
}

func TestABrokenModelBreaksTheConnection(t *testing.T) {
	for _, kind := range []model.Kind{model.KindNetwork, model.KindStream} {
		s := openaitest.NewServer(failing{kind}, openaitest.Options{})
		status, _, err := post(t, s.URL+"/chat/completions", request)
		if err == nil {
			t.Errorf("%s: status %d, want a broken connection", kind, status)
		}
		s.Close()
	}
}

type failing struct{ kind model.Kind }

func (f failing) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, &model.Error{Kind: f.kind, Message: "broken"}
}

func TestCloseEndsRequestsThatHang(t *testing.T) {
	reached := make(chan struct{})
	s := openaitest.NewServer(echo{}, openaitest.Options{Fault: func(int, []byte) remotetest.Fault {
		close(reached)
		return remotetest.Hang()
	}})
	done := make(chan error, 1)
	go func() {
		_, _, err := post(t, s.URL+"/chat/completions", request)
		done <- err
	}()
	<-reached
	s.Close()
	if err := <-done; err == nil {
		t.Error("a request that hung was answered")
	}
}
