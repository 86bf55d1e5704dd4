package client

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

// Whatever arrives does no harm, and what another decoder understands is
// understood in the same way.
func FuzzDecodeEvent(f *testing.F) {
	for _, s := range []string{
		`{"sessionId":"s","seq":3,"event":{"type":"x","id":"1"}}`,
		`{"sessionId":"s","event":{"type":"x"}}`,
		`{"session\u0049d":"\u0073","event":{"type":"x"}}`,
		`{"sessionId":"a\"b","event":{"type":"x\\"}}`,
		`{"event":[],"seq":"3"}`, `null`, `{"sessionId":`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeEvent(b)
		var p api.EventParams
		if json.Unmarshal(b, &p) != nil || len(p.Event) == 0 {
			return
		}
		plain, err := json.Marshal(p) // each member once
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(plain, &p); err != nil {
			t.Fatal(err)
		}
		id, e, ok := decodeEvent(plain)
		if ok && (id != p.SessionID || e.Seq != p.Seq || string(e.Bytes) != string(p.Event)) {
			t.Errorf("decodeEvent(%s) = %q %d %s, want %q %d %s", plain, id, e.Seq, e.Bytes, p.SessionID, p.Seq, p.Event)
		}
	})
}
