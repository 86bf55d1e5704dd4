package responses_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

var subject = remotetest.Subject{
	New:            responses.New,
	Serve:          responsestest.Serve,
	Path:           "/v1/responses",
	KeyHeader:      "Authorization",
	KeyPrefix:      "Bearer ",
	Arrived:        arrived,
	KeepsReasoning: true,
	Reply:          `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`,
	Stream: func(texts ...string) string {
		events := []string{`{"type":"response.created","response":{"model":"m"}}`, `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","content":[]}}`}
		for _, text := range texts {
			events = append(events, fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"delta":%q}`, text))
		}
		return streamOf(append(events, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)...)
	},
	Failure: func(kind, code, message string) string {
		return string(remotetest.Object{"type": "error", "code": cmp.Or(code, kind), "message": message}.Encode())
	},
	Finished: 5, // start, begin of the item, text, its end, the end
	Events:   5,
}

// streamOf makes a stream of events.
func streamOf(events ...string) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "data: %s\n\n", e)
	}
	return s.String()
}

func TestOpenAIResponses(t *testing.T) { remotetest.Run(t, subject) }

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
	got.Messages[n] = &model.Message{Role: model.User, Text: got.Messages[n].Text + tail, Images: got.Messages[n].Images}
	return &got
}

func TestAzureHasItsOwnRoutes(t *testing.T) {
	var got []string
	s, _ := subject.Client(t, remotetest.Says("x"), remotetest.Always(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		got = append(got, r.URL.String()+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
		next.ServeHTTP(w, r)
	}), remote.Config{})
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	for version, want := range map[string]string{"": "/openai/v1/responses k", "2025-04-01-preview": "/openai/responses?api-version=2025-04-01-preview k"} {
		got = nil
		c := responses.New(responses.Config{BaseURL: strings.TrimSuffix(s.URL, "/v1"), APIKey: "k", Azure: &remote.Azure{APIVersion: version}, Transport: transport})
		if _, err := c.Ask(t.Context(), remotetest.Hello, nil); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("version %q: the request went to %q, want %q", version, got, want)
		}
	}
}

func TestStories(t *testing.T) { remotetest.RunStories(t, subject, "testdata/stories") }
