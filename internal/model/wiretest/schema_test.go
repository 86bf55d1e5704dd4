package wiretest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

const person = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`

// asked returns a request for an answer of the form of a person.
func asked(strict, tools bool) *model.Request {
	req := &model.Request{Model: "claude-opus-4-6", Messages: []*model.Message{{Role: model.User, Text: "who?"}},
		Schema: &model.Schema{Name: "person", JSON: json.RawMessage(person), Strict: strict}}
	if tools {
		req.Tools = &model.Tools{List: []model.Tool{{Name: "view", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	}
	return req
}

func TestTheFormOfAnAnswerIsAskedForAsTheProviderWantsIt(t *testing.T) {
	const (
		byFormat = `{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":` + person + `}}`
		forced   = `"required"`
	)
	for name, test := range map[string]struct {
		wire, as string
		req      *model.Request
		member   string
		want     string // empty if the request must not have the member
	}{
		"OpenAI":                           {chat, "openai", asked(true, false), "response_format", byFormat},
		"OpenAI beside tools":              {chat, "openai", asked(true, true), "response_format", byFormat},
		"OpenAI needs no other tool":       {chat, "openai", asked(true, true), "tool_choice", ""},
		"not strict":                       {chat, "openai", asked(false, false), "response_format", strings.Replace(byFormat, "true", "false", 1)},
		"Ollama":                           {chat, "ollama", asked(true, false), "response_format", byFormat},
		"Ollama beside tools":              {chat, "ollama", asked(true, true), "response_format", ""},
		"Ollama is not made to call":       {chat, "ollama", asked(true, true), "tool_choice", ""},
		"Gemini":                           {chat, "gemini", asked(true, false), "response_format", byFormat},
		"Gemini beside tools":              {chat, "gemini", asked(true, true), "response_format", ""},
		"Gemini must call":                 {chat, "gemini", asked(true, true), "tool_choice", forced},
		"DeepSeek has no schema":           {chat, "deepseek", asked(true, false), "response_format", ""},
		"DeepSeek is not made to call":     {chat, "deepseek", asked(true, false), "tool_choice", ""},
		"Claude by Chat Completions":       {chat, "anthropic", asked(true, false), "tool_choice", forced},
		"Responses":                        {replies, "openai", asked(true, true), "text", `{"format":{"type":"json_schema","name":"person","strict":true,"schema":` + person + `}}`},
		"Claude":                           {messages, "anthropic", asked(true, true), "output_config", `{"format":{"type":"json_schema","schema":` + person + `}}`},
		"Claude needs no other tool":       {messages, "anthropic", asked(true, true), "tool_choice", ""},
		"Claude without strictness":        {messages, "anthropic", asked(false, false), "output_config", ""},
		"Claude without strictness calls":  {messages, "anthropic", asked(false, false), "tool_choice", `{"type":"any"}`},
		"another server with the same API": {messages, "other", asked(true, false), "output_config", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := ask(t, test.wire, test.as, test.req, "")
			got, ok := s.body[test.member]
			if err != nil || ok != (test.want != "") || ok && !same(t, got, test.want) {
				t.Errorf("%s is %s, want %q; %v\n%s", test.member, got, test.want, err, s.raw)
			}
		})
	}
}

func TestClaudeIsToldEffortAndFormTogether(t *testing.T) {
	req := asked(true, false)
	req.ReasoningEffort = "high"
	s, _, err := ask(t, messages, "anthropic", req, "")
	if want := `{"effort":"high","format":{"type":"json_schema","schema":` + person + `}}`; err != nil || !same(t, s.body["output_config"], want) {
		t.Errorf("output_config is %s; %v", s.body["output_config"], err)
	}
}

func TestAModelThatThinksIsNotMadeToCallATool(t *testing.T) {
	req := asked(false, false)
	req.ReasoningEffort = "high"
	s, _, err := ask(t, messages, "anthropic", req, "")
	if err != nil || s.body["tool_choice"] != nil || s.body["thinking"] == nil || !strings.Contains(string(s.body["tools"]), `"name":"person"`) {
		t.Errorf("%v: %s", err, s.raw)
	}
}

func TestAnOldClaudeIsAskedByATool(t *testing.T) {
	for name, old := range map[string]bool{
		"claude-3-5-haiku-20241022": true, "claude-sonnet-4-20250514": true, "claude-opus-4-1-20250805": true,
		"claude-sonnet-4-5-20250929": false, "claude-opus-5": false, "claude-haiku-4-5": false,
	} {
		req := asked(true, false)
		req.Model = name
		s, _, err := ask(t, messages, "anthropic", req, "")
		if err != nil || (s.body["output_config"] == nil) != old || (s.body["tools"] != nil) != old {
			t.Errorf("%s: %v: %s", name, err, s.raw)
		}
	}
}

func TestTheToolOfTheAnswerComesAfterTheOthers(t *testing.T) {
	for _, wire := range []string{chat, messages} {
		s, _, err := ask(t, wire, "other", asked(true, true), "")
		tools := string(s.body["tools"])
		if err != nil || strings.Index(tools, `"view"`) > strings.Index(tools, `"person"`) || !strings.Contains(tools, `"person"`) {
			t.Errorf("%s: %v: %s", wire, err, s.raw)
		}
	}
	req := asked(true, true)
	req.Tools.List[0].Name = "person"
	s, _, err := ask(t, chat, "other", req, "")
	if err != nil || !strings.Contains(string(s.body["tools"]), `"person_form"`) {
		t.Errorf("a tool has the name of the form: %v: %s", err, s.raw)
	}
}

func TestTheCallOfTheAnswerIsTheTextOfTheReply(t *testing.T) {
	const (
		inChat    = `{"choices":[{"message":{"content":"Here it is.","tool_calls":[{"id":"a","function":{"name":"person","arguments":"{\"name\":\"Ada\"}"}}]},"finish_reason":"tool_calls"}]}`
		inMessage = `{"content":[{"type":"text","text":"Here it is."},{"type":"tool_use","id":"a","name":"person","input":{"name":"Ada"}}],"stop_reason":"tool_use"}`
	)
	for wire, reply := range map[string]string{chat: inChat, messages: inMessage} {
		_, got, err := ask(t, wire, "other", asked(true, true), reply)
		if err != nil || got.Text != `{"name":"Ada"}` || len(got.Calls) > 0 || got.Finish != model.FinishStop {
			t.Errorf("%s: %+v, %v", wire, got, err)
		}
	}
}

func TestAnAnswerBesideCallsIsTooEarly(t *testing.T) {
	const (
		inChat = `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"person","arguments":"{}"},"own":1},` +
			`{"id":"b","function":{"name":"view","arguments":"{}"},"own":2}]},"finish_reason":"tool_calls"}]}`
		inMessage = `{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"person","input":{}},{"type":"tool_use","id":"b","name":"view","input":{}}],"stop_reason":"tool_use"}`
	)
	for wire, reply := range map[string]string{chat: inChat, messages: inMessage} {
		s, got, err := ask(t, wire, "other", asked(true, true), reply)
		if err != nil || got.Text != "" || len(got.Calls) != 1 || got.Calls[0].Name != "view" || got.Finish != model.FinishCalls {
			t.Fatalf("%s: %+v, %v", wire, got, err)
		}
		next := asked(true, true)
		next.Messages = append(next.Messages, &model.Message{Role: model.Assistant, Calls: got.Calls, Reasoning: got.Reasoning}, &model.Message{Role: model.ToolRole, CallID: "b", Text: "y"})
		client := wires[wire].open(configOf(s, "other"))
		s.reply = wires[wire].x
		if _, err := client.Ask(t.Context(), next, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range map[string][]string{chat: {`"own":2`}, messages: {`"signature":"s"`}}[wire] {
			if sent := string(s.body["messages"]); !strings.Contains(sent, want) || strings.Contains(sent, `"a"`) {
				t.Errorf("%s is sent back as %s", wire, sent)
			}
		}
	}
}

func TestAStreamedAnswerArrivesAsText(t *testing.T) {
	const stream = `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"person","arguments":""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"name\":"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Ada\"}"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	s := record(t, stream)
	said := ""
	s.contentType = "text/event-stream"
	got, err := wires[chat].open(configOf(s, "other")).Ask(t.Context(), asked(true, true), func(d model.Delta) {
		said += d.Text
		if d.Arguments != "" || d.CallID != "" {
			t.Errorf("a piece of the answer is shown as a call: %+v", d)
		}
	})
	if err != nil || said != `{"name":"Ada"}` || got.Text != said {
		t.Errorf("%q, %+v, %v", said, got, err)
	}
}

func TestASchemaThatIsNoneIsRefusedBeforeTheRequest(t *testing.T) {
	for _, bad := range []string{``, `{`, `[]`, `{"type":"string"}`, `true`} {
		for wire := range wires {
			req := asked(true, false)
			req.Schema.JSON = json.RawMessage(bad)
			s, _, err := ask(t, wire, "other", req, "")
			if err == nil || s.body != nil || !strings.Contains(err.Error(), `"type": "object"`) {
				t.Errorf("%s with the schema %q: %v", wire, bad, err)
			}
		}
	}
}
