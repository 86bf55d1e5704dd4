package anthropic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

var subject = remotetest.Subject{
	New:            anthropic.New,
	Serve:          anthropictest.Serve,
	Path:           "/v1/messages",
	KeyHeader:      "X-Api-Key",
	Arrived:        arrived,
	KeepsReasoning: true,
	Reply:          `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`,
	Stream: func(texts ...string) string {
		events := []string{`{"type":"message_start","message":{"model":"m"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`}
		for _, text := range texts {
			events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))
		}
		return streamOf(append(events, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)...)
	},
	Failure: func(kind, code, message string) string {
		return string(remotetest.Object{"type": "error", "error": remotetest.Object{"type": kind, "code": code, "message": message}}.Encode())
	},
	Finished: 6, // start, ping, begin of the block, text, its end, end of the message, end of all
	Events:   7,
}

// streamOf makes a stream of events.
func streamOf(events ...string) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "data: %s\n\n", e)
	}
	return s.String()
}

func TestAnthropicMessages(t *testing.T) { remotetest.Run(t, subject) }

// arrived is the request as the wire carries it: nothing is blank, and the tail
// is text.
func arrived(req *model.Request) *model.Request {
	got := *req
	got.Tail, got.Messages = "", nil
	if req.Model != "claude-sonnet" {
		got.ReasoningEffort = "" // the effort is sent as a budget, for which there is no room
	}
	if blank(got.System) {
		got.System = ""
	}
	for _, m := range req.Messages {
		fit := &model.Message{Role: m.Role, Text: m.Text, Images: m.Images, Calls: m.Calls, CallID: m.CallID, Failed: m.Failed}
		switch {
		case !blank(m.Text):
		case m.Role == model.ToolRole || len(m.Images)+len(m.Calls) > 0:
			fit.Text = ""
		default:
			fit.Text = "(empty)"
		}
		got.Messages = append(got.Messages, fit)
	}
	if req.Tail == "" {
		return &got
	}
	tail := "<system_reminder>" + req.Tail + "</system_reminder>"
	if n := len(got.Messages); n > 0 && got.Messages[n-1].Role == model.User {
		got.Messages[n-1].Text += "\n\n" + tail
		return &got
	}
	got.Messages = append(got.Messages, &model.Message{Role: model.User, Text: tail})
	return &got
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func TestTheHeaderNamesTheVersionOfTheAPI(t *testing.T) {
	for name, test := range map[string]struct {
		model, effort string
		beta          bool
	}{
		"plain":      {"claude-sonnet-4-5", "", false},
		"budget":     {"claude-sonnet-4-5", "low", true},
		"effort":     {"claude-opus-4-7", "low", false},
		"no thought": {"claude-3-5-haiku", "low", false},
	} {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			_, c := subject.Client(t, remotetest.Says("x"), remotetest.Always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				got = r.Header.Clone()
				next.ServeHTTP(w, r)
			}), remote.Config{})
			req := *remotetest.Hello
			req.Model, req.ReasoningEffort = test.model, test.effort
			if _, err := c.Ask(t.Context(), &req, nil); err != nil {
				t.Fatal(err)
			}
			if got.Get("Anthropic-Version") != "2023-06-01" || (got.Get("Anthropic-Beta") != "") != test.beta {
				t.Errorf("the header is %v", got)
			}
		})
	}
}

func TestTheVersionIsInThePathOnce(t *testing.T) {
	var paths []string
	s, _ := subject.Client(t, remotetest.Says("x"), remotetest.Always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		paths = append(paths, r.URL.Path)
		next.ServeHTTP(w, r)
	}), remote.Config{})
	host := strings.TrimSuffix(s.URL, "/v1")
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	for base, want := range map[string]string{"": "/v1/messages", "/": "/v1/messages", "/v1": "/v1/messages", "/v1/": "/v1/messages", "/api/anthropic": "/api/anthropic/v1/messages"} {
		paths = nil
		if _, err := anthropic.New(anthropic.Config{BaseURL: host + base, Transport: transport}).Ask(t.Context(), remotetest.Hello, nil); err != nil {
			t.Fatal(err)
		}
		if len(paths) != 1 || paths[0] != want {
			t.Errorf("with base URL %q the requests go to %q, want %s", base, paths, want)
		}
	}
}

func TestAzureIsRefused(t *testing.T) {
	_, err := anthropic.New(anthropic.Config{BaseURL: "https://x.openai.azure.com", Azure: new(remote.Azure)}).Ask(t.Context(), remotetest.Hello, nil)
	remotetest.WantError(t, err, model.KindNotFound)
}

func TestStories(t *testing.T) { remotetest.RunStories(t, subject, "testdata/stories") }
