package wiretest_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A server that compresses its reply although nobody asked for it may send one that
// expands without end. It is not expanded at all.
func TestACompressedReplyIsNotExpanded(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, zeros{}, 64<<20); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bomb.Bytes())
	}))
	defer server.Close()
	for wire := range wires {
		_, err := wires[wire].open(remote.Config{BaseURL: server.URL}).Ask(t.Context(), long(1), nil)
		if err == nil || !strings.Contains(err.Error(), "compressed (gzip)") {
			t.Errorf("%s: %v", wire, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// An endless is a transport to a server that says the same for ever.
type endless struct {
	piece string
	sent  int
}

func (e *endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(e)}, nil
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		more := copy(p[n:], e.piece[e.sent%len(e.piece):])
		n += more
		e.sent += more
	}
	return n, nil
}

func TestAnEndlessStreamIsGivenUp(t *testing.T) {
	e := &endless{piece: `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 200<<10) + `"}}]}` + "\n\n"}
	_, err := wires[chat].open(remote.Config{BaseURL: "http://provider.test", Transport: e}).Ask(t.Context(), long(1), func(model.Delta) {})
	if err == nil || !strings.Contains(err.Error(), "128 MiB") || e.sent > 160<<20 {
		t.Errorf("after %d bytes: %v", e.sent, err)
	}
}

func TestAWrongUsageDoesNotLoseTheReply(t *testing.T) {
	for wire, template := range map[string]string{
		chat:     `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":IN,"completion_tokens":OUT,"prompt_tokens_details":null}}`,
		replies:  `{"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"status":"completed","usage":{"input_tokens":IN,"output_tokens":OUT}}`,
		messages: `{"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":IN,"output_tokens":OUT}}`,
	} {
		for count, want := range map[string]int64{"7": 7, "7.0": 7, "7e0": 7, "-7": 0, `"7"`: 0, "null": 0, "{}": 0, "[1]": 0, "true": 0, "1e400": 0, "99999999999999999999": 0, "1099511627776": 1 << 40} {
			reply := strings.NewReplacer("IN", count, "OUT", count).Replace(template)
			_, got, err := ask(t, wire, "other", long(1), reply)
			if err != nil || got.Text != "x" || got.Usage.Input != want || got.Usage.Output != want {
				t.Errorf("%s with %s tokens: %+v, %v", wire, count, got, err)
			}
		}
		_, got, err := ask(t, wire, "other", long(1), wires[wire].x)
		if err != nil || got.Usage != (model.Usage{}) {
			t.Errorf("%s without usage: %+v, %v", wire, got, err)
		}
	}
}

func TestAnEmptyUsageDoesNotReplaceTheOneBeforeIt(t *testing.T) {
	stream := `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}` + "\n\n"
	for _, last := range []string{"{}", "null", `{"prompt_tokens":0,"completion_tokens":0}`, `{"prompt_tokens":-1}`} {
		s := record(t, stream+`data: {"choices":[],"usage":`+last+"}\n\ndata: [DONE]\n\n")
		s.contentType = "text/event-stream"
		got, err := wires[chat].open(configOf(s, "other")).Ask(t.Context(), long(1), func(model.Delta) {})
		if err != nil || got.Usage != (model.Usage{Input: 9, Output: 2}) {
			t.Errorf("with %s at the end: %+v, %v", last, got, err)
		}
	}
}

func TestAnotherModelThanAskedForIsNamedInFewWords(t *testing.T) {
	for wire, template := range map[string]string{
		chat:     `{"id":"NAME","model":"NAME","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
		replies:  `{"id":"NAME","model":"NAME","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"status":"completed"}`,
		messages: `{"id":"NAME","model":"NAME","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`,
	} {
		for name, want := range map[string]string{
			"another": "another", `a\u001b[31mb\nc`: "a[31mbc", strings.Repeat("ä", 5000): strings.Repeat("ä", 128), "": "claude-opus-4-6",
		} {
			_, got, err := ask(t, wire, "other", long(1), strings.ReplaceAll(template, "NAME", name))
			if err != nil || got.Model != want || len(got.RequestID) > 256 {
				t.Errorf("%s: the model is %q, want %q, the request %q; %v", wire, got.Model, want, got.RequestID, err)
			}
		}
	}
}
