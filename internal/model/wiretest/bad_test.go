package wiretest_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		chat:     `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":IN,"completion_tokens":OUT,"prompt_tokens_details":[]}}`,
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
		for _, usage := range []string{`"lots"`, "[]", "7", "[[[]]]"} {
			at := strings.Index(template, `"usage":`) + len(`"usage":`)
			_, got, err := ask(t, wire, "other", long(1), template[:at]+usage+"}")
			if err != nil || got.Text != "x" || got.Usage != (model.Usage{}) {
				t.Errorf("%s with the usage %s: %+v, %v", wire, usage, got, err)
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

// A stream is a transport to a server that makes one piece of a stream after the other, and
// never ends.
type stream struct {
	piece func(i int) string
	i     int
	rest  []byte
}

func (s *stream) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(s)}, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		s.rest = []byte("data: " + s.piece(s.i) + "\n\n")
		s.i++
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// What a reply has of calls is bounded: each call has records of its own in the log, and
// the pieces of one are looked for among all.
func TestAReplyWithTooManyCallsIsGivenUp(t *testing.T) {
	numbered := func(format string) func(int) string {
		return func(i int) string { return strings.ReplaceAll(format, "N", strconv.Itoa(i)) }
	}
	whole := func(before, each, after string) func(int) string {
		return func(int) string { return before + strings.Repeat(each+",", 1500) + each + after }
	}
	for name, c := range map[string]struct {
		wire  string
		piece func(int) string
		most  int // number of pieces after which it has to be given up
		want  string
	}{
		"chat":      {chat, numbered(`{"choices":[{"delta":{"tool_calls":[{"index":N,"id":"cN","function":{"name":"x"}}]}}]}`), 1100, "more than 1000 calls"},
		"responses": {replies, numbered(`{"type":"response.output_item.added","output_index":N,"item":{"type":"function_call","call_id":"cN","name":"x"}}`), 1100, "more than 1000 calls"},
		"messages":  {messages, numbered(`{"type":"content_block_start","index":N,"content_block":{"type":"tool_use","id":"cN","name":"x"}}`), 1100, "more than 1000 calls"},
		"chat in one piece that ends": {chat, func(int) string {
			var calls []string
			for i := range 1500 {
				calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%[1]d","function":{"name":"x"}}`, i))
			}
			return `{"choices":[{"finish_reason":"tool_calls","delta":{"tool_calls":[` + strings.Join(calls, ",") + `]}}]}`
		}, 1, "more than 1000 calls"},
		"responses in one piece that ends": {replies, whole(`{"type":"response.completed","response":{"status":"completed","output":[`,
			`{"type":"function_call","call_id":"c","name":"x"}`, `]}}`), 1, "more than 1000 calls"},
		"a name in pieces": {chat, numbered(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"nameN"}}]}}]}`), 300, "longer than 1024 bytes"},
		"a long name":      {messages, numbered(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"` + strings.Repeat("x", 2000) + `"}}`), 1, "longer than 1024 bytes"},
	} {
		s := &stream{piece: c.piece}
		reply, err := wires[c.wire].open(remote.Config{BaseURL: "http://provider.test", Transport: s}).Ask(t.Context(), long(1), func(model.Delta) {})
		failure, _ := errors.AsType[*model.Error](err)
		if failure == nil || !failure.Garbled || !strings.Contains(failure.Message, c.want) || s.i > c.most+1 {
			t.Errorf("%s: after %d pieces: %+v, %v, want %q", name, s.i, reply, err, c.want)
		}
	}
}

func TestAWholeReplyWithTooManyCallsIsGivenUp(t *testing.T) {
	each := func(n int, call string) string { return strings.TrimSuffix(strings.Repeat(call+",", n), ",") }
	for wire, c := range map[string]struct{ call, reply string }{
		chat:     {`{"id":"c","function":{"name":"x"}}`, `{"choices":[{"message":{"tool_calls":[CALLS]},"finish_reason":"tool_calls"}]}`},
		replies:  {`{"type":"function_call","call_id":"c","name":"x"}`, `{"output":[CALLS],"status":"completed"}`},
		messages: {`{"type":"tool_use","id":"c","name":"x"}`, `{"content":[CALLS],"stop_reason":"tool_use"}`},
	} {
		_, got, err := ask(t, wire, "other", long(1), strings.ReplaceAll(c.reply, "CALLS", each(1000, c.call)))
		if err != nil || len(got.Calls) != 1000 {
			t.Errorf("%s with 1000 calls: %v", wire, err)
		}
		if _, _, err = ask(t, wire, "other", long(1), strings.ReplaceAll(c.reply, "CALLS", each(1001, c.call))); err == nil || !strings.Contains(err.Error(), "more than 1000 calls") {
			t.Errorf("%s with 1001 calls: %v", wire, err)
		}
	}
}

// The reason of a refusal arrives in pieces. If each of them copied those before it, a long
// one would take an hour.
func TestALongRefusalIsPutTogetherOnce(t *testing.T) {
	const pieces, size = 3000, 1000
	text := strings.Repeat("x", size)
	for wire, c := range map[string]struct{ piece, end string }{
		chat:    {`{"choices":[{"delta":{"refusal":"` + text + `"}}]}`, `{"choices":[{"finish_reason":"stop","delta":{}}]}`},
		replies: {`{"type":"response.refusal.delta","delta":"` + text + `"}`, `{"type":"response.completed","response":{"status":"completed"}}`},
	} {
		s := &stream{piece: func(i int) string {
			switch {
			case i < pieces:
				return c.piece
			case i == pieces:
				return c.end
			}
			return "[DONE]"
		}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reply, err := wires[wire].open(remote.Config{BaseURL: "http://provider.test", Transport: s}).Ask(t.Context(), long(1), func(model.Delta) {})
		runtime.ReadMemStats(&after)
		if err != nil || len(reply.Declined) != pieces*size {
			t.Errorf("%s: %v", wire, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 100*pieces*size {
			t.Errorf("%s: it takes %d MB of memory to read %d MB", wire, used>>20, pieces*size>>20)
		}
	}
}

// What is in every record of a call, or of a request, is short.
func TestLongIDsAndReasonsAreNotStored(t *testing.T) {
	long256 := strings.Repeat("c", 256)
	for wire, template := range map[string]string{
		chat:     `{"choices":[{"message":{"tool_calls":[{"id":"ID","function":{"name":"x"}}]},"finish_reason":"ID"}]}`,
		replies:  `{"output":[{"type":"function_call","call_id":"ID","name":"x"}],"status":"incomplete","incomplete_details":{"reason":"ID"}}`,
		messages: `{"content":[{"type":"tool_use","id":"ID","name":"x"}],"stop_reason":"ID"}`,
	} {
		for id, kept := range map[string]bool{long256: true, long256 + "c": false, strings.Repeat("c", 1<<20): false} {
			_, got, err := ask(t, wire, "other", long(1), strings.ReplaceAll(template, "ID", id))
			if err != nil {
				t.Fatalf("%s: %v", wire, err)
			}
			if is := got.Calls[0].ID; (is == id) != kept || len(is) > 256 || len(got.Finish) > 256 {
				t.Errorf("%s: the id has %d bytes of %d, the finish reason %d", wire, len(is), len(id), len(got.Finish))
			}
		}
	}
}

// People read the error, so it names no types of ours.
func TestAReplyThatIsNotUnderstoodIsDescribed(t *testing.T) {
	for wire, member := range map[string]string{chat: "choices", replies: "output", messages: "content"} {
		for reply, want := range map[string]string{
			" \n":                     "it is empty",
			"[]":                      "it is of the type array, which was not expected, in []",
			`"no"`:                    "it is of the type string, which was not expected",
			`{"` + member + `":"no"}`: "its member " + member + " is of the type string",
			`{"a":`:                   "it is not JSON",
		} {
			_, _, err := ask(t, wire, "other", long(1), reply)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go value") {
				t.Errorf("%s: %q: %v, want %q", wire, reply, err, want)
			}
		}
	}
}

// A model may be silent for minutes before it ends its reply. What it has counted follows at
// once, and is not missed.
func TestTheUsageAfterALongSilenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{piece: func(i int) string {
			switch i {
			case 0:
				return `{"choices":[{"delta":{"content":"x"}}]}`
			case 1:
				time.Sleep(4 * time.Minute) // the clock is that of the bubble
				return `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
			case 2:
				return `{"choices":[]}`
			case 3:
				return `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`
			}
			return "[DONE]"
		}}
		got, err := wires[chat].open(remote.Config{BaseURL: "http://provider.test", Transport: s}).Ask(t.Context(), long(1), func(model.Delta) {})
		if err != nil || got.Usage != (model.Usage{Input: 9, Output: 2}) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
