package remotetest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

// turn lets a model make calls and reply to their results.
func turn(t *testing.T, m model.Model, tail string) []*model.Reply {
	t.Helper()
	req := &model.Request{Model: "offline", System: "s", Tail: tail, Messages: []*model.Message{
		{Role: model.User, Text: "Call one with value 'x' and two with value 'y', then reply with both results"},
	}}
	first, err := m.Ask(context.Background(), req, func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, &model.Message{Role: model.Assistant, Text: first.Text, Calls: first.Calls, Reasoning: first.Reasoning})
	for _, c := range first.Calls {
		req.Messages = append(req.Messages, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: "result of " + c.Name})
	}
	second, err := m.Ask(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return []*model.Reply{first, second}
}

func TestTheOfflineModelIsTheSameBehindEveryWire(t *testing.T) {
	for _, tail := range []string{"", "it is late"} {
		want := turn(t, offline.Model{}, tail)
		for name, wire := range map[string]struct {
			server *remotetest.Server
			new    func(remote.Config) *remote.Client
		}{
			"chat":      {openaitest.NewServer(offline.Model{}, openaitest.Options{}), openai.New},
			"responses": {responsestest.NewServer(offline.Model{}, responsestest.Options{}), responses.New},
			"anthropic": {anthropictest.NewServer(offline.Model{}, anthropictest.Options{}), anthropic.New},
		} {
			transport := new(http.Transport)
			got := turn(t, wire.new(remote.Config{BaseURL: wire.server.URL, Transport: transport}), tail)
			ignored := cmpopts.IgnoreFields(model.Reply{}, "RequestID", "Usage") // the tail is text by then, and costs
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("%s, tail %q: replies differ (-direct +wire):\n%s", name, tail, diff)
			}
			transport.CloseIdleConnections()
			wire.server.Close()
		}
	}
}
