package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

var subject = remotetest.Subject{
	New: openai.New,
	Serve: func(l net.Listener, m model.Model, o remotetest.Options) *remotetest.Server {
		return openaitest.Serve(l, m, openaitest.Options{Key: o.Key, Fault: o.Fault})
	},
	Path:      "/v1/chat/completions",
	KeyHeader: "Authorization",
	KeyPrefix: "Bearer ",
	Arrived:   arrived,
	Reply:     `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
	Stream: func(texts ...string) string {
		var deltas []string
		for _, text := range texts {
			deltas = append(deltas, fmt.Sprintf(`{"content":%q}`, text))
		}
		return streamOf(deltas...)
	},
	Failure: func(kind, code, message string) string {
		return string(remotetest.Object{"error": remotetest.Object{"type": kind, "code": code, "message": message}}.Encode())
	},
	Finished: 2, // the text, the finish, the usage, the end
	Events:   4,
}

func TestChatCompletions(t *testing.T) { remotetest.Run(t, subject) }

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

func TestTheChoicesOfAReplyArePartsOfOneMessage(t *testing.T) {
	want := &model.Reply{Text: "so", Finish: "tool_calls", Model: "m", Reasoning: &model.Reasoning{Text: "hm"}, Calls: []model.Call{
		{ID: "a", Name: "bash", Arguments: json.RawMessage(`{"x":1}`)}, {ID: "b", Name: "view", Arguments: json.RawMessage("{}")},
	}}
	m := remotetest.Ask(func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) { return want, nil })
	s := openaitest.NewServer(m, openaitest.Options{Split: true})
	defer s.Close()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	got, err := openai.New(openai.Config{BaseURL: s.URL, Transport: transport}).Ask(t.Context(), remotetest.Hello, nil)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(model.Reply{}, "RequestID"), cmpopts.IgnoreFields(model.Reasoning{}, "Opaque")); diff != "" || err != nil {
		t.Errorf("err = %v, reply differs (-want +got):\n%s", err, diff)
	}
}

func TestErrorsInWhatShouldBeAReplyAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		contentType, body string
		kind              model.Kind
		says              string
	}{
		"a reply that is an error": {"application/json", `{"error":{"message":"busy","code":429}}`, model.KindRateLimit, "busy"},
		"in the stream, by status": {"text/event-stream", "data: {\"error\":{\"message\":\"busy\",\"code\":502}}\n\n", model.KindOverloaded, "502: busy"},
		"after some text":          {"text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":\"broken\"}\n\n", model.KindStream, "broken"},
		"an end without a finish":  {"text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", model.KindStream, "before the model had finished"},
		"no choices":               {"application/json", `{"id":"x"}`, model.KindStream, "no choices"},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw(test.contentType, test.body)), openai.Config{})
			_, err := c.Ask(t.Context(), remotetest.Hello, func(model.Delta) {})
			if e := remotetest.WantError(t, err, test.kind); !strings.Contains(e.Message, test.says) {
				t.Errorf("%q is not in %s", test.says, e.Message)
			}
		})
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

// The words are those of OpenAI for its models since GPT-5.4.
func TestAModelThatCallsToolsOnAnotherAPISaysWhich(t *testing.T) {
	said := "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
	_, c := subject.Client(t, nil, remotetest.Always(remotetest.Status(400, said)), remote.Config{})
	_, err := c.Ask(t.Context(), remotetest.Hello, nil)
	e := remotetest.WantError(t, err, model.KindRequest)
	for _, says := range []string{"cannot call tools", `scheme = "responses"`, `wireApi "responses"`} {
		if !strings.Contains(e.Message, says) {
			t.Errorf("%q does not say %s", e.Message, says)
		}
	}
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
			_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw(test.contentType, test.body)), openai.Config{})
			req := *remotetest.Hello
			req.Messages = append([]*model.Message{
				{Role: model.Assistant, Calls: []model.Call{call("old", "x", "{}")}},
				{Role: model.ToolRole, CallID: "old"},
			}, remotetest.Hello.Messages...)
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
		"a refusal is text":          {"application/json", `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, model.Reply{Text: "no", Declined: "no", Model: "m"}},
		"JSON though stream was ask": {"application/json; charset=utf-8", `{"choices":[{"message":{"content":"a","reasoning":"hm"}}]}`, model.Reply{Text: "a", Model: "m", Reasoning: &model.Reasoning{Text: "hm"}}},
		"no DONE":                    {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"no content type":            {"", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"thoughts by three names": {"text/event-stream", `data: {"choices":[{"delta":{"reasoning_content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"reasoning":"b"}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"reasoning_text":"c"}}]}` + "\n\n" + end, model.Reply{Finish: "stop", Model: "m", Reasoning: &model.Reasoning{Text: "abc"}}},
		"several thoughts are one":     {"text/event-stream", `data: {"choices":[{"delta":{"reasoning_content":"a","reasoning":"a"}}]}` + "\n\n" + end, model.Reply{Finish: "stop", Model: "m", Reasoning: &model.Reasoning{Text: "a"}}},
		"more after the finish":        {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":null}]}` + "\n\ndata: [DONE]\n\n", model.Reply{Text: "ab", Finish: "stop", Model: "m"}},
		"nonsense after the finish":    {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end + "data: {oops\n\n", model.Reply{Text: "a", Finish: "stop", Model: "m"}},
		"written to the cache":         {"application/json", `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3}}}`, model.Reply{Text: "a", Model: "m", Usage: model.Usage{Input: 4, CacheRead: 2, CacheWrite: 3}}},
		"more cached than was there":   {"application/json", `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}`, model.Reply{Text: "a", Model: "m", Usage: model.Usage{CacheRead: 9}}},
		"usage in every chunk":         {"text/event-stream", `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n" + `data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n", model.Reply{Text: "ab", Finish: "stop", Model: "m", Usage: model.Usage{Input: 1, Output: 2}}},
		"the model is named only late": {"text/event-stream", `data: {"model":"","choices":[]}` + "\n\n" + `data: {"model":"m9","choices":[{"delta":{"content":"a"}}]}` + "\n\n" + end, model.Reply{Text: "a", Finish: "stop", Model: "m9"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw(test.contentType, test.body)), openai.Config{})
			var h remotetest.Pieces
			r, err := c.Ask(t.Context(), remotetest.Hello, h.Add)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, r); diff != "" {
				t.Errorf("reply differs (-want +got):\n%s", diff)
			}
			h.Check(t, r)
		})
	}
}

func TestStories(t *testing.T) { remotetest.RunStories(t, subject, "testdata/stories") }

func TestAzureHasItsOwnRoutes(t *testing.T) {
	var got []string
	s, _ := subject.Client(t, remotetest.Says("x"), remotetest.Always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		got = append(got, r.URL.String()+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
		next.ServeHTTP(w, r)
	}), openai.Config{})
	host := strings.TrimSuffix(s.URL, "/v1")
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	for name, test := range map[string]struct {
		config openai.Config
		want   string
	}{
		"v1":                  {openai.Config{BaseURL: host, APIKey: "k", Azure: new(remote.Azure)}, "/openai/v1/chat/completions k"},
		"with a slash":        {openai.Config{BaseURL: host + "/", APIKey: "k", Azure: new(remote.Azure)}, "/openai/v1/chat/completions k"},
		"with the route":      {openai.Config{BaseURL: host + "/openai/v1/", APIKey: "k", Azure: new(remote.Azure)}, "/openai/v1/chat/completions k"},
		"with half the route": {openai.Config{BaseURL: host + "/openai", APIKey: "k", Azure: new(remote.Azure)}, "/openai/v1/chat/completions k"},
		"behind a gateway":    {openai.Config{BaseURL: host + "/team", APIKey: "k", Azure: new(remote.Azure)}, "/team/openai/v1/chat/completions k"},
		"a version":           {openai.Config{BaseURL: host, APIKey: "k", Azure: &remote.Azure{APIVersion: "2024-10-21"}}, "/openai/deployments/my%2Fgpt%205/chat/completions?api-version=2024-10-21 k"},
		"a bearer token":      {openai.Config{BaseURL: host, APIKey: "k", BearerToken: "t", Azure: new(remote.Azure)}, "/openai/v1/chat/completions Bearer t"},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			test.config.Transport = transport
			c := openai.New(test.config)
			req := *remotetest.Hello
			req.Model = "my/gpt 5"
			if _, err := c.Ask(t.Context(), &req, nil); err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0] != test.want {
				t.Errorf("the request went to %q, want %q", got, test.want)
			}
			if name, _, err := c.DefaultModel(t.Context()); err == nil {
				t.Errorf("a resource of Azure said that its first model is %q", name)
			}
		})
	}
	_, err := openai.New(openai.Config{Azure: new(remote.Azure)}).Ask(t.Context(), remotetest.Hello, nil)
	remotetest.WantError(t, err, model.KindNotFound) // there is no resource of everybody
}

// TestAdviceNamesWhereASettingComesFrom checks that people who set variables are told which one, its
// value, and what a right one looks like, and that others are not told of variables they do not use.
// offlineTransport is a network that is down.
type offlineTransport struct{}

func (offlineTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.DNSError{Err: "no such host", Name: "api.openai.com", IsNotFound: true}
}

// A base URL that is the usual one is not compared with itself.
func TestTheUsualBaseURLIsSaidToBeThat(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "")
	_, err := openai.New(openai.Config{BaseURL: "https://api.openai.com/v1", APIKey: "k", Transport: offlineTransport{}}).Ask(t.Context(), remotetest.Hello, nil)
	remotetest.WantError(t, err, model.KindNetwork)
	if !strings.HasSuffix(err.Error(), "check the network and the base URL: it is https://api.openai.com/v1, the usual one") {
		t.Error(err)
	}
}

func TestAdviceNamesWhereASettingComesFrom(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	const settings = "in the provider's settings (api_key_env or api_key_command in the configuration)"
	for name, test := range map[string]struct {
		base, key       string // of the client
		envBase, envKey string
		kind            model.Kind
		want            string
	}{
		"no key":                {refuses.URL, "", refuses.URL, "", model.KindAuth, "set the API key in OPENAI_API_KEY"},
		"no key of a provider":  {refuses.URL, "", "", "", model.KindAuth, "set the API key " + settings},
		"a key":                 {refuses.URL, "k", refuses.URL, "k", model.KindAuth, "set a valid API key in OPENAI_API_KEY"},
		"a key of a provider":   {refuses.URL, "k", "", "other", model.KindAuth, "set a valid API key " + settings},
		"no server":             {gone.URL, "k", gone.URL, "k", model.KindNetwork, "and the base URL: OPENAI_BASE_URL is \"" + gone.URL + "\", and one that works looks like https://api.openai.com/v1"},
		"no server of provider": {gone.URL, "k", "", "", model.KindNetwork, "and the base URL: the base URL is \"" + gone.URL + "\", and one"},
		"no URL":                {"127.0.0.1:1", "k", "127.0.0.1:1", "k", model.KindNotFound, "OPENAI_BASE_URL is \"127.0.0.1:1\", and one that works looks like"},
		"no port":               {"http://127.0.0.1:99999", "k", "http://127.0.0.1:99999", "k", model.KindNotFound, "OPENAI_BASE_URL is \"http://127.0.0.1:99999\", and one that works looks like"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OPENAI_BASE_URL", test.envBase)
			t.Setenv("OPENAI_API_KEY", test.envKey)
			_, err := openai.New(openai.Config{BaseURL: test.base, APIKey: test.key, Transport: transport}).Ask(t.Context(), remotetest.Hello, nil)
			remotetest.WantError(t, err, test.kind)
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
