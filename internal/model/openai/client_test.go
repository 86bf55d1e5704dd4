package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
)

// ask is a model made of a function.
type ask func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error)

func (f ask) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	return f(ctx, req, on)
}

// says answers everything with the same words.
func says(text string) model.Model {
	return ask(func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
		return &model.Reply{Text: text, Finish: "stop", Usage: model.Usage{Input: 5, Output: 2, CacheRead: 3, Reasoning: 1}}, nil
	})
}

var hello = &model.Request{Model: "m", System: "s", Messages: []*model.Message{{Role: model.User, Text: "hello"}}}

// serve starts a server and returns a client of it.
func serve(t testing.TB, m model.Model, o openaitest.Options, c openai.Config) (*openaitest.Server, *openai.Client) {
	s := openaitest.NewServer(m, o)
	c.BaseURL = s.URL
	if c.Transport == nil {
		c.Transport = newTransport(t)
	}
	t.Cleanup(s.Close)
	return s, openai.New(c)
}

func newTransport(t testing.TB) *http.Transport {
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// always gives every request the same fault.
func always(f openaitest.Fault) openaitest.Options {
	return openaitest.Options{Fault: func(int, []byte) openaitest.Fault { return f }}
}

// collect is a listener and what it heard.
type heard struct{ text, reasoning, arguments string }

func (h *heard) on(d model.Delta) {
	h.text += d.Text
	h.reasoning += d.Reasoning
	h.arguments += d.Arguments
}

var word = rapid.StringMatching(`[a-z"\\\n <>é世]{0,12}`)

func drawCalls(t *rapid.T, prefix string) []model.Call {
	var calls []model.Call
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		calls = append(calls, model.Call{
			ID:        fmt.Sprintf("%s%d", prefix, i),
			Name:      rapid.SampledFrom([]string{"bash", "view", "ask_user"}).Draw(t, "tool"),
			Arguments: json.RawMessage(fmt.Sprintf(`{"value":%q}`, word.Draw(t, "argument"))),
		})
	}
	return calls
}

// drawRequest makes a conversation: turns of a user, an assistant who may call
// tools, and their results.
func drawRequest(t *rapid.T) *model.Request {
	req := &model.Request{
		Model:           rapid.SampledFrom([]string{"m", "claude-sonnet", "a/b"}).Draw(t, "model"),
		System:          word.Draw(t, "system"),
		Tail:            word.Draw(t, "tail"),
		ReasoningEffort: rapid.SampledFrom([]string{"", "low"}).Draw(t, "effort"),
		MaxOutput:       rapid.IntRange(0, 9).Draw(t, "limit"),
	}
	if rapid.Bool().Draw(t, "tools") {
		req.Tools = &model.Tools{List: []model.Tool{{Name: "bash", Description: word.Draw(t, "description"), Parameters: json.RawMessage(`{"type":"object"}`)}}}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "turns") {
		user := &model.Message{Role: model.User, Text: word.Draw(t, "user")}
		if rapid.Bool().Draw(t, "picture") {
			user.Images = []model.Image{{MediaType: "image/png", Data: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "png")}}
		}
		assistant := &model.Message{Role: model.Assistant, Text: word.Draw(t, "assistant"), Calls: drawCalls(t, fmt.Sprintf("%d-", i))}
		req.Messages = append(req.Messages, user, assistant)
		for _, c := range assistant.Calls {
			req.Messages = append(req.Messages, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: word.Draw(t, "result")})
		}
	}
	if rapid.Bool().Draw(t, "ends with the user") {
		req.Messages = append(req.Messages, &model.Message{Role: model.User, Text: word.Draw(t, "user")})
	}
	return req
}

func drawReply(t *rapid.T, name string) *model.Reply {
	r := &model.Reply{
		Text: word.Draw(t, "text") + word.Draw(t, "text"), Calls: drawCalls(t, "new-"), Finish: rapid.SampledFrom([]string{"stop", "length"}).Draw(t, "finish"),
		Model: name, Usage: model.Usage{Input: 7, Output: int64(rapid.IntRange(0, 9).Draw(t, "output")), CacheRead: 3, Reasoning: 2},
	}
	if thought := word.Draw(t, "thought"); thought != "" {
		r.Reasoning = &model.Reasoning{Text: thought}
	}
	return r
}

// arrived is the request as the wire carries it: the tail is text.
func arrived(req *model.Request) *model.Request {
	got := *req
	got.Tail, got.Messages = "", append([]*model.Message(nil), req.Messages...)
	if req.Tail == "" {
		return &got
	}
	tail := "<system_reminder>" + req.Tail + "</system_reminder>"
	n := len(got.Messages) - 1
	if n < 0 || got.Messages[n].Role != model.User {
		got.Messages = append(got.Messages, &model.Message{Role: model.User, Text: tail})
		return &got
	}
	last := &model.Message{Role: model.User, Text: got.Messages[n].Text, Images: got.Messages[n].Images}
	if last.Text != "" && len(last.Images) == 0 {
		last.Text += "\n\n"
	}
	last.Text += tail
	got.Messages[n] = last
	return &got
}

var ignoreWire = cmp.Options{cmpopts.IgnoreUnexported(model.Message{}, model.Tools{}), cmpopts.EquateEmpty()}

func TestAskingOverTheWireIsAskingTheModel(t *testing.T) {
	var mu sync.Mutex
	var asked *model.Request
	var answer *model.Reply
	var piece int // how much of the text the model streams at a time
	m := ask(func(_ context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = req
		for text := answer.Text; on != nil && piece > 0 && text != ""; text = text[min(len(text), piece):] {
			on(model.Delta{Text: text[:min(len(text), piece)]})
		}
		return answer, nil
	})
	_, whole := serve(t, m, openaitest.Options{}, openai.Config{})
	_, split := serve(t, m, openaitest.Options{Split: true}, openai.Config{})
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		want := drawReply(t, req.Model)
		mu.Lock()
		answer, piece = want, rapid.SampledFrom([]int{0, 64}).Draw(t, "piece")
		mu.Unlock()
		for name, try := range map[string]struct {
			model  model.Model
			stream bool
		}{"whole": {whole, false}, "choices": {split, false}, "streamed": {whole, true}} {
			var h heard
			on := h.on
			if !try.stream {
				on = nil
			}
			got, err := try.model.Ask(context.Background(), req, on)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(arrived(req), asked, ignoreWire); diff != "" {
				t.Fatalf("%s: the model was asked something else (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(want, got, ignoreWire, cmpopts.IgnoreFields(model.Reply{}, "RequestID")); diff != "" {
				t.Fatalf("%s: another reply arrived (-want +got):\n%s", name, diff)
			}
			if try.stream {
				checkHeard(t, want, h)
			}
		}
	})
}

func checkHeard(t *rapid.T, want *model.Reply, got heard) {
	all := heard{text: want.Text}
	if want.Reasoning != nil {
		all.reasoning = want.Reasoning.Text
	}
	for _, c := range want.Calls {
		all.arguments += string(c.Arguments)
	}
	if got != all {
		t.Fatalf("the pieces are %+v, want %+v", got, all)
	}
}

func TestUsageIsSplitIntoNewAndCached(t *testing.T) {
	_, c := serve(t, says("x"), openaitest.Options{}, openai.Config{})
	for _, on := range []func(model.Delta){nil, func(model.Delta) {}} {
		r, err := c.Ask(t.Context(), hello, on)
		if err != nil {
			t.Fatal(err)
		}
		if want := (model.Usage{Input: 5, Output: 2, CacheRead: 3, Reasoning: 1}); r.Usage != want {
			t.Errorf("usage = %+v, want %+v", r.Usage, want)
		}
	}
}

// streamOf makes a stream of chunks with these deltas, and a proper end.
func streamOf(deltas ...string) string {
	var s strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&s, "data: {\"id\":\"r1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", d)
	}
	return s.String() + `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
}

func TestCallsArePutTogether(t *testing.T) {
	call := func(id, name, arguments string) model.Call {
		return model.Call{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
	}
	for name, test := range map[string]struct {
		contentType, body string
		want              []model.Call
	}{
		"by index, in turns": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}},{"index":1,"id":"b","function":{"name":"two","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]}`,
		), []model.Call{call("a", "one", `{"x":1}`), call("b", "two", "{}")}},
		"without index, by id": {"text/event-stream", streamOf(
			`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"two","arguments":"{"}}]}`,
			`{"tool_calls":[{"id":"a","function":{"arguments":"}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"arguments":"}"}}]}`,
		), []model.Call{call("a", "one", "{}"), call("b", "two", "{}")}},
		"without index and id, to the last one": {"text/event-stream", streamOf(
			`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"}"}}]}`,
		), []model.Call{call("a", "one", "{}")}},
		"the same index for every call": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"id":"b","function":{"name":"two","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`,
		), []model.Call{call("a", "one", "{}"), call("b", "two", "{}")}},
		"id and name with every piece": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"}"}}]}`,
		), []model.Call{call("a", "one", "{}")}},
		"the name in pieces": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"o"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"name":"ne","arguments":"{}"}}]}`,
		), []model.Call{call("a", "one", "{}")}},
		"no ids": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"function":{"name":"one","arguments":"{"}},{"index":1,"function":{"name":"two","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`,
		), []model.Call{call("", "one", "{}"), call("", "two", "{}")}},
		"no ids and no index": {"text/event-stream", streamOf(
			`{"tool_calls":[{"function":{"name":"one","arguments":"{}"}},{"function":{"name":"two","arguments":"{}"}}]}`,
		), []model.Call{call("", "one", "{}"), call("", "two", "{}")}},
		"the id of an earlier call": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"old","function":{"name":"one","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"id":"old","function":{"arguments":"}"}}]}`,
		), []model.Call{call("", "one", "{}")}},
		"arguments as an object": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":{"x":1}}}]}`,
		), []model.Call{call("a", "one", `{"x":1}`)}},
		"arguments that are no JSON": {"text/event-stream", streamOf(
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{oops"}}]}`,
		), []model.Call{call("a", "one", `{oops`)}},
		"the same index in several choices of a stream": {"text/event-stream",
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}]}},` +
				`{"index":1,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"two","arguments":"["}}]}}]}` + "\n\n" +
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}},` +
				`{"index":1,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"]"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
			[]model.Call{call("a", "one", "{}"), call("b", "two", "[]")}},
		"in several choices": {"application/json",
			`{"model":"m","choices":[{"message":{"content":"x"}},` +
				`{"message":{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{}"}}]}},` +
				`{"message":{"tool_calls":[{"id":"a","function":{"name":"two","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			[]model.Call{call("a", "one", "{}"), call("", "two", "{}")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := serve(t, nil, always(openaitest.Raw(test.contentType, test.body)), openai.Config{})
			req := *hello
			req.Messages = append([]*model.Message{
				{Role: model.Assistant, Calls: []model.Call{call("old", "x", "{}")}},
				{Role: model.ToolRole, CallID: "old"},
			}, hello.Messages...)
			told := make(map[string]string)
			r, err := c.Ask(t.Context(), &req, func(d model.Delta) { told[d.CallID+" "+d.CallName] += d.Arguments })
			if err != nil {
				t.Fatal(err)
			}
			checkCalls(t, test.want, r.Calls, told)
		})
	}
}

// checkCalls compares calls. An empty id stands for any new one.
func checkCalls(t *testing.T, want, got []model.Call, told map[string]string) {
	t.Helper()
	seen := map[string]bool{"": true, "old": true}
	for i := range min(len(want), len(got)) {
		id := got[i].ID
		if seen[id] {
			t.Errorf("call %d has the id %q, which is not its own", i, id)
		}
		seen[id] = true
		if text := told[id+" "+got[i].Name]; text != string(got[i].Arguments) && told[" "] == "" {
			t.Errorf("call %d was told as %q, want %q", i, text, got[i].Arguments)
		}
		if want[i].ID == "" {
			want[i].ID = id
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls differ (-want +got):\n%s", diff)
	}
}

func TestRepliesOfManyShapesAreUnderstood(t *testing.T) {
	const end = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	for name, test := range map[string]struct {
		contentType, body string
		want              model.Reply
	}{
		"choices are parts of one message": {"application/json", `{"id":"r1","model":"m2","choices":[{"message":{"content":"a"}},{"message":{"content":"b"},"finish_reason":"stop"}]}`,
			model.Reply{Text: "ab", Finish: "stop", Model: "m2", RequestID: "r1"}},
		"content in parts":           {"application/json", `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, model.Reply{Text: "ab", Model: "m"}},
		"a refusal is text":          {"application/json", `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, model.Reply{Text: "no", Model: "m"}},
		"JSON though stream was ask": {"application/json; charset=utf-8", `{"choices":[{"message":{"content":"a","reasoning":"hm"}}]}`, model.Reply{Text: "a", Model: "m", Reasoning: &model.Reasoning{Text: "hm"}}},
		"no DONE":                    {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"no content type":            {"", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"thoughts by three names": {"text/event-stream", `data: {"choices":[{"delta":{"reasoning_content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning":"b"}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"reasoning_text":"c"}}]}` + "\n\n" + end, model.Reply{Finish: "stop", Model: "m", Reasoning: &model.Reasoning{Text: "abc"}}},
		"several thoughts are one":     {"text/event-stream", `data: {"choices":[{"delta":{"reasoning_content":"a","reasoning":"a"}}]}` + "\n\n" + end, model.Reply{Finish: "stop", Model: "m", Reasoning: &model.Reasoning{Text: "a"}}},
		"more after the finish":        {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":null}]}` + "\n\ndata: [DONE]\n\n", model.Reply{Text: "ab", Finish: "stop", Model: "m"}},
		"nonsense after the finish":    {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end + "data: {oops\n\n", model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"more cached than was there":   {"application/json", `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}`, model.Reply{Text: "a", Model: "m", Usage: model.Usage{CacheRead: 9}}},
		"usage in every chunk":         {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n", model.Reply{Text: "ab", Finish: "stop", Model: "m", Usage: model.Usage{Input: 1, Output: 2}}},
		"the model is named only late": {"text/event-stream", `data: {"model":"","choices":[]}` + "\n\n" + `data: {"model":"m9","choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m9"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := serve(t, nil, always(openaitest.Raw(test.contentType, test.body)), openai.Config{})
			var h heard
			r, err := c.Ask(t.Context(), hello, h.on)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, r); diff != "" {
				t.Errorf("reply differs (-want +got):\n%s", diff)
			}
			if h.text != r.Text {
				t.Errorf("the pieces are %q, the text is %q", h.text, r.Text)
			}
		})
	}
}

func TestAStreamThatNobodyAskedForIsRead(t *testing.T) {
	_, c := serve(t, nil, always(openaitest.Raw("text/event-stream", streamOf(`{"content":"a"}`, `{"content":"b"}`))), openai.Config{})
	if r, err := c.Ask(t.Context(), hello, nil); err != nil || r.Text != "ab" {
		t.Errorf("reply %v, err = %v", r, err)
	}
}

func TestALineOfTenMegabytesIsRead(t *testing.T) {
	_, c := serve(t, nil, always(openaitest.LongLine(10<<20)), openai.Config{})
	r, err := c.Ask(t.Context(), hello, func(model.Delta) {})
	if err != nil || len(r.Text) != 10<<20 {
		t.Errorf("err = %v, want the whole text", err)
	}
}

func TestWhoAsksIsToldByTheStrongestToken(t *testing.T) {
	for name, test := range map[string]struct {
		config openai.Config
		want   string
	}{
		"nobody":           {openai.Config{}, ""},
		"key":              {openai.Config{APIKey: "k"}, "Bearer k"},
		"bearer, not key":  {openai.Config{APIKey: "k", BearerToken: "b"}, "Bearer b"},
		"provider, not it": {openai.Config{APIKey: "k", BearerToken: "b", Token: func(context.Context) (string, error) { return "t", nil }}, "Bearer t"},
		"header":           {openai.Config{APIKey: "k", Headers: map[string]string{"authorization": "Basic x"}}, "Basic x"},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			_, c := serve(t, says("x"), always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				got = r.Header.Clone()
				next.ServeHTTP(w, r)
			}), test.config)
			req := *hello
			req.Headers = map[string]string{"X-Extra": "1"}
			if _, err := c.Ask(t.Context(), &req, nil); err != nil {
				t.Fatal(err)
			}
			if a := got.Get("Authorization"); a != test.want {
				t.Errorf("Authorization is %q, want %q", a, test.want)
			}
			if got.Get("X-Extra") != "1" || got.Get("User-Agent") != "abide" {
				t.Errorf("headers are %v", got)
			}
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	_, c := serve(t, says("x"), openaitest.Options{}, openai.Config{})
	fresh := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh++
		}
	}})
	for _, on := range []func(model.Delta){nil, func(model.Delta) {}, func(model.Delta) {}, nil} {
		if _, err := c.Ask(ctx, hello, on); err != nil {
			t.Fatal(err)
		}
	}
	if fresh != 1 {
		t.Errorf("4 requests opened %d connections, want 1", fresh)
	}
}

func TestARedirectNeverTakesTheRequestElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the other host got a request")
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s, c := serve(t, nil, always(openaitest.Status(status, "moved", "Location", elsewhere.URL+"/v1/chat/completions")), openai.Config{APIKey: "secret-key"})
		_, err := c.Ask(t.Context(), hello, nil)
		e := wantError(t, err, model.KindNotFound)
		if !strings.Contains(e.Message, elsewhere.URL+"/v1;") && !strings.Contains(e.Message, elsewhere.URL+"/v1,") {
			t.Errorf("status %d: the message does not say where to: %s", status, e.Message)
		}
		if s.Requests() != 1 {
			t.Errorf("status %d: %d requests, want 1", status, s.Requests())
		}
	}
}

func TestARedirectThatDropsTheRequestIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			http.Redirect(w, r, "/v2/chat/completions", status)
		}))
		c := openai.New(openai.Config{BaseURL: server.URL, Transport: newTransport(t)})
		_, err := c.Ask(t.Context(), hello, nil)
		wantError(t, err, model.KindNotFound)
		if requests != 1 {
			t.Errorf("status %d: %d requests, want 1", status, requests)
		}
		server.Close()
	}
}

func TestARedirectAtTheSameHostIsFollowedWithTheWholeRequest(t *testing.T) {
	var bodies []string
	mux := http.NewServeMux()
	mux.Handle("/old/chat/completions", http.RedirectHandler("/v1/chat/completions", http.StatusPermanentRedirect))
	next := openaitest.Handler(says("x"), openaitest.Options{Key: "k", Fault: func(_ int, body []byte) openaitest.Fault {
		bodies = append(bodies, string(body))
		return nil
	}})
	mux.Handle("/v1/", next)
	server := httptest.NewServer(mux)
	defer server.Close()
	c := openai.New(openai.Config{BaseURL: server.URL + "/old/", APIKey: "k", Transport: newTransport(t)})
	if _, err := c.Ask(t.Context(), hello, nil); err != nil {
		t.Fatal(err)
	}
	if len(bodies) != 1 || !strings.Contains(bodies[0], `"hello"`) {
		t.Errorf("requests that arrived: %q", bodies)
	}
}

func TestManySessionsShareAClient(t *testing.T) {
	m := ask(func(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
		return &model.Reply{Text: "to " + req.Messages[len(req.Messages)-1].Text}, nil
	})
	_, c := serve(t, m, openaitest.Options{}, openai.Config{})
	shared := &model.Message{Role: model.User, Text: "common"}
	var sessions sync.WaitGroup
	for i := range 20 {
		sessions.Go(func() {
			name := fmt.Sprint("session ", i)
			req := &model.Request{Model: "m", Messages: []*model.Message{shared, {Role: model.User, Text: name}}}
			for range 5 {
				if r, err := c.Ask(t.Context(), req, func(model.Delta) {}); err != nil || r.Text != "to "+name {
					t.Errorf("%s got %v, %v", name, r, err)
				}
			}
		})
	}
	sessions.Wait()
}

func TestABaseURLThatMakesNoSenseIsReported(t *testing.T) {
	for _, base := range []string{"localhost:8080", "ftp://x/v1", "://", "/v1", "http://"} {
		_, err := openai.New(openai.Config{BaseURL: base}).Ask(t.Context(), hello, nil)
		wantError(t, err, model.KindRequest)
	}
}

func TestTheQueryOfTheBaseURLStays(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"x"}}]}`)
	}))
	defer server.Close()
	c := openai.New(openai.Config{BaseURL: server.URL + "/v1?api-version=1", Transport: newTransport(t)})
	if _, err := c.Ask(t.Context(), hello, nil); err != nil {
		t.Fatal(err)
	}
	if want := "/v1/chat/completions?api-version=1"; got != want {
		t.Errorf("the request went to %s, want %s", got, want)
	}
}

// wantError fails unless err is a *model.Error of this kind, in one sentence.
func wantError(t testing.TB, err error, kind model.Kind) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("err = %v (%T), want a *model.Error of kind %s", err, err, kind)
	}
	if e.Kind != kind {
		t.Errorf("kind = %s, want %s (%s)", e.Kind, kind, e.Message)
	}
	if strings.ContainsAny(e.Message, "\n\r") || len(e.Message) > 600 || !strings.Contains(e.Message, ";") {
		t.Errorf("the message is not one sentence with a way out: %q", e.Message)
	}
	return e
}
