package remotetest_test

import (
	"net/http"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

// A brokenStream is what has arrived of a reply when the stream breaks off.
type brokenStream struct {
	new    func(remote.Config) *remote.Client
	serve  func(model.Model, remotetest.Options) *remotetest.Server
	sent   string
	counts *model.Usage // what the provider has counted until then; nil if it has said nothing
	kind   model.Kind
}

func serveChat(m model.Model, o remotetest.Options) *remotetest.Server {
	return openaitest.NewServer(m, openaitest.Options{Key: o.Key, Fault: o.Fault})
}

var brokenStreams = map[string]brokenStream{
	"anthropic, after the start": {
		new: anthropic.New, serve: anthropictest.NewServer, kind: model.KindStream,
		sent: `data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":25,"output_tokens":1,"cache_read_input_tokens":7,"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":6}}}}` +
			"\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` +
			"\n\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half"}}` + "\n\n",
		counts: &model.Usage{Input: 25, Output: 1, CacheRead: 7, CacheWrite: 9, CacheWrite1h: 6},
	},
	"anthropic, with an error": {
		new: anthropic.New, serve: anthropictest.NewServer, kind: model.KindOverloaded,
		sent: `data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":25,"output_tokens":1}}}` +
			"\n\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n",
		counts: &model.Usage{Input: 25, Output: 1},
	},
	"anthropic, before the start": {
		new: anthropic.New, serve: anthropictest.NewServer, kind: model.KindStream, sent: `data: {"type":"ping"}` + "\n\n",
	},
	"chat, which counts in each chunk": {
		new: openai.New, serve: serveChat, kind: model.KindStream,
		sent: `data: {"model":"m","choices":[{"index":0,"delta":{"content":"half"}}],"usage":{"prompt_tokens":30,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":10}}}` + "\n\n" +
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":" more"}}],"usage":{"prompt_tokens":30,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":10}}}` + "\n\n",
		counts: &model.Usage{Input: 20, Output: 3, CacheRead: 10},
	},
	"chat, which counts at the end": {
		new: openai.New, serve: serveChat, kind: model.KindStream, sent: `data: {"model":"m","choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n",
	},
	"responses, failed": {
		new: responses.New, serve: responsestest.NewServer, kind: model.KindOverloaded,
		sent: `data: {"type":"response.created","response":{"model":"m"}}` + "\n\n" +
			`data: {"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"oops"},"usage":{"input_tokens":40,"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4}}}}` + "\n\n",
		counts: &model.Usage{Input: 40, Output: 5, Reasoning: 4},
	},
}

// What the provider has counted before the reply broke off is in the error, which is of the
// same kind as without it.
func TestWhatABrokenStreamHasCountedIsInTheError(t *testing.T) {
	ends := map[string]func(){
		"ended": func() {},
		"reset": func() { panic(http.ErrAbortHandler) },
	}
	for name, b := range brokenStreams {
		for end, stop := range ends {
			t.Run(name+"/"+end, func(t *testing.T) {
				fault := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
					w.Header().Set("Content-Type", "text/event-stream")
					w.Header().Set("X-Request-Id", "req_1")
					_, _ = w.Write([]byte(b.sent))
					_ = http.NewResponseController(w).Flush()
					stop()
				}
				s := b.serve(remotetest.Says("x"), remotetest.Always(fault))
				transport := new(http.Transport)
				t.Cleanup(func() { transport.CloseIdleConnections(); s.Close() })
				reply, err := b.new(remote.Config{BaseURL: s.URL, Transport: transport}).Ask(t.Context(), remotetest.Hello, func(model.Delta) {})
				remotetest.WantError(t, err, b.kind)
				billed := model.BilledIn(err)
				switch {
				case reply != nil:
					t.Errorf("a broken stream gave the reply %+v", reply)
				case (billed == nil) != (b.counts == nil):
					t.Errorf("billed = %+v, want %+v", billed, b.counts)
				case billed != nil && (billed.Usage != *b.counts || billed.RequestID != "req_1"):
					t.Errorf("billed = %+v, want %+v", billed, *b.counts)
				}
			})
		}
	}
}
