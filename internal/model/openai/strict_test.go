package openai_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// A body is a request as a strict server reads it.
type body struct {
	all      map[string]json.RawMessage
	messages []map[string]any
}

func readBody(data []byte) (b body, err error) {
	var list struct{ Messages []map[string]any }
	err = errors.Join(json.Unmarshal(data, &b.all), json.Unmarshal(data, &list))
	b.messages = list.Messages
	return b, err
}

func (b body) role(i int) string { return fmt.Sprint(b.messages[i]["role"]) }

// calls returns the calls of a message.
func (b body) calls(i int) (calls []map[string]any) {
	list, _ := b.messages[i]["tool_calls"].([]any)
	for _, c := range list {
		calls = append(calls, c.(map[string]any))
	}
	return calls
}

// has refuses members of the request that are not documented.
func (b body) has(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(b.all)) {
		if !slices.Contains(known, name) && !slices.Contains(everywhere, name) {
			return fmt.Errorf("extra_forbidden: %s", name)
		}
	}
	return nil
}

// everywhere are the members of requests that all providers document.
var everywhere = []string{"model", "messages", "tools", "tool_choice", "stream", "temperature", "top_p"}

// eachHas refuses members of messages and calls that are not documented.
func (b body) eachHas(message, call []string) error {
	for i, m := range b.messages {
		if err := onlyMembers(m, message...); err != nil {
			return err
		}
		for _, c := range b.calls(i) {
			if err := onlyMembers(c, call...); err != nil {
				return err
			}
		}
	}
	return nil
}

// The members of messages and calls at OpenAI.
var (
	plainMessage = []string{"role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id"}
	plainCall    = []string{"id", "type", "function"}
)

// answersCalls refuses what every provider refuses: a result without its call, and a call
// that has no result when something else follows.
func (b body) answersCalls() error {
	open := map[any]bool{}
	for i, m := range b.messages {
		if b.role(i) == "tool" {
			if !open[m["tool_call_id"]] {
				return fmt.Errorf("messages[%d]: a result without a call", i)
			}
			delete(open, m["tool_call_id"])
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("messages[%d]: there are calls without results", i)
		}
		if _, ok := m["content"]; !ok {
			return fmt.Errorf("messages[%d]: no content", i)
		}
		for _, c := range b.calls(i) {
			open[c["id"]] = true
		}
	}
	return nil
}

// shortIDs refuses ids that are longer than those of OpenAI.
func (b body) shortIDs() error {
	for i := range b.messages {
		for _, c := range b.calls(i) {
			if id := c["id"].(string); len(id) > 40 {
				return fmt.Errorf("the id %s is longer than 40", id)
			}
		}
	}
	return nil
}

// noUserAfterResult refuses what the models of Mistral refuse.
func (b body) noUserAfterResult() error {
	for i := range b.messages {
		if i > 0 && b.role(i) == "user" && b.role(i-1) == "tool" {
			return errors.New("Unexpected role 'user' after role 'tool'")
		}
	}
	return nil
}

// nineIDs refuses ids that Mistral does not accept.
func (b body) nineIDs() error {
	nine := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	for i, m := range b.messages {
		for _, c := range b.calls(i) {
			if !nine.MatchString(c["id"].(string)) {
				return fmt.Errorf("tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9", c["id"])
			}
		}
		if id, ok := m["tool_call_id"].(string); ok && !nine.MatchString(id) {
			return fmt.Errorf("tool call id was %s", id)
		}
	}
	return nil
}

// eachCallHas refuses messages with calls that lack a member, or whose first call does.
func (b body) eachCallHas(member string, ofCall bool) error {
	for i, m := range b.messages {
		calls := b.calls(i)
		if len(calls) == 0 {
			continue
		}
		if ofCall {
			m = calls[0]
		}
		if m[member] == nil {
			return fmt.Errorf("messages[%d]: %s is missing", i, member)
		}
	}
	return nil
}

// onlyMembers refuses members that are not documented.
func onlyMembers(object map[string]any, known ...string) error {
	for name := range object {
		if !slices.Contains(known, name) {
			return fmt.Errorf("extra_forbidden: %s", name)
		}
	}
	return nil
}

// A strictServer has the rules of a real server, after its public documentation and its
// error messages; the stories name the pages.
type strictServer struct {
	model   string // name of the model that is asked
	check   func(body) error
	refuses []string // requests that it refuses; those of TestStrictServersAcceptWhatTheirProfileSends with the profile Other too, unless takes is set
	takes   bool     // true if it takes what any other server takes
}

// The beginnings of requests that strict servers refuse.
const (
	toolThenUser = `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"aaaaaaaaa","type":"function","function":{}}]},{"role":"tool","tool_call_id":"aaaaaaaaa","content":""},{"role":"user","content":""}]}`
	orphan       = `{"messages":[{"role":"tool","tool_call_id":"aaaaaaaaa","content":""}]}`
)

var strictServers = map[string]strictServer{
	"openai": {model: "gpt-5.2", refuses: []string{orphan, `{"max_tokens":1}`, `{"messages":[{"role":"assistant","content":"","reasoning_content":"x"}]}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_completion_tokens", "prompt_cache_key"), b.eachHas(plainMessage, plainCall), b.shortIDs(), b.answersCalls())
	}},
	"azure": {model: "my-deployment", refuses: []string{orphan, `{"max_tokens":1}`, `{"messages":[{"role":"assistant","content":"","reasoning_content":"x"}]}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_completion_tokens"), b.eachHas(plainMessage, plainCall), b.shortIDs(), b.answersCalls())
	}},
	// The members that the page calls ignored are refused here.
	"anthropic": {model: "claude-sonnet-5", refuses: []string{orphan, `{"response_format":{}}`, `{"reasoning_effort":"low"}`}, check: func(b body) error {
		return errors.Join(b.has("stream_options", "max_tokens", "max_completion_tokens", "parallel_tool_calls"), b.eachHas(plainMessage, plainCall), b.answersCalls())
	}},
	"gemini": {model: "gemini-3-pro", refuses: []string{orphan, toolThenUser}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_completion_tokens", "max_tokens"), b.eachCallHas("extra_content", true), b.answersCalls())
	}},
	"deepseek": {model: "deepseek-v4-pro", refuses: []string{orphan, toolThenUser, `{"max_completion_tokens":1}`, `{"response_format":{"type":"json_schema"}}`}, check: func(b body) error {
		if form := b.all["response_format"]; strings.Contains(string(form), "json_schema") {
			return errors.New("This response_format type is unavailable now")
		}
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_tokens"), b.eachCallHas("reasoning_content", false), b.answersCalls())
	}},
	"mistral": {model: "mistral-medium-latest", refuses: []string{orphan, toolThenUser, `{"stream_options":{}}`, `{"max_completion_tokens":1}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "max_tokens", "reasoning_effort", "parallel_tool_calls"), b.eachHas([]string{"role", "content", "name", "prefix", "tool_calls", "tool_call_id"}, plainCall),
			b.noUserAfterResult(), b.nineIDs(), b.answersCalls())
	}},
	"openrouter": {model: "mistralai/devstral-medium", refuses: []string{orphan, toolThenUser, `{"reasoning_effort":"low"}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning", "max_tokens", "cache_control"), b.noUserAfterResult(), b.answersCalls())
	}},
	"ollama": {model: "qwen3:8b", refuses: []string{orphan, `{"max_completion_tokens":1}`, `{"prompt_cache_key":"a"}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_tokens"), b.answersCalls())
	}},
	// vLLM takes whatever OpenAI takes, and the templates of its models refuse the rest.
	"vllm": {model: "mistralai/Devstral-Small-2-24B-Instruct-2512", refuses: []string{orphan, toolThenUser, `{"prompt_cache_key":"a"}`}, takes: true, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_tokens", "max_completion_tokens"), b.noUserAfterResult(), b.answersCalls())
	}},
	"lmstudio": {model: "qwen3-8b", refuses: []string{orphan, `{"max_completion_tokens":1}`, `{"prompt_cache_key":"a"}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_tokens"), b.answersCalls())
	}},
	"github": {model: "openai/gpt-4.1", refuses: []string{orphan, `{"max_completion_tokens":1}`, `{"messages":[{"role":"assistant","content":"","reasoning_content":"x"}]}`}, check: func(b body) error {
		return errors.Join(b.has("response_format", "stream_options", "reasoning_effort", "max_tokens"), b.eachHas(plainMessage, plainCall), b.shortIDs(), b.answersCalls())
	}},
}

// hard is a conversation that crossed providers and was stopped in the middle.
func hard() *model.Request {
	long := "chatcmpl-tool-" + strings.Repeat("0123456789abcdef", 2)
	foreign := &model.Reasoning{Text: "hm", Opaque: `{"host":"elsewhere","model":"m","chat":{"thoughts":true,"message":{"their_own":1},"calls":{"0":{"their_call":2}}}}`}
	cold := 0.3
	return &model.Request{
		System: "s", Tail: "now", MaxOutput: 5, Session: "s1", ReasoningEffort: "low", Temperature: &cold,
		Tools: &model.Tools{List: []model.Tool{{Name: "view"}}},
		Messages: []*model.Message{
			{Role: model.User, Text: "go"},
			{Role: model.Assistant, Reasoning: foreign, Calls: []model.Call{{ID: long, Name: "view"}, {ID: "b_1", Name: "view"}}},
			{Role: model.ToolRole, CallID: long, Text: "x"}, {Role: model.ToolRole, CallID: "b_1", Text: "y"},
			{Role: model.User, Text: "stop, do this"},
			{Role: model.Assistant, Calls: []model.Call{{ID: "c", Name: "view"}}},
			{Role: model.ToolRole, CallID: "c", Text: "z"},
		},
	}
}

func TestStrictServersAcceptWhatTheirProfileSends(t *testing.T) {
	form := &model.Schema{Name: "n", Strict: true, JSON: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
	for _, name := range profile.Names() {
		server, ok := strictServers[name]
		if !ok {
			if name != profile.Other.Name {
				t.Errorf("there is no strict server of %s", name)
			}
			continue
		}
		refuse := remotetest.Options{Fault: func(_ int, data []byte) remotetest.Fault {
			b, err := readBody(data)
			if err := cmp.Or(err, server.check(b)); err != nil {
				return remotetest.Status(http.StatusBadRequest, err.Error())
			}
			return remotetest.Raw("application/json", subject.Reply)
		}}
		for how, change := range map[string]func(*model.Request){
			"as it is":          func(*model.Request) {},
			"with a form":       func(r *model.Request) { r.Schema = form },
			"with a form alone": func(r *model.Request) { r.Schema, r.Tools = form, nil },
			"without calls":     func(r *model.Request) { r.Calling = model.ShouldNotCall },
			"forgetting":        func(r *model.Request) { r.Forget = true },
			"after a result":    func(r *model.Request) { r.Messages = r.Messages[:4] },
		} {
			for _, as := range []string{name, profile.Other.Name} {
				if as != name && (server.takes || how != "as it is") {
					continue
				}
				_, c := subject.Client(t, nil, refuse, openai.Config{Profile: as})
				req := hard()
				req.Model = server.model
				change(req)
				if _, err := c.Ask(t.Context(), req, nil); (err == nil) != (as == name) {
					t.Errorf("a server as strict as that of %s, asked with the profile %s %s: %v", name, as, how, err)
				}
			}
		}
	}
}

func TestStrictServersRefuse(t *testing.T) {
	for name, server := range strictServers {
		for _, bad := range server.refuses {
			b, err := readBody([]byte(bad))
			if err != nil {
				t.Fatal(err)
			}
			if server.check(b) == nil {
				t.Errorf("the server of %s accepts %s", name, bad)
			}
		}
	}
}
