package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

func bodyOf(t testing.TB, req *model.Request, stream bool) string {
	t.Helper()
	data := bytes.Join(fragments(&remote.Query{Request: req, Stream: stream}), nil)
	if !json.Valid(data) {
		t.Fatalf("the body is no JSON: %s", data)
	}
	return string(data)
}

func TestTheBodyIsWhatTheWireAsksFor(t *testing.T) {
	user := &model.Message{Role: model.User, Text: "say \"hi\"\n"}
	calls := &model.Message{Role: model.Assistant, Calls: []model.Call{
		{ID: "a", Name: "one", Arguments: json.RawMessage(`{"x":"y"}`)},
		{ID: "b", Name: "two"},
	}}
	result := &model.Message{Role: model.ToolRole, CallID: "a", Text: "done"}
	picture := &model.Message{Role: model.User, Text: "what is it?", Images: []model.Image{{MediaType: "image/png", Data: []byte("png")}}}
	const (
		userWire    = `{"role":"user","content":"say \"hi\"\n"}`
		callsWire   = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{\"x\":\"y\"}"}},{"id":"b","type":"function","function":{"name":"two","arguments":"{}"}}],"content":null}`
		resultWire  = `{"role":"tool","tool_call_id":"a","content":"done"}`
		imageWire   = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
		pictureWire = `{"role":"user","content":[{"type":"text","text":"what is it?"},` + imageWire + `]}`
	)
	for name, test := range map[string]struct {
		req    model.Request
		stream bool
		want   string
	}{
		"nothing": {model.Request{Model: "m"}, false, `{"model":"m","messages":[]}`},
		"system and history": {
			model.Request{Model: "m", System: "be kind", Messages: []*model.Message{user, calls, result}}, false,
			`{"model":"m","messages":[{"role":"system","content":"be kind"},` + userWire + `,` + callsWire + `,` + resultWire + `]}`,
		},
		"no system": {
			model.Request{Model: "m", Messages: []*model.Message{user, result}}, false,
			`{"model":"m","messages":[` + userWire + `,` + resultWire + `]}`,
		},
		"stream, effort and limit": {
			model.Request{Model: "m", Messages: []*model.Message{user}, ReasoningEffort: "high", MaxOutput: 99}, true,
			`{"model":"m","messages":[` + userWire + `],"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"high","max_completion_tokens":99}`,
		},
		"tools": {
			model.Request{Model: "m", Tools: &model.Tools{List: []model.Tool{
				{Name: "one", Description: "1", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "two"},
			}}}, false,
			`{"model":"m","tools":[{"type":"function","function":{"name":"one","description":"1","parameters":{"type":"object"}}},` +
				`{"type":"function","function":{"name":"two","description":"","parameters":{"type":"object","properties":{}}}}],"messages":[]}`,
		},
		"an empty set of tools is none":    {model.Request{Model: "m", Tools: new(model.Tools)}, false, `{"model":"m","messages":[]}`},
		"an assistant who said nothing":    {model.Request{Messages: []*model.Message{{Role: model.Assistant}}}, false, `{"model":"","messages":[{"role":"assistant","content":""}]}`},
		"a picture":                        {model.Request{Messages: []*model.Message{picture}}, false, `{"model":"","messages":[` + pictureWire + `]}`},
		"a picture without words":          {model.Request{Messages: []*model.Message{{Role: model.User, Images: picture.Images}}}, false, `{"model":"","messages":[{"role":"user","content":[` + imageWire + `]}]}`},
		"tail, nothing else":               {model.Request{Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail after the system prompt":     {model.Request{System: "s", Tail: "t"}, false, `{"model":"","messages":[{"role":"system","content":"s"},{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail in the user's last message":  {model.Request{Messages: []*model.Message{user}, Tail: "a\nb"}, false, `{"model":"","messages":[{"role":"user","content":"say \"hi\"\n\n\n<system_reminder>a\nb</system_reminder>"}]}`},
		"tail in an empty message":         {model.Request{Messages: []*model.Message{{Role: model.User}}, Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail after a tool result":         {model.Request{Messages: []*model.Message{user, result}, Tail: "t"}, false, `{"model":"","messages":[` + userWire + `,` + resultWire + `,{"role":"user","content":"<system_reminder>t</system_reminder>"}]}`},
		"tail in a message with a picture": {model.Request{Messages: []*model.Message{picture}, Tail: "t"}, false, `{"model":"","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},` + imageWire + `,{"type":"text","text":"<system_reminder>t</system_reminder>"}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from what was kept
				if diff := cmp.Diff(test.want, bodyOf(t, &test.req, test.stream)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestHistoryIsNeverEncodedTwice(t *testing.T) {
	req := remotetest.History(100)
	req.Tail = "volatile"
	first, second := fragments(streamed(req)), fragments(streamed(req))
	const tools, history = 1, 3
	for i := history; i < len(first)-2; i++ {
		if &first[i][0] != &second[i][0] {
			t.Fatalf("piece %d of the history was encoded again", i-history)
		}
	}
	if &first[tools][0] != &second[tools][0] {
		t.Error("the tools were encoded again")
	}
}

func TestAHistoryOfAnyLengthIsWhole(t *testing.T) {
	for n := range 200 {
		req := &model.Request{Model: "m", Tail: "t"}
		want := "{\"model\":\"m\",\"messages\":["
		for i := range n {
			text := fmt.Sprint("message ", i)
			req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: text})
			if i < n-1 {
				want += fmt.Sprintf(`{"role":"user","content":%q},`, text)
			} else {
				want += fmt.Sprintf(`{"role":"user","content":"%s\n\n`, text)
			}
		}
		if n == 0 {
			want += `{"role":"user","content":"`
		}
		want += `<system_reminder>t</system_reminder>"}]}`
		for range 2 {
			if diff := cmp.Diff(want, bodyOf(t, req, false)); diff != "" {
				t.Fatalf("%d messages (-want +got):\n%s", n, diff)
			}
		}
	}
}

func TestTheTailIsNotCachedWithAMessage(t *testing.T) {
	req := remotetest.History(1)
	before := bodyOf(t, req, false)
	with := *req
	with.Tail = "for this request only"
	bodyOf(t, &with, false)
	if after := bodyOf(t, req, false); after != before {
		t.Errorf("after a request with a tail the message is\n%s\nbefore it was\n%s", after, before)
	}
}

func streamed(req *model.Request) *remote.Query { return &remote.Query{Request: req, Stream: true} }

func BenchmarkRequest(b *testing.B) {
	remotetest.BenchmarkBody(b, func(turns int) func() [][]byte {
		q := streamed(remotetest.History(turns))
		return func() [][]byte { return fragments(q) }
	})
}

func TestIdsAndNamesOfOthersFitWhereTheyMust(t *testing.T) {
	long := "chatcmpl-tool-" + strings.Repeat("0123456789abcdef", 2)
	req := &model.Request{Model: "m", Messages: []*model.Message{
		{Role: model.Assistant, Calls: []model.Call{{ID: long, Name: "functions.bash"}, {ID: "call_1", Name: "bash"}}},
		{Role: model.ToolRole, CallID: long},
		{Role: model.ToolRole, CallID: "call_1"},
	}}
	for host, as := range map[string]bool{"localhost:8000": true, "api.openai.com": false, "x.openai.azure.com": false} {
		body := string(bytes.Join(fragments(&remote.Query{Request: req, Host: host}), nil))
		if n := strings.Count(body, `"`+long+`"`); (n == 2) != as || (n == 0) == as {
			t.Errorf("%s gets %d times an id as it is: %s", host, n, body)
		}
		if strings.Contains(body, "functions.bash") != as || strings.Count(body, `"call_1"`) != 2 {
			t.Errorf("%s gets %s", host, body)
		}
	}
}
