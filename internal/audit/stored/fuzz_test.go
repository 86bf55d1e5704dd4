package stored

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Whatever the bytes are, an envelope is read as it was written, or refused.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"type":"session.idle","id":"a","timestamp":"2026-11-15T14:57:03.569Z","parentId":null,"ephemeral":true,"data":{"totals":{}}}`,
		`{"type":"abort","id":"a","timestamp":"2026-11-15T14:57:03.569Z","parentId":"b","agentId":"c","data":{}}`,
		`{"type":"abort","id":"a","timestamp":"2026-11-15T14:57:03.569Z","parentId":"b","data":{}} `,
		`{"type":"abort","id":"a","timestamp":"2026-11-15T14:57:03,569Z","parentId":"b","data":{}}`, `{}`, ``, `{"type":"`,
		"{\"type\":\"a\x00b\",\"id\":\"a\",\"timestamp\":\"2026-11-15T14:57:03.569Z\",\"parentId\":null,\"data\":{}}",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(7, line)
		if err != nil {
			return
		}
		if !json.Valid(line) {
			t.Fatalf("%q is read as an event, and is no JSON", line)
		}
		parent, marks := "null", ""
		if e.Parent != "" {
			parent = `"` + e.Parent + `"`
		}
		if e.Ephemeral {
			marks = `,"ephemeral":true`
		}
		if e.Agent != "" {
			marks += `,"agentId":"` + e.Agent + `"`
		}
		again := fmt.Sprintf(`{"type":"%s","id":"%s","timestamp":"%s","parentId":%s%s,"data":%s}`, e.Type, e.ID, e.Time.Format(timeLayout), parent, marks, e.Data)
		if again != string(line) {
			t.Fatalf("%q is read as %q", line, again)
		}
	})
}

// Whatever the bytes are, a line of a journal is read or refused.
func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`ca84b179 exited bytes="10" stdout="6" lines="2" kept="10" status="768" time="1794725254575379974"`))
	f.Add([]byte("00000000 "))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, ok := ParseEntry(line); ok && e.Kind == "" {
			t.Fatalf("%q is read as an entry without a kind", line)
		}
	})
}
