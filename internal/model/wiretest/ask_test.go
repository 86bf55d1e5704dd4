package wiretest_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/responses"
)

// The wires by the names that tests use.
const (
	chat     = "chat"
	replies  = "responses"
	messages = "messages"
)

// wires are the clients of the wires, and a reply of each that says x.
var wires = map[string]struct {
	open func(remote.Config) *remote.Client
	x    string
}{
	chat:     {openai.New, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`},
	replies:  {responses.New, `{"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"status":"completed"}`},
	messages: {anthropic.New, `{"content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`},
}

// A recorder is a server that keeps the last request and always gives the same reply.
type recorder struct {
	*httptest.Server
	body  map[string]json.RawMessage // nil if there was no request
	raw   []byte
	reply string

	contentType string // of the reply; JSON if empty
}

func record(t *testing.T, reply string) *recorder {
	r := &recorder{reply: reply}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.raw, _ = io.ReadAll(req.Body)
		r.body = nil
		if err := json.Unmarshal(r.raw, &r.body); err != nil {
			t.Errorf("the request is no JSON: %v: %s", err, r.raw)
		}
		w.Header().Set("Content-Type", cmp.Or(r.contentType, "application/json"))
		_, _ = io.WriteString(w, r.reply)
	}))
	t.Cleanup(r.Close)
	return r
}

// ask makes a request by a wire to a server that answers with reply, or x if it is empty.
func ask(t *testing.T, wire, as string, req *model.Request, reply string) (*recorder, *model.Reply, error) {
	t.Helper()
	w := wires[wire]
	if reply == "" {
		reply = w.x
	}
	s := record(t, reply)
	got, err := w.open(configOf(s, as)).Ask(t.Context(), req, nil)
	return s, got, err
}

func configOf(s *recorder, as string) remote.Config {
	return remote.Config{BaseURL: s.URL, Profile: as}
}

// same reports whether two texts are the same JSON.
func same(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("the test wants no JSON: %v: %s", err, want)
	}
	return json.Unmarshal(got, &a) == nil && string(encode(a)) == string(encode(b))
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
