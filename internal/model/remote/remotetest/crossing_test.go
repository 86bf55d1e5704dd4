package remotetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

// thinker calls a tool with an id that no other provider would choose, after
// some thought.
type thinker struct{ asked []*model.Request }

func (m *thinker) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.asked = append(m.asked, req)
	if req.Messages[len(req.Messages)-1].Role != model.User {
		return &model.Reply{Text: "done", Finish: "stop"}, nil
	}
	n := len(m.asked)
	return &model.Reply{
		Text: "so", Finish: "tool_calls", Reasoning: &model.Reasoning{Text: "hm", Opaque: "sealed", Encrypted: "locked"},
		Calls: []model.Call{
			{ID: fmt.Sprintf("functions.bash:%d", n), Name: "functions.bash", Arguments: json.RawMessage(`{"x":1}`)},
			{ID: fmt.Sprint(strings.Repeat("chatcmpl-tool-", 5), n), Name: req.Tools.List[0].Name, Arguments: json.RawMessage("{}")},
		},
	}, nil
}

// A provider is a client and the model behind it.
type provider struct {
	client model.Model
	model  *thinker
}

func providers(t *testing.T) map[string]provider {
	all := make(map[string]provider)
	for name, wire := range map[string]struct {
		new   func(remote.Config) *remote.Client
		serve func(model.Model) *remotetest.Server
	}{
		"chat":      {openai.New, func(m model.Model) *remotetest.Server { return openaitest.NewServer(m, openaitest.Options{}) }},
		"responses": {responses.New, func(m model.Model) *remotetest.Server { return responsestest.NewServer(m, responsestest.Options{}) }},
		"anthropic": {anthropic.New, func(m model.Model) *remotetest.Server { return anthropictest.NewServer(m, anthropictest.Options{}) }},
	} {
		m := new(thinker)
		s := wire.serve(m)
		transport := new(http.Transport)
		t.Cleanup(func() {
			transport.CloseIdleConnections()
			s.Close()
		})
		all[name] = provider{wire.new(remote.Config{BaseURL: s.URL, Transport: transport}), m}
	}
	return all
}

// talk goes on with a conversation for a user's message, a call and its results.
func talk(t *testing.T, p provider, history []*model.Message) []*model.Message {
	t.Helper()
	req := &model.Request{Model: "m", ReasoningEffort: "low", Tools: &model.Tools{List: []model.Tool{{Name: "my.tool"}}}}
	req.Messages = append(history, &model.Message{Role: model.User, Text: "go on"})
	r, err := p.client.Ask(t.Context(), req, func(model.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, &model.Message{Role: model.Assistant, Text: r.Text, Calls: r.Calls, Reasoning: r.Reasoning})
	for _, c := range r.Calls {
		req.Messages = append(req.Messages, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: "result of " + c.Name})
	}
	if _, err := p.client.Ask(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	return req.Messages
}

func TestAHistoryMadeWithOneProviderWorksWithAllOthers(t *testing.T) {
	for first := range providers(t) {
		for second := range providers(t) {
			if first == second {
				continue
			}
			t.Run(first+" then "+second, func(t *testing.T) {
				all := providers(t)
				history := talk(t, all[first], nil)
				history = talk(t, all[second], history)
				talk(t, all[first], history) // the first model gets its own thoughts back
				for _, req := range all[second].model.asked[:1] {
					for _, m := range req.Messages {
						if m.Reasoning != nil {
							t.Errorf("%s was shown what %s thought: %+v", second, first, m.Reasoning)
						}
					}
				}
				last := all[first].model.asked[len(all[first].model.asked)-1]
				thoughts := 0
				for _, m := range last.Messages {
					if m.Reasoning != nil {
						thoughts++
					}
				}
				if want := map[string]int{"chat": 0, "responses": 2, "anthropic": 2}[first]; thoughts != want {
					t.Errorf("%s was shown %d of its own thoughts, want %d", first, thoughts, want)
				}
			})
		}
	}
}

func TestAToolIsCalledByOurName(t *testing.T) {
	for name, p := range providers(t) {
		history := talk(t, p, nil)
		offered := p.model.asked[0].Tools.List[0].Name
		if got := history[1].Calls[1].Name; got != "my.tool" || (offered != got) != (name != "chat") {
			t.Errorf("%s: the tool my.tool was offered as %q and called by the name %q", name, offered, got)
		}
	}
}
