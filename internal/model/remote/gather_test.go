package remote

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMembersGrowPieceByPiece(t *testing.T) {
	for name, test := range map[string]struct {
		pieces []string
		want   string
	}{
		"one piece stays as it is": {[]string{`{"a": {"z" : 1,  "b":[ ]}}`}, `,"a":{"z" : 1,  "b":[ ]}`},
		"texts":                    {[]string{`{"a":"x\""}`, `{"a":"y"}`}, `,"a":"x\"y"`},
		"what is repeated":         {[]string{`{"type":"t","id":"1"}`, `{"type":"t","id":"1"}`}, `,"id":"1","type":"t"`},
		"objects":                  {[]string{`{"a":{"b":"x","type":"t"}}`, `{"a":{"b":"y","c":1,"type":"t"}}`}, `,"a":{"b":"xy","c":1,"type":"t"}`},
		"lists":                    {[]string{`{"a":[1]}`, `{"a":[2,3]}`}, `,"a":[1,2,3]`},
		"elements with an index": {[]string{`{"a":[{"index":0,"type":"t","text":"x"}]}`, `{"a":[{"index":0,"type":"t","text":"y"}]}`, `{"a":[{"index":1,"type":"t","text":"z"}]}`},
			`,"a":[{"index":0,"text":"xy","type":"t"},{"index":1,"text":"z","type":"t"}]`},
		"another type is another element": {[]string{`{"a":[{"index":0,"type":"t"}]}`, `{"a":[{"index":0,"type":"u"}]}`}, `,"a":[{"index":0,"type":"t"},{"index":0,"type":"u"}]`},
		"another kind replaces":           {[]string{`{"a":"x"}`, `{"a":{"b":1}}`}, `,"a":{"b":1}`},
		"numbers are replaced":            {[]string{`{"a":1}`, `{"a":2}`}, `,"a":2`},
		"null is nothing":                 {[]string{`{"a":"x"}`, `{"a":null}`}, `,"a":"x"`},
	} {
		var g Gather
		for _, piece := range test.pieces {
			var members map[string]json.RawMessage
			if err := json.Unmarshal([]byte(piece), &members); err != nil {
				t.Fatal(err)
			}
			g.Add(members)
		}
		if got := string(g.Members().Append(nil, ",")); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAnEndlessMemberIsGivenUp(t *testing.T) {
	var g Gather
	piece := map[string]json.RawMessage{"a": json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for range 100 {
		g.Add(piece)
	}
	if g.Members() != nil || len(g.values["a"].append(nil)) > stateLimit {
		t.Error("more is kept than is allowed")
	}
}

func FuzzAnyPiecesBecomeJSON(f *testing.F) {
	f.Add([]byte(`{"a":[{"index":0,"t":"x"}]}`), []byte(`{"a":[{"index":0,"t":{"y":1}}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var g Gather
		for _, piece := range [][]byte{a, b, a} {
			var members map[string]json.RawMessage
			if json.Unmarshal(piece, &members) == nil {
				g.Add(members)
			}
		}
		for name, value := range g.Members() {
			if !json.Valid(value) {
				t.Errorf("%q became %s", name, value)
			}
		}
	})
}
