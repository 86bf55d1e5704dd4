package responses

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

func bodyOf(t interface{ Fatalf(string, ...any) }, q *remote.Query) (input []map[string]any, text string) {
	data := bytes.Join(fragments(q), nil)
	var b struct {
		Input []map[string]any `json:"input"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatalf("the body is no JSON: %v, in %s", err, data)
	}
	return b.Input, string(data)
}

func TestWhateverTheHistoryItIsAListOfItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := &model.Request{Model: "m", Tail: rapid.SampledFrom([]string{"", "t"}).Draw(t, "tail")}
		items := 0
		for range rapid.IntRange(0, 9).Draw(t, "messages") {
			m := &model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant, model.ToolRole}).Draw(t, "role")}
			m.Text = rapid.SampledFrom([]string{"", "text"}).Draw(t, "text")
			items++
			if m.Role == model.Assistant {
				m.Calls = make([]model.Call, rapid.IntRange(0, 2).Draw(t, "calls"))
				m.Reasoning = &model.Reasoning{Encrypted: rapid.SampledFrom([]string{"", "sealed", `{"host":"h","model":"m","parts":[{"raw":7}]}`, `{"host":"h","model":"m","parts":[]}`}).Draw(t, "encrypted")}
				if items += len(m.Calls); m.Text == "" && len(m.Calls) > 0 {
					items--
				}
			} else {
				m.Images = make([]model.Image, rapid.IntRange(0, 2).Draw(t, "pictures"))
			}
			req.Messages = append(req.Messages, m)
		}
		if n := len(req.Messages); req.Tail != "" && (n == 0 || req.Messages[n-1].Role != model.User) {
			items++
		}
		input, text := bodyOf(t, streamed(req))
		if len(input) != items {
			t.Fatalf("there are %d items, want %d, in %s", len(input), items, text)
		}
	})
}

func TestHistoryIsNeverEncodedTwice(t *testing.T) {
	req := remotetest.History(100)
	req.Messages = append(req.Messages, &model.Message{Role: model.Assistant, Text: "last"}, &model.Message{Role: model.User, Text: "more"})
	req.Tail = "volatile"
	first, second := fragments(streamed(req)), fragments(streamed(req))
	same := 0
	for i := range first {
		if &first[i][0] == &second[i][0] {
			same++
		}
	}
	const anew = 4 // the head, the system prompt, the tail, the options
	if len(first) != len(second) || same != len(first)-anew {
		t.Errorf("%d of %d pieces were kept, want all but %d", same, len(first), anew)
	}
}

func TestAHistoryOfAnyLengthIsWhole(t *testing.T) {
	req := &model.Request{Model: "m", Tail: "t"}
	var want []string
	for i := range 200 {
		text := fmt.Sprint("message ", i)
		req.Messages, want = append(req.Messages, &model.Message{Role: model.User, Text: text}), append(want, text)
		input, _ := bodyOf(t, streamed(req))
		var got []string
		for _, m := range input {
			got = append(got, m["content"].([]any)[0].(map[string]any)["text"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d messages (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestTheTailIsNotCachedWithAMessage(t *testing.T) {
	req := remotetest.History(1)
	_, before := bodyOf(t, streamed(req))
	with := *req
	with.Tail = "for this request only"
	bodyOf(t, streamed(&with))
	if _, after := bodyOf(t, streamed(req)); after != before {
		t.Errorf("after a request with a tail the body is\n%s\nbefore it was\n%s", after, before)
	}
}

func TestReasoningIsOnlyAskedOfModelsThatCan(t *testing.T) {
	for name, test := range map[string]struct {
		model, effort string
		forget        bool
		include, told bool
	}{
		"a model that reasons":          {"gpt-5", "", false, true, false},
		"a model that is told how much": {"gpt-5", "high", false, true, true},
		"a model that does not":         {"gpt-4.1", "high", false, false, false},
		"a model that nobody knows":     {"m", "low", false, true, true},
		"after it was rejected":         {"gpt-5", "high", true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, text := bodyOf(t, streamed(&model.Request{Model: test.model, ReasoningEffort: test.effort, Forget: test.forget}))
			if strings.Contains(text, `"include"`) != test.include || strings.Contains(text, `"reasoning":{`) != test.told {
				t.Errorf("the body is %s", text)
			}
		})
	}
}

func BenchmarkRequest(b *testing.B) {
	remotetest.BenchmarkBody(b, func(turns int) func() [][]byte {
		q := streamed(remotetest.History(turns))
		return func() [][]byte { return fragments(q) }
	})
}
