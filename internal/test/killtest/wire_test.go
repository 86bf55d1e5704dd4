package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/local"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
	"github.com/abide-run/abide/internal/model/scripted"
)

// A wire is a protocol of a provider.
type wire struct {
	provider api.Provider // the provider as a client configures it, without the address
	serve    func(model.Model, remotetest.Options) *remotetest.Server

	// seal adds to reasoning what only the provider understands. It is nil if
	// reasoning does not come back.
	seal func(t *model.Reasoning, secret string)
	// raw returns reasoning as it has to come back, byte for byte.
	raw func(t *model.Reasoning, streamed bool) []byte
}

// The protocols of providers.
var (
	chat      = &wire{provider: api.Provider{Type: "openai"}, serve: serveChat}
	anthropic = &wire{provider: api.Provider{Type: "anthropic"}, serve: anthropictest.NewServer, seal: sign, raw: block}
	responses = &wire{provider: api.Provider{Type: "openai", WireAPI: "responses"}, serve: responsestest.NewServer, seal: encrypt, raw: item}
)

func serveChat(m model.Model, o remotetest.Options) *remotetest.Server {
	return openaitest.NewServer(m, openaitest.Options{Key: o.Key, Fault: o.Fault})
}

func sign(t *model.Reasoning, secret string) { t.Opaque = secret }

func encrypt(t *model.Reasoning, secret string) { t.Encrypted = secret }

// block returns reasoning in the format of Anthropic Messages. The client has to join
// the pieces of a streamed one.
func block(t *model.Reasoning, streamed bool) []byte {
	if streamed {
		return fmt.Appendf(nil, `{"type":"thinking","thinking":%s,"signature":%s}`, remotetest.Encode(t.Text), remotetest.Encode(t.Opaque))
	}
	return remotetest.Object{"type": "thinking", "thinking": t.Text, "signature": t.Opaque}.Encode()
}

// item returns reasoning in the format of OpenAI Responses, which always arrives in
// one piece.
func item(t *model.Reasoning, _ bool) []byte {
	return remotetest.Object{
		"type": "reasoning", "id": "rs_local_0", "encrypted_content": t.Encrypted,
		"summary": []remotetest.Object{{"type": "summary_text", "text": t.Text}},
	}.Encode()
}

// source puts the scripted model at the other end of the wire.
func (w *wire) source(t *testing.T, s scenario) *modelSource {
	played, err := scripted.Load(writeScript(t, false))
	if err != nil {
		t.Fatal(err)
	}
	return w.to(t, played, func(n int) remotetest.Fault {
		switch {
		case s.fails && n == 1:
			return remotetest.Status(http.StatusInternalServerError, "out of order")
		case s.fails && n == 2:
			return remotetest.Status(http.StatusTooManyRequests, "too fast", "Retry-After", "0")
		}
		return nil
	})
}

// to puts a model in the parent at the other end of the wire. The API key is checked,
// because keys are stored outside the log.
func (w *wire) to(t *testing.T, m model.Model, fault func(n int) remotetest.Fault) *modelSource {
	v := &strictProvider{Model: m, wire: w, given: make(map[string]bool)}
	server := w.serve(v, remotetest.Options{Key: "key", Fault: func(n int, body []byte) remotetest.Fault {
		v.checkBytes(body)
		return fault(n)
	}})
	t.Cleanup(server.Close)
	provider := w.provider
	provider.BaseURL, provider.APIKey = server.URL, "key"
	return &modelSource{model: "m", provider: &provider, faults: v.faults, history: v.lastHistory, settle: server.Settle}
}

// A strictProvider adds reasoning to the answers of a model, and checks requests as
// strictly as the strictest provider: calls match results, and every answer comes
// back with its reasoning.
type strictProvider struct {
	model.Model
	wire *wire

	mu      sync.Mutex
	found   []string
	given   map[string]bool  // the reasoning of all answers, as it has to come back
	history []*model.Message // history of the last request, which is the longest
}

func (v *strictProvider) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	v.check(req.Messages)
	var pieces []model.Delta
	reply, err := v.Model.Ask(ctx, req, func(d model.Delta) { pieces = append(pieces, d) })
	if err != nil {
		return nil, err
	}
	reply.Reasoning = v.think(reply, on != nil)
	if on != nil {
		for _, piece := range local.Pieces(reply.Reasoning.Text) {
			on(model.Delta{Reasoning: piece})
		}
		for _, piece := range pieces {
			on(piece)
		}
	}
	return reply, nil
}

// think returns the reasoning for an answer, and remembers it.
func (v *strictProvider) think(r *model.Reply, streamed bool) *model.Reasoning {
	t := v.wire.thought(r.Text, r.Calls)
	if v.wire.raw != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.given[string(v.wire.raw(t, streamed))] = true
	}
	return t
}

// thought returns the reasoning for an answer. It is different for each answer, and
// has characters that encoders treat differently.
func (w *wire) thought(text string, calls []model.Call) *model.Reasoning {
	about := text
	for _, c := range calls {
		about += " " + c.ID
	}
	t := &model.Reasoning{Text: "Hm, \"<" + about + ">\" & no more?\n\tSo be it: \U0001F914 \\o/"}
	if w.seal != nil {
		w.seal(t, "EqQB+/"+local.Digest([]*model.Message{{Text: about}})+"==")
	}
	return t
}

func (v *strictProvider) fault(format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf(format, args...))
}

// check checks the history of a request.
func (v *strictProvider) check(history []*model.Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(history) >= len(v.history) { // the request of a killed victim may come late
		v.history = history
	}
	open := make(map[string]bool)
	for i, m := range history {
		if (m.Role == model.ToolRole) != open[m.CallID] || m.Role != model.ToolRole && len(open) > 0 {
			v.fault("message %d does not fit the calls %v that are open: %q", i+1, open, lines(history))
		}
		delete(open, m.CallID)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		if m.Role == model.Assistant {
			v.checkThought(m)
		}
	}
	if len(open) > 0 {
		v.fault("the calls %v have no results: %q", open, lines(history))
	}
}

// checkThought checks that an answer comes back with its own reasoning, if the wire
// returns reasoning.
func (v *strictProvider) checkThought(m *model.Message) {
	var want model.Reasoning
	if v.wire.seal != nil {
		want = *v.wire.thought(m.Text, m.Calls)
	}
	var got model.Reasoning
	if m.Reasoning != nil {
		got = *m.Reasoning
	}
	if got != want {
		v.fault("the answer %q came back with the thought %+v, want %+v", line(m), got, want)
	}
}

// checkBytes checks byte for byte the reasoning that comes back in a request.
func (v *strictProvider) checkBytes(body []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, raw := range thoughts(body) {
		if !v.given[string(raw)] {
			v.fault("a thought came back that was not given so: %s", raw)
		}
	}
}

// thoughts returns the reasoning in a request of any wire.
func thoughts(body []byte) []json.RawMessage {
	var req struct {
		Input    []json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal(body, &req) // the server says what is wrong with it
	items := req.Input
	for _, m := range req.Messages {
		var blocks []json.RawMessage
		_ = json.Unmarshal(m.Content, &blocks) // a content that is a text has no blocks
		items = append(items, blocks...)
	}
	return slices.DeleteFunc(items, func(raw json.RawMessage) bool {
		var item struct{ Type string }
		return json.Unmarshal(raw, &item) != nil || item.Type != "thinking" && item.Type != "reasoning"
	})
}

func (v *strictProvider) faults() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.found
}

// lastHistory returns the history of the last request, a line for each message.
func (v *strictProvider) lastHistory() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return lines(v.history)
}

func lines(history []*model.Message) (all []string) {
	for _, m := range history {
		all = append(all, line(m))
	}
	return all
}

// line returns a message without the parts that differ from run to run.
func line(m *model.Message) string {
	b := string(m.Role) + ":"
	if m.CallID != "" {
		b += " " + m.CallID
	}
	b += "\n" + local.Words(m.Text)
	for _, c := range m.Calls {
		b += fmt.Sprintf(" %s=%s%s", c.ID, c.Name, c.Arguments)
	}
	return b
}
