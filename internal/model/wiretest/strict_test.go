package wiretest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

type object = map[string]any

// only refuses members of an object that are not documented.
func only(o object, what string, known ...string) error {
	for name := range o {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s: unknown member %q", what, name)
		}
	}
	return nil
}

func objects(v any) (list []object) {
	all, _ := v.([]any)
	for _, each := range all {
		o, _ := each.(object)
		list = append(list, o)
	}
	return list
}

func text(v any) string { s, _ := v.(string); return s }

// strictMessages refuses what the Messages API refuses:
// https://platform.claude.com/docs/en/api/messages,
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking,
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
func strictMessages(b object) error {
	err := only(b, "request", "model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "stream", "temperature", "top_p", "cache_control", "metadata", "stop_sequences")
	if b["max_tokens"] == nil {
		err = errors.Join(err, errors.New("max_tokens: Field required"))
	}
	if b["thinking"] != nil && b["temperature"] != nil {
		err = errors.Join(err, errors.New("temperature may only be set to 1 when thinking is enabled"))
	}
	if n := strings.Count(string(encode(b)), `"cache_control"`); n > 4 {
		err = errors.Join(err, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", n))
	}
	open := map[string]bool{} // calls that the next message has to answer
	for i, m := range objects(b["messages"]) {
		if want := []string{"user", "assistant"}[i%2]; m["role"] != want {
			err = errors.Join(err, fmt.Errorf("messages.%d: the role is %v, and roles must alternate", i, m["role"]))
		}
		answered := map[string]bool{}
		for j, block := range objects(m["content"]) {
			at := fmt.Sprintf("messages.%d.content.%d", i, j)
			switch block["type"] {
			case "thinking":
				if text(block["signature"]) == "" {
					err = errors.Join(err, fmt.Errorf("%s: Invalid signature in thinking block", at))
				}
			case "text":
				if strings.TrimSpace(text(block["text"])) == "" {
					err = errors.Join(err, fmt.Errorf("%s: text content blocks must contain non-whitespace text", at))
				}
			case "tool_result":
				if !open[text(block["tool_use_id"])] {
					err = errors.Join(err, fmt.Errorf("%s: unexpected tool_use_id found in tool_result blocks", at))
				}
				answered[text(block["tool_use_id"])] = true
			}
		}
		for id := range open {
			if !answered[id] {
				err = errors.Join(err, fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks: %s", i, id))
			}
		}
		clear(open)
		for _, block := range objects(m["content"]) {
			if block["type"] == "tool_use" {
				open[text(block["id"])] = true
			}
		}
	}
	return err
}

// strictResponses refuses what the Responses API refuses:
// https://platform.openai.com/docs/api-reference/responses/create,
// https://platform.openai.com/docs/guides/reasoning.
func strictResponses(b object) error {
	err := only(b, "request", "model", "input", "instructions", "tools", "tool_choice", "text", "store", "include", "reasoning", "max_output_tokens", "prompt_cache_key", "stream", "temperature", "top_p")
	called, answered := map[string]bool{}, map[string]bool{}
	for i, item := range objects(b["input"]) {
		switch item["type"] {
		case "function_call":
			called[text(item["call_id"])] = true
			if len(text(item["call_id"])) > 64 {
				err = errors.Join(err, fmt.Errorf("input[%d].call_id: string too long", i))
			}
		case "function_call_output":
			if !called[text(item["call_id"])] {
				err = errors.Join(err, fmt.Errorf("no tool call found for function call output with call_id %v", item["call_id"]))
			}
			answered[text(item["call_id"])] = true
		case "reasoning":
			if text(item["encrypted_content"]) == "" {
				err = errors.Join(err, fmt.Errorf("input[%d]: item with id %v not found: items are not persisted when store is set to false", i, item["id"]))
			}
		}
	}
	for id := range called {
		if !answered[id] {
			err = errors.Join(err, fmt.Errorf("no tool output found for function call %s", id))
		}
	}
	return err
}

// strictChat refuses what Chat Completions of OpenAI refuses:
// https://platform.openai.com/docs/api-reference/chat/create.
func strictChat(b object) error {
	err := only(b, "request", "model", "messages", "tools", "tool_choice", "response_format", "stream", "stream_options", "reasoning_effort", "max_completion_tokens", "prompt_cache_key", "temperature", "top_p")
	open := map[string]bool{}
	for i, m := range objects(b["messages"]) {
		if m["role"] == "tool" {
			if !open[text(m["tool_call_id"])] {
				err = errors.Join(err, fmt.Errorf("messages[%d]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'", i))
			}
			delete(open, text(m["tool_call_id"]))
			continue
		}
		if len(open) > 0 {
			err = errors.Join(err, fmt.Errorf("messages[%d]: an assistant message with 'tool_calls' must be followed by tool messages", i))
		}
		for _, c := range objects(m["tool_calls"]) {
			open[text(c["id"])] = true
		}
	}
	return err
}

// crossed is a conversation that other providers began: with ids, state and thinking that
// are not those of this one, blank texts and a first message of the model.
func crossed() *model.Request {
	id := "chatcmpl-tool-" + strings.Repeat("0123456789abcdef", 5)
	foreign := &model.Reasoning{
		Text: "hm", Opaque: `{"host":"elsewhere","model":"m","parts":[{"raw":{"type":"thinking","thinking":"hm"}},{"call":true},{"call":true}]}`,
		Encrypted: `{"host":"elsewhere","model":"m","parts":[{"raw":{"type":"reasoning","id":"rs_0"}},{"call":true},{"call":true}]}`,
	}
	cold := 0.3
	return &model.Request{
		Model: "claude-opus-4-6", System: "s", Tail: "now", MaxOutput: 5000, Session: "s1", Temperature: &cold, ReasoningEffort: "high",
		Tools: &model.Tools{List: []model.Tool{{Name: "view"}, {Name: "my.tool"}}},
		Messages: []*model.Message{
			{Role: model.Assistant, Text: "Earlier."},
			{Role: model.User, Text: " "},
			{Role: model.Assistant, Reasoning: foreign, Calls: []model.Call{{ID: id, Name: "view"}, {ID: "b.1", Name: "my.tool"}}},
			{Role: model.ToolRole, CallID: id, Text: "x"}, {Role: model.ToolRole, CallID: "b.1", Failed: true},
			{Role: model.User, Text: "stop, do this"}, {Role: model.User, Text: "and that"},
			{Role: model.Assistant, Text: "\n", Calls: []model.Call{{ID: "c", Name: "view", Arguments: json.RawMessage(`{"path":"a"}`)}}},
			{Role: model.ToolRole, CallID: "c", Text: "z"},
		},
	}
}

func TestStrictServersAcceptConversationsOfOthers(t *testing.T) {
	for wire, test := range map[string]struct {
		as    string
		check func(object) error
	}{chat: {"openai", strictChat}, replies: {"openai", strictResponses}, messages: {"anthropic", strictMessages}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b object
			if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
				t.Error(err)
			}
			if err := test.check(b); err != nil {
				http.Error(w, string(encode(object{"error": object{"message": err.Error()}})), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, wires[wire].x)
		}))
		defer server.Close()
		c := wires[wire].open(remote.Config{BaseURL: server.URL, Profile: test.as, CacheTTL: "1h"})
		for name, change := range map[string]func(*model.Request){
			"as it is":        func(*model.Request) {},
			"with a form":     func(r *model.Request) { r.Schema = asked(true, false).Schema },
			"with a weak one": func(r *model.Request) { r.Schema = asked(false, false).Schema },
			"without effort":  func(r *model.Request) { r.ReasoningEffort = "" },
			"forgetting":      func(r *model.Request) { r.Forget = true },
		} {
			req := crossed()
			change(req)
			if _, err := c.Ask(t.Context(), req, nil); err != nil {
				t.Errorf("%s, %s: %v", wire, name, err)
			}
		}
	}
}

// The strict servers are strict: each refuses a request with the mistake that it is there
// for.
func TestStrictServersRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		check func(object) error
		body  string
	}{
		"unsigned thinking":            {strictMessages, `{"max_tokens":1,"messages":[{"role":"user","content":[]},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":""}]}]}`},
		"an orphan result":             {strictMessages, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}`},
		"a call without a result":      {strictMessages, `{"max_tokens":1,"messages":[{"role":"user","content":[]},{"role":"assistant","content":[{"type":"tool_use","id":"a"}]},{"role":"user","content":[]}]}`},
		"roles out of order":           {strictMessages, `{"max_tokens":1,"messages":[{"role":"assistant","content":[]}]}`},
		"no limit":                     {strictMessages, `{"messages":[]}`},
		"blank text":                   {strictMessages, `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":" "}]}]}`},
		"an unknown member":            {strictMessages, `{"max_tokens":1,"messages":[],"prompt_cache_key":"x"}`},
		"a temperature while thinking": {strictMessages, `{"max_tokens":1,"messages":[],"thinking":{},"temperature":0.1}`},
		"an orphan output":             {strictResponses, `{"input":[{"type":"function_call_output","call_id":"a"}]}`},
		"a call without an output":     {strictResponses, `{"input":[{"type":"function_call","call_id":"a"}]}`},
		"reasoning that is not stored": {strictResponses, `{"input":[{"type":"reasoning","id":"rs"}]}`},
		"an orphan message":            {strictChat, `{"messages":[{"role":"tool","tool_call_id":"a"}]}`},
		"a call and then a message":    {strictChat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user"}]}`},
		"max_tokens":                   {strictChat, `{"messages":[],"max_tokens":1}`},
	} {
		var b object
		if err := json.Unmarshal([]byte(test.body), &b); err != nil {
			t.Fatal(err)
		}
		if test.check(b) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
