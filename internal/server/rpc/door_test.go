package rpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/server/gate"
	"github.com/abide-run/abide/internal/server/rpc"
)

func TestBeforeTheTokenOnlySmallMessagesAreRead(t *testing.T) {
	r := newTestServer(t)
	params := map[string]any{"message": strings.Repeat("x", gate.MaxFrame)}
	outside := r.dial(rpc.Door{Token: "secret"})
	if err := outside.Call(t.Context(), api.Ping, params, nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a large message without the token: %v", err)
	}
	admitted := 0
	inside := r.connect(rpc.Door{Token: "secret", Admitted: func() { admitted++ }})
	var pong api.PingResult
	inside.must(api.Ping, params, &pong)
	if len(pong.Message) < gate.MaxFrame || admitted != 1 {
		t.Errorf("%d bytes; admitted %d times", len(pong.Message), admitted)
	}
}

// A process of ours shows the token of the data folder once. Its client may have another one.
func TestAProcessOfOursShowsTheTokenOnce(t *testing.T) {
	r := newTestServer(t)
	door := rpc.Door{Token: "secret", Private: true}
	relay := r.dial(door)
	wait := func(token string) error {
		return relay.Call(t.Context(), api.Connect, api.ConnectParams{Token: token}, nil)
	}
	fault, _ := wait("guess").(*jsonrpc.Error)
	if fault == nil || fault.Code != api.CodeAuthenticationFailed || !strings.Contains(fault.Message, "it may be an older version of abide than the engine (test)") {
		t.Errorf("a wrong token: %v", fault)
	}
	if err := relay.Call(t.Context(), api.Ping, nil, nil); err == nil || err.Error() != "AUTHENTICATION_REQUIRED" {
		t.Errorf("before the token: %v", err)
	}
	large := strings.Repeat("x", 2*gate.MaxFrame)
	if err := wait("secret"); err != nil {
		t.Fatal(err)
	}
	relay.must(api.Connect, map[string]any{"abide": map[string]any{"defaults": map[string]any{"env": []string{large}}}}, nil)
	if err := wait("of its client"); err != nil {
		t.Errorf("the connect of its client: %v", err)
	}
}

// A client that waits for events holds nothing that others need, however many it waits for.
func TestReadsThatWaitDoNotKeepOthersFromReading(t *testing.T) {
	r := newTestServer(t)
	p := r.connect(rpc.Door{})
	p.must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	var page api.LogReadResult
	p.must(api.EventLogRead, map[string]any{"sessionId": "s"}, &page)
	waiting := make(chan error, 8)
	for range cap(waiting) {
		go func() {
			waiting <- p.Call(t.Context(), api.EventLogRead, map[string]any{"sessionId": "s", "cursor": page.Cursor, "waitMs": 30_000, "types": []string{"session.warning"}}, nil)
		}()
	}
	for range 20 {
		var all json.RawMessage
		p.must(api.SessionGetMessages, map[string]any{"sessionId": "s"}, &all)
	}
	p.Close()
	for range cap(waiting) {
		<-waiting
	}
}
