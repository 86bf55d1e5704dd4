package openai_test

import (
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
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// A body is a request as a strict server reads it.
type body struct {
	all      map[string]json.RawMessage
	messages []map[string]any
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

// onlyMembers refuses members that are not documented.
func onlyMembers(object map[string]any, known ...string) error {
	for name := range object {
		if !slices.Contains(known, name) {
			return fmt.Errorf("extra_forbidden: %s", name)
		}
	}
	return nil
}

// strict are the rules of real servers, after their public documentation and their error
// messages; the stories name the pages.
var strict = map[string]func(body) error{
	"openai": func(b body) error {
		for i, m := range b.messages {
			if err := onlyMembers(m, "role", "content", "name", "refusal", "audio", "tool_calls", "tool_call_id"); err != nil {
				return err
			}
			for _, c := range b.calls(i) {
				if err := onlyMembers(c, "id", "type", "function"); err != nil {
					return err
				}
				if id := c["id"].(string); len(id) > 40 {
					return fmt.Errorf("the id %s is longer than 40", id)
				}
			}
		}
		return nil
	},
	"mistral": func(b body) error {
		for name := range b.all {
			if !slices.Contains([]string{"model", "messages", "tools", "stream", "max_tokens", "temperature", "top_p", "reasoning_effort", "parallel_tool_calls"}, name) {
				return fmt.Errorf("extra_forbidden: %s", name)
			}
		}
		nine := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
		for i, m := range b.messages {
			if err := onlyMembers(m, "role", "content", "name", "prefix", "tool_calls", "tool_call_id"); err != nil {
				return err
			}
			if i > 0 && b.role(i) == "user" && b.role(i-1) == "tool" {
				return errors.New("unexpected role 'user' after role 'tool'")
			}
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
	},
	"gemini": func(b body) error {
		for i := range b.messages {
			if calls := b.calls(i); len(calls) > 0 && calls[0]["extra_content"] == nil {
				return errors.New("function call is missing a thought_signature in functionCall parts")
			}
		}
		return nil
	},
	"deepseek": func(b body) error {
		for i, m := range b.messages {
			if _, ok := m["reasoning_content"].(string); len(b.calls(i)) > 0 && !ok {
				return errors.New("the reasoning_content in the thinking mode must be passed back to the API")
			}
		}
		return nil
	},
}

// hard is a conversation that crossed providers and was stopped in the middle.
func hard() *model.Request {
	long := "chatcmpl-tool-" + strings.Repeat("0123456789abcdef", 2)
	foreign := &model.Reasoning{Text: "hm", Opaque: `{"host":"elsewhere","model":"m","chat":{"thoughts":true,"message":{"their_own":1},"calls":{"0":{"their_call":2}}}}`}
	return &model.Request{
		Model: "m", System: "s", Tail: "now", MaxOutput: 5, Session: "s1",
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
	for _, name := range slices.Sorted(maps.Keys(strict)) {
		refuse := remotetest.Options{Fault: func(_ int, data []byte) remotetest.Fault {
			var b body
			var list struct{ Messages []map[string]any }
			if json.Unmarshal(data, &b.all) != nil || json.Unmarshal(data, &list) != nil {
				t.Errorf("no JSON: %s", data)
			}
			b.messages = list.Messages
			if err := strict[name](b); err != nil {
				return remotetest.Status(http.StatusBadRequest, err.Error())
			}
			return remotetest.Raw("application/json", subject.Reply)
		}}
		for _, as := range []string{name, "other"} {
			_, c := subject.Client(t, nil, refuse, openai.Config{Profile: as})
			_, err := c.Ask(t.Context(), hard(), nil)
			if (err == nil) != (as == name) {
				t.Errorf("a server as strict as that of %s, asked with the profile %s: %v", name, as, err)
			}
		}
	}
}
