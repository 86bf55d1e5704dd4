package wiretest_test

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

// Anthropic caches messages for one tool_choice alone, so calls are only forbidden there if
// nothing else helps.
func TestCallsAreForbidden(t *testing.T) {
	tools := &model.Tools{List: []model.Tool{{Name: "view", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	for name, test := range map[string]struct {
		wire, as string
		tools    *model.Tools
		calling  model.Calling
		want     string // empty if the request must not have the member
	}{
		"OpenAI":                  {chat, "openai", tools, model.ShouldNotCall, `"none"`},
		"OpenAI in any case":      {chat, "openai", tools, model.MustNotCall, `"none"`},
		"OpenAI may call":         {chat, "openai", tools, model.MayCall, ""},
		"OpenAI without tools":    {chat, "openai", nil, model.MustNotCall, ""},
		"Responses":               {replies, "openai", tools, model.ShouldNotCall, `"none"`},
		"Responses without tools": {replies, "openai", nil, model.ShouldNotCall, ""},
		"Claude keeps its cache":  {messages, "anthropic", tools, model.ShouldNotCall, ""},
		"Claude in any case":      {messages, "anthropic", tools, model.MustNotCall, `{"type":"none"}`},
		"Claude without tools":    {messages, "anthropic", nil, model.MustNotCall, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{Model: "claude-opus-4-6", Messages: []*model.Message{{Role: model.User, Text: "who?"}}, Tools: test.tools, Calling: test.calling}
			s, _, err := ask(t, test.wire, test.as, req, "")
			got, ok := s.body["tool_choice"]
			if err != nil || ok != (test.want != "") || ok && !same(t, got, test.want) {
				t.Errorf("tool_choice is %s, want %q; %v\n%s", got, test.want, err, s.raw)
			}
		})
	}
}
