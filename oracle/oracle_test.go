package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

// A reference is an SDK that our wires are compared with.
type reference struct {
	subject remotetest.Subject
	stories string
	// say decodes a body into the SDK's type for requests, and encodes that again.
	say func(body []byte) ([]byte, error)
	// hear sends a request to the server at this URL with the SDK.
	hear func(t *testing.T, url string, stream bool) heard
}

// heard is an answer as an SDK decodes it.
type heard struct {
	remotetest.Want
	err      error // error that the SDK reports
	status   int   // HTTP status of that error
	finished bool  // true if the reply is complete
}

var references = map[string]reference{"chat": chatCompletions, "responses": openaiResponses, "anthropic": anthropicMessages}

// inParts says why the SDK of OpenAI has no words for a story.
const inParts = "the SDK of OpenAI does not know the parts of a content in which Mistral sends reasoning"

// beyond are the stories that the SDK has no words for.
var beyond = map[string]string{"profile_mistral_thinking": inParts, "reasoning_in_parts": inParts}

func TestStoriesMeanTheSameToTheSDK(t *testing.T) {
	for name, j := range references {
		for _, story := range remotetest.ReadStories(t, j.stories) {
			t.Run(name+"/"+story.Name, func(t *testing.T) {
				if why, ok := beyond[story.Name]; ok {
					t.Skip(why)
				}
				for i, body := range story.Play(t, j.subject) {
					j.checkRequest(t, fmt.Sprint("request ", i+1), body)
				}
				for i := range story.Steps {
					j.checkReply(t, i+1, &story.Steps[i])
				}
			})
		}
	}
}

func TestTheSDKCouldHaveSentEveryRequest(t *testing.T) {
	for name, j := range references {
		t.Run(name, func(t *testing.T) {
			var sent []byte
			_, c := j.subject.Client(t, remotetest.Says("x"), remotetest.Options{Fault: func(_ int, body []byte) remotetest.Fault {
				sent = body
				return nil
			}}, remote.Config{})
			rapid.Check(t, func(t *rapid.T) {
				if _, err := c.Ask(context.Background(), remotetest.DrawRequest(t), nil); err != nil {
					t.Fatal(err)
				}
				j.checkRequest(t, "the request", sent)
			})
		})
	}
}

func TestTheSDKUnderstandsOurServers(t *testing.T) {
	want := &model.Reply{
		Text: "so it is, and it takes more than one piece to say so", Model: "m", Finish: "tool_calls",
		Calls: []model.Call{{ID: "a", Name: "bash", Arguments: json.RawMessage(`{"x":1}`)}, {ID: "b", Name: "view", Arguments: json.RawMessage("{}")}},
		Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5}, Reasoning: &model.Reasoning{Text: "hm", Opaque: "o", Encrypted: "e"},
	}
	m := remotetest.Ask(func(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) { return want, nil })
	for name, j := range references {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", stream ", stream), func(t *testing.T) {
				server, _ := j.subject.Client(t, m, remotetest.Options{}, remote.Config{})
				got := j.hear(t, strings.TrimSuffix(server.URL, "/v1"), stream)
				if got.err != nil || !got.finished {
					t.Fatalf("the SDK reports %v, finished %v", got.err, got.finished)
				}
				checkSame(t, 1, remotetest.Want{Text: want.Text, Model: "m", Finish: want.Finish, Calls: want.Calls, Usage: want.Usage, Reasoning: "hm"}, got.Want)
			})
		}
	}
}

// checkRequest fails if the SDK could not have sent this.
func (j reference) checkRequest(t rapid.TB, what string, body []byte) {
	t.Helper()
	var ours map[string]any
	if err := json.Unmarshal(body, &ours); err != nil {
		t.Fatal(err)
	}
	delete(ours, "stream") // the SDKs have another method for it
	want, err := json.Marshal(withoutNull(ours))
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.say(want)
	if err != nil {
		t.Fatalf("%s: the SDK does not understand %s: %v", what, body, err)
	}
	if diff := remotetest.DiffJSON(want, got); diff != "" {
		t.Errorf("%s: the SDK would say it in another way (-ours +theirs):\n%s", what, diff)
	}
}

// withoutNull removes members that are null or empty.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			v[key] = withoutNull(value)
		}
	case []any:
		for i := range v {
			v[i] = withoutNull(v[i])
		}
	}
	return v
}

// checkReply fails unless the SDK decodes an answer to what the story expects.
func (j reference) checkReply(t *testing.T, n int, step *remotetest.Step) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { step.Answer(w) }))
	defer server.Close()
	got := j.hear(t, server.URL, step.Stream)
	switch want := step.Want.Error; {
	case want != nil && want.Kind == model.KindStream:
		if got.err == nil && got.finished {
			t.Errorf("answer %d: the SDK takes %+v for a whole reply", n, got.Want)
		}
	case want != nil:
		if got.err == nil || got.status != want.Status || !strings.Contains(got.err.Error(), want.Says) && got.status == 0 {
			t.Errorf("answer %d: the SDK reports %v with status %d, want %+v", n, got.err, got.status, want)
		}
	case got.err != nil || !got.finished:
		t.Errorf("answer %d: the SDK reports %v, finished %v", n, got.err, got.finished)
	default:
		checkSame(t, n, step.Want, got.Want)
	}
}

// checkSame compares replies. Calls in a reply that was refused or cut off are ignored,
// because we do not make them.
func checkSame(t *testing.T, n int, ours, theirs remotetest.Want) {
	t.Helper()
	if ours.Finish == "refusal" || ours.Finish == "length" {
		ours.Calls, theirs.Calls = nil, nil
	}
	arguments := cmp.Comparer(func(a, b json.RawMessage) bool { return remotetest.DiffJSON(a, b) == "" })
	if diff := cmp.Diff(ours, theirs, arguments, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("answer %d means something else to the SDK (-ours +theirs):\n%s", n, diff)
	}
}

// roundTrip decodes a body into a type and encodes it again.
func roundTrip[T any](body []byte) ([]byte, error) {
	var params T
	if err := json.Unmarshal(body, &params); err != nil {
		return nil, err
	}
	return json.Marshal(params)
}

// paragraphs joins texts with blank lines.
type paragraphs struct {
	text  strings.Builder
	apart bool
}

func (p *paragraphs) add(text string) {
	if text == "" {
		return
	}
	if p.apart && p.text.Len() > 0 {
		p.text.WriteString("\n\n")
	}
	p.text.WriteString(text)
	p.apart = false
}
