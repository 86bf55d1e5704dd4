package wiretest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
)

// long returns a conversation of n messages, each with a text of its own: a person asks,
// the model calls two tools and answers.
func long(n int) *model.Request {
	req := &model.Request{
		Model: "claude-opus-4-6", System: "Be brief.", Tail: fmt.Sprint("It is ", n, " o'clock."), Session: "s1",
		Tools: &model.Tools{List: []model.Tool{{Name: "view"}, {Name: "edit"}}},
	}
	for i := range n {
		m := &model.Message{Text: fmt.Sprintf("[text %d]", i)}
		switch i % 5 {
		case 0:
			m.Role = model.User
		case 1:
			m.Role, m.Calls = model.Assistant, []model.Call{{ID: fmt.Sprint("a", i), Name: "view"}, {ID: fmt.Sprint("b", i), Name: "edit"}}
		case 2:
			m.Role, m.CallID = model.ToolRole, fmt.Sprint("a", i-1)
		case 3:
			m.Role, m.CallID = model.ToolRole, fmt.Sprint("b", i-2)
		default:
			m.Role = model.Assistant
		}
		req.Messages = append(req.Messages, m)
	}
	return req
}

// Every request begins with the bytes of the one before, up to its last message, whatever
// the provider: only so can it use its cache. The marks of Claude's cache move, and the
// provider does not count them.
func TestARequestBeginsAsTheOneBefore(t *testing.T) {
	for wire := range wires {
		for _, as := range profile.Names() {
			t.Run(wire+"/"+as, func(t *testing.T) {
				var before []byte
				for n := range 70 { // more than a run of cached messages
					if n > 12 && n < 60 {
						continue
					}
					s, _, err := ask(t, wire, as, long(n), "")
					s.Close()
					if err != nil {
						t.Fatal(err)
					}
					sent := bytes.ReplaceAll(s.raw, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
					if n > 1 && n != 60 {
						last := fmt.Sprintf("[text %d]", n-2)
						same := bytes.Index(before, []byte(last)) + len(last)
						if !bytes.HasPrefix(sent, before[:same]) {
							t.Fatalf("with %d messages the request begins in another way:\n%s\n%s", n, before, sent)
						}
					}
					before = sent
				}
			})
		}
	}
}

func TestTheLifetimeOfACacheIsAChoice(t *testing.T) {
	const plain, hour = `"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	for name, test := range map[string]struct {
		wire, as string
		marks    int
	}{
		"Claude":                 {messages, "anthropic", 4},
		"Claude over OpenRouter": {chat, "openrouter", 1},
		"OpenAI":                 {chat, "openai", 0},
		"Responses":              {replies, "openai", 0},
	} {
		req := long(6)
		for ttl, want := range map[string]string{"": plain, "1h": hour} {
			s := record(t, wires[test.wire].x)
			config := configOf(s, test.as)
			config.CacheTTL = ttl
			if _, err := wires[test.wire].open(config).Ask(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(s.raw), want); n != test.marks || strings.Count(string(s.raw), "cache_control") != n {
				t.Errorf("%s with the lifetime %q has %d marks: %s", name, ttl, n, s.raw)
			}
		}
	}
}

func TestOnlyClaudeIsMarkedOverOpenRouter(t *testing.T) {
	for name, want := range map[string]bool{"anthropic/claude-opus-4.6": true, "openai/gpt-5": false} {
		req := long(1)
		req.Model = name
		s, _, err := ask(t, chat, "openrouter", req, "")
		if err != nil || (s.body["cache_control"] != nil) != want {
			t.Errorf("%s: %v: %s", name, err, s.raw)
		}
	}
}

func TestTheSessionIsTheKeyOfTheCache(t *testing.T) {
	for _, test := range []struct {
		wire, as string
		want     string
	}{{chat, "openai", `"s1"`}, {replies, "openai", `"s1"`}, {chat, "mistral", ""}, {chat, "ollama", ""}, {messages, "anthropic", ""}} {
		s, _, err := ask(t, test.wire, test.as, long(1), "")
		if got := string(s.body["prompt_cache_key"]); err != nil || got != test.want {
			t.Errorf("%s on the wire %s has the key %s, %v", test.as, test.wire, got, err)
		}
	}
}

func TestTemperatureAndTopPAreSent(t *testing.T) {
	cold, most := 0.2, 0.95
	for wire := range wires {
		req := long(1)
		req.Temperature, req.TopP = &cold, &most
		s, _, err := ask(t, wire, "other", req, "")
		if err != nil || string(s.body["temperature"]) != "0.2" || string(s.body["top_p"]) != "0.95" {
			t.Errorf("%s: %v: %s", wire, err, s.raw)
		}
		zero := 0.0
		req.Temperature, req.TopP = &zero, nil
		s, _, err = ask(t, wire, "other", req, "")
		if err != nil || string(s.body["temperature"]) != "0" || s.body["top_p"] != nil {
			t.Errorf("%s: %v: %s", wire, err, s.raw)
		}
	}
	req := long(1)
	req.Temperature, req.ReasoningEffort = &cold, "high"
	s, _, err := ask(t, messages, "anthropic", req, "")
	if err != nil || s.body["temperature"] != nil || s.body["thinking"] == nil {
		t.Errorf("Claude refuses a temperature while it thinks: %v: %s", err, s.raw)
	}
}
