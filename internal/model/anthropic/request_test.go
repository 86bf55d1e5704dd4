package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func streamed(req *model.Request) *remote.Query {
	return &remote.Query{Request: req, Host: "h", Stream: true}
}

// body is what is checked of a request.
type body struct {
	MaxTokens int             `json:"max_tokens"`
	Thinking  json.RawMessage `json:"thinking"`
	Output    json.RawMessage `json:"output_config"`
	Messages  []struct {
		Role    string           `json:"role"`
		Content []map[string]any `json:"content"`
	} `json:"messages"`
}

func bodyOf(t interface{ Fatalf(string, ...any) }, q *remote.Query) (body, string) {
	data := bytes.Join(fragments(q), nil)
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatalf("the body is no JSON: %v, in %s", err, data)
	}
	return b, string(data)
}

func TestRolesAlternateWhateverTheHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := &model.Request{Model: "m", Tail: rapid.SampledFrom([]string{"", "t"}).Draw(t, "tail")}
		for i := range rapid.IntRange(0, 9).Draw(t, "messages") {
			m := &model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole}).Draw(t, "role")}
			m.Text = rapid.SampledFrom([]string{"", " \n", "text"}).Draw(t, "text")
			if m.Role == model.Assistant {
				m.Calls = make([]model.Call, rapid.IntRange(0, 2).Draw(t, "calls"))
				m.Reasoning = &model.Reasoning{Opaque: rapid.SampledFrom([]string{"", "sealed", `{"host":"h","model":"m","parts":[{"raw":7}]}`}).Draw(t, "opaque")}
			} else {
				m.Images = make([]model.Image, rapid.IntRange(0, 2).Draw(t, "pictures"))
			}
			if m.Role == model.ToolRole {
				m.CallID = fmt.Sprint("id.", i)
			}
			req.Messages = append(req.Messages, m)
		}
		b, text := bodyOf(t, streamed(req))
		for i, m := range b.Messages {
			if want := [...]string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
				t.Fatalf("message %d is of %q with %d blocks, in %s", i, m.Role, len(m.Content), text)
			}
			for _, block := range m.Content {
				if said, ok := block["text"].(string); ok && strings.TrimSpace(said) == "" {
					t.Fatalf("message %d has an empty text, in %s", i, text)
				}
			}
		}
	})
}

func TestTheCacheIsMarkedWhereTheRequestBeforeEnded(t *testing.T) {
	user := func(text string) *model.Message { return &model.Message{Role: model.User, Text: text} }
	answer := &model.Message{Role: model.Assistant, Text: "a", Calls: []model.Call{{ID: "1", Name: "x"}, {ID: "2", Name: "x"}}}
	result := func(id string) *model.Message { return &model.Message{Role: model.ToolRole, CallID: id, Text: "r"} }
	req := &model.Request{Model: "m", System: "s", Tail: "t", Tools: &model.Tools{List: []model.Tool{{Name: "x"}, {Name: "y"}}}}
	ends := "" // end of the request before
	for i, add := range [][]*model.Message{{user("1")}, {answer, result("1"), result("2")}, {{Role: model.Assistant, Text: "b"}, user("2"), user("3")}} {
		req.Messages = append(req.Messages, add...)
		_, text := bodyOf(t, streamed(req))
		marks := strings.Split(text, marker(query()))
		// tools, system prompt, end of the request before, end of this one
		if want := 3 + min(i, 1); len(marks)-1 != want {
			t.Errorf("request %d has %d marks, want %d: %s", i+1, len(marks)-1, want, text)
		}
		unmarked := strings.Join(marks[:len(marks)-1], "}")
		if i > 0 && strings.Join(marks[:len(marks)-2], "}") != ends {
			t.Errorf("request %d does not find what the one before it left:\n%s\nwant\n%s", i+1, strings.Join(marks[:len(marks)-2], "}"), ends)
		}
		if tail := marks[len(marks)-1]; !strings.Contains(tail, "<system_reminder>t</system_reminder>") {
			t.Errorf("the tail of request %d is cached: %s", i+1, text)
		}
		ends = unmarked
	}
}

func TestWhatTheModelSaidIsNotMarked(t *testing.T) {
	own := `{"host":"h","model":"m","parts":[{"text":1},{"raw":{"type":"thinking","thinking":"","signature":"s"}}]}`
	answer := &model.Message{Role: model.Assistant, Text: "a", Reasoning: &model.Reasoning{Opaque: own}}
	_, text := bodyOf(t, streamed(&model.Request{Model: "m", Messages: []*model.Message{answer, answer, answer}}))
	if strings.Contains(text, "cache_control") || strings.Count(text, "signature") != 3 {
		t.Errorf("the body is %s", text)
	}
}

func TestHistoryIsNeverEncodedTwice(t *testing.T) {
	req := remotetest.History(100)
	req.Tail = "volatile"
	first, second := fragments(streamed(req)), fragments(streamed(req))
	same := 0
	for i := range first {
		if &first[i][0] == &second[i][0] {
			same++
		}
	}
	const anew = 5 // the head, the system prompt, two marks, the end
	if len(first) != len(second) || same < len(first)-anew {
		t.Errorf("%d of %d pieces were kept, want all but %d", same, len(first), anew)
	}
}

func TestAHistoryOfAnyLengthIsWhole(t *testing.T) {
	req := &model.Request{Model: "m"}
	var want []string
	for i := range 300 {
		text := fmt.Sprint("message ", i)
		role := [...]model.Role{model.User, model.Assistant}[i%2]
		req.Messages, want = append(req.Messages, &model.Message{Role: role, Text: text}), append(want, text)
		b, _ := bodyOf(t, streamed(req))
		var got []string
		for _, m := range b.Messages {
			got = append(got, m.Content[0]["text"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d messages (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestThinkingIsConfiguredAsTheModelNeedsIt(t *testing.T) {
	const adaptive = `{"type":"adaptive","display":"summarized"}`
	for name, test := range map[string]struct {
		model, effort    string
		limit            int
		max              int
		thinking, output string
	}{
		"nothing asked":                  {"claude-sonnet-4-5", "", 0, 64_000, "", ""},
		"a budget":                       {"claude-sonnet-4-5", "low", 0, 64_000, `{"type":"enabled","budget_tokens":4096}`, ""},
		"a medium budget":                {"claude-opus-4-1", "medium", 0, 32_000, `{"type":"enabled","budget_tokens":10240}`, ""},
		"a high budget in a small reply": {"claude-sonnet-4-5", "high", 8000, 8000, `{"type":"enabled","budget_tokens":4000}`, ""},
		"no room to think":               {"claude-sonnet-4-5", "high", 2000, 2000, "", ""},
		"an effort nobody knows":         {"claude-sonnet-4-5", "extreme", 0, 64_000, `{"type":"enabled","budget_tokens":32000}`, ""},
		"none":                           {"claude-sonnet-4-5", "none", 0, 64_000, "", ""},
		"a model that does not reason":   {"claude-3-5-haiku-latest", "high", 0, 8192, "", ""},
		"a model of someone else":        {"glm-9", "low", 0, 16_384, `{"type":"enabled","budget_tokens":4096}`, ""},
		"by effort":                      {"claude-opus-4-8", "high", 0, 128_000, adaptive, `{"effort":"high"}`},
		"by effort, not asked":           {"claude-opus-4-8", "", 0, 128_000, "", ""},
		"always":                         {"claude-opus-5-5", "", 0, 128_000, adaptive, ""},
		"always, and told":               {"claude-opus-5-5", "low", 0, 128_000, adaptive, `{"effort":"low"}`},
		"always, even if not wanted":     {"claude-opus-5-5", "none", 0, 128_000, adaptive, ""},
		"a model that is yet to come":    {"claude-next", "low", 0, 64_000, adaptive, `{"effort":"low"}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{Model: test.model, ReasoningEffort: test.effort, MaxOutput: test.limit, Messages: []*model.Message{{Role: model.User, Text: "x"}}}
			b, _ := bodyOf(t, streamed(req))
			if b.MaxTokens != test.max || string(b.Thinking) != test.thinking || string(b.Output) != test.output {
				t.Errorf("max_tokens %d, thinking %s, output_config %s", b.MaxTokens, b.Thinking, b.Output)
			}
		})
	}
}

func TestCallsThatBeganWithoutThinkingContinueWithoutIt(t *testing.T) {
	own := `{"host":"h","model":"claude-sonnet-4-5","parts":[{"raw":{"type":"thinking","thinking":"","signature":"s"}},{"call":true}]}`
	calls := []model.Call{{ID: "1", Name: "x"}}
	for name, test := range map[string]struct {
		last   *model.Message
		forget bool
		thinks bool
	}{
		"calls after own thoughts":      {&model.Message{Role: model.Assistant, Calls: calls, Reasoning: &model.Reasoning{Opaque: own}}, false, true},
		"thoughts that were rejected":   {&model.Message{Role: model.Assistant, Calls: calls, Reasoning: &model.Reasoning{Opaque: own}}, true, false},
		"calls of another model":        {&model.Message{Role: model.Assistant, Calls: calls}, false, false},
		"thoughts of another model":     {&model.Message{Role: model.Assistant, Calls: calls, Reasoning: &model.Reasoning{Opaque: "sealed"}}, false, false},
		"an answer that calls no tools": {&model.Message{Role: model.Assistant, Text: "a"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{Model: "claude-sonnet-4-5", ReasoningEffort: "low", Forget: test.forget, Messages: []*model.Message{
				{Role: model.User, Text: "x"}, test.last, {Role: model.ToolRole, CallID: "1"},
			}}
			b, text := bodyOf(t, streamed(req))
			if thinks := b.Thinking != nil; thinks != test.thinks {
				t.Errorf("thinking is %s, want it: %v", b.Thinking, test.thinks)
			}
			if strings.Contains(text, "signature") != (test.last.Reasoning != nil && test.last.Reasoning.Opaque == own && !test.forget) {
				t.Errorf("what was thought is shown, or is not: %s", text)
			}
		})
	}
}

func TestArgumentsThatAreNoObjectDoNotSpoilTheRequest(t *testing.T) {
	for _, arguments := range []string{"", "{oops", "[]", "7", "null", `"text"`, " {} "} {
		req := &model.Request{Model: "m", Messages: []*model.Message{
			{Role: model.User, Text: "x"},
			{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "x", Arguments: json.RawMessage(arguments)}}},
			{Role: model.ToolRole, CallID: "1"},
		}, Tools: &model.Tools{List: []model.Tool{{Name: "x", Parameters: json.RawMessage(arguments)}}}}
		b, text := bodyOf(t, streamed(req))
		if _, ok := b.Messages[1].Content[0]["input"].(map[string]any); !ok {
			t.Errorf("with %q the request is %s", arguments, text)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	remotetest.BenchmarkBody(b, func(turns int) func() [][]byte {
		q := streamed(remotetest.History(turns))
		return func() [][]byte { return fragments(q) }
	})
}
