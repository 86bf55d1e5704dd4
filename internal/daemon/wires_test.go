package daemon_test

import (
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

func TestATurnWithAToolGoesThroughEveryWire(t *testing.T) {
	chat := openaitest.NewServer(offline.Model{}, openaitest.Options{})
	defer chat.Close()
	messages := anthropictest.NewServer(offline.Model{}, anthropictest.Options{})
	defer messages.Close()
	responses := responsestest.NewServer(offline.Model{}, responsestest.Options{})
	defer responses.Close()
	for name, provider := range map[string]provider.Provider{
		"chat":      {BaseURL: chat.URL},
		"anthropic": {Type: "anthropic", BaseURL: messages.URL, APIKey: "k"},
		"responses": {WireAPI: "responses", BaseURL: responses.URL, APIKey: "k"},
	} {
		for _, streaming := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := connect(t, open(t, t.TempDir()))
				p.must(api.SessionCreate, map[string]any{"sessionId": "s", "model": "m", "provider": provider, "streaming": streaming,
					"tools": []any{map[string]any{"name": "look", "skipPermission": true}}}, nil)
				p.must(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Use look with value 'a', then reply with the result"}, nil)
				call, _ := event.As[event.ExternalAskedData](p.await(event.ExternalAsked, 1))
				p.must(api.AnswerTool, map[string]any{"sessionId": "s", "requestId": call.RequestID, "result": "seen"}, nil)
				if got := answer(t, p.await(event.AssistantMessage, 2)); got != "seen" {
					t.Errorf("answer = %q", got)
				}
			})
		}
	}
}
