package jsonrpc

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseTellsTheKindsOfMessageApart(t *testing.T) {
	tests := map[string]struct {
		body string
		want Message
	}{
		"request":            {`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[1,"}"]}}`, Message{ID: raw(`7`), Method: "m", Params: raw(`{"a":[1,"}"]}`)}},
		"any order, spaces":  {" {\n\"params\" : { } , \"method\":\"m\",\"id\" : \"x\\\"y\" } ", Message{ID: raw(`"x\"y"`), Method: "m", Params: raw(`{ }`)}},
		"no version":         {`{"id":-1.5,"method":"m"}`, Message{ID: raw(`-1.5`), Method: "m"}},
		"null params":        {`{"id":1,"method":"m","params":null}`, Message{ID: raw(`1`), Method: "m"}},
		"no positional":      {`{"id":1,"method":"m","params":[]}`, Message{ID: raw(`1`), Method: "m"}},
		"positional, spaces": {`{"id":1,"method":"m","params":[ ]}`, Message{ID: raw(`1`), Method: "m"}},
		"positional null":    {`{"id":1,"method":"m","params":[ null ]}`, Message{ID: raw(`1`), Method: "m"}},
		"positional object":  {`{"id":1,"method":"m","params":[ {"a":"]"} ]}`, Message{ID: raw(`1`), Method: "m", Params: raw(`{"a":"]"}`)}},
		"positional notice":  {`{"method":"m","params":[{}]}`, Message{Method: "m", Params: raw(`{}`)}},
		"several positional": {`{"id":1,"method":"m","params":[{},null]}`, Message{ID: raw(`1`), Method: "m", Params: raw(`[{},null]`)}},
		"positional text":    {`{"id":1,"method":"m","params":["{}"]}`, Message{ID: raw(`1`), Method: "m", Params: raw(`["{}"]`)}},
		"nested positional":  {`{"id":1,"method":"m","params":[[{}]]}`, Message{ID: raw(`1`), Method: "m", Params: raw(`[[{}]]`)}},
		"escaped names":      {`{"\u0069d":1,"meth\u006fd":"\u006d"}`, Message{ID: raw(`1`), Method: "m"}},
		"notification":       {`{"method":"m","params":{}}`, Message{Method: "m", Params: raw(`{}`)}},
		"answer":             {`{"id":1,"result":{"ok":true}}`, Message{ID: raw(`1`), Result: raw(`{"ok":true}`)}},
		"void answer":        {`{"id":1,"result":null}`, Message{ID: raw(`1`), Result: raw(`null`)}},
		"answer, null error": {`{"id":1,"result":5,"error":null}`, Message{ID: raw(`1`), Result: raw(`5`)}},
		"refusal":            {`{"id":1,"error":{"code":1}}`, Message{ID: raw(`1`), Err: raw(`{"code":1}`)}},
		"refusal of nothing": {`{"id":null,"error":{"code":1}}`, Message{ID: raw(`null`), Err: raw(`{"code":1}`)}},
		"last one counts":    {`{"id":1,"id":2,"method":"a","method":"b"}`, Message{ID: raw(`2`), Method: "b"}},
		"unknown members":    {`{"id":1,"x":{"method":"no"},"method":"m","y":"]"}`, Message{ID: raw(`1`), Method: "m"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if !same(got, test.want) {
				t.Errorf("got %s, want %s", show(got), show(test.want))
			}
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func same(a, b Message) bool {
	return a.Method == b.Method && sameRaw(a.ID, b.ID) && sameRaw(a.Params, b.Params) &&
		sameRaw(a.Result, b.Result) && sameRaw(a.Err, b.Err)
}

func sameRaw(a, b json.RawMessage) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func show(m Message) string {
	return strings.Join([]string{m.Method, string(m.ID), string(m.Params), string(m.Result), string(m.Err)}, " | ")
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		body, want, id string
		code           int
	}{
		"not JSON":          {`{"id":1,`, "not JSON", "", CodeParse},
		"empty":             {` `, "not JSON", "", CodeParse},
		"two values":        {`{} {}`, "not JSON", "", CodeParse},
		"too deep":          {strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "not JSON", "", CodeParse},
		"batch":             {` [{"id":1,"method":"m"}]`, "batches are not supported", "", CodeInvalidRequest},
		"text":              {`"hello"`, "neither a request nor an answer", "", CodeInvalidRequest},
		"nothing in it":     {`{}`, "neither a request nor an answer", "", CodeInvalidRequest},
		"only an id":        {`{"id":4}`, "neither a request nor an answer", "4", CodeInvalidRequest},
		"answer without id": {`{"result":1}`, "no id", "", CodeInvalidRequest},
		"method not a name": {`{"id":4,"method":5}`, "must be a name", "4", CodeInvalidRequest},
		"empty method":      {`{"id":4,"method":""}`, "must be a name", "4", CodeInvalidRequest},
		"id is an object":   {`{"id":{},"method":"m"}`, "must be a string or a number", "", CodeInvalidRequest},
		"id is true":        {`{"id":true,"method":"m"}`, "must be a string or a number", "", CodeInvalidRequest},
		"id is null":        {`{"id":null,"method":"m"}`, "must be a string or a number", "", CodeInvalidRequest},
		"other version":     {`{"jsonrpc":"1.0","id":4,"method":"m"}`, `only "2.0" is spoken`, "4", CodeInvalidRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := Parse([]byte(test.body))
			if err == nil || err.Code != test.code || !strings.Contains(err.Message, test.want) {
				t.Errorf("error %+v, want %d with %q", err, test.code, test.want)
			}
			if string(m.ID) != test.id {
				t.Errorf("id %q, want %q", m.ID, test.id)
			}
		})
	}
}

func TestFailureKeepsAnErrorThatIsNotOne(t *testing.T) {
	if got := (Message{Err: raw(`"broken"`)}).Failure(); got.Message != `"broken"` || got.Code != CodeInternal {
		t.Errorf("got %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":[1,"}"]}}`))
	f.Add([]byte(`{"\u0069d":"\\\"","result":[{},"]",null],"error":null}`))
	f.Add([]byte(`[1,2]`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, body []byte) {
		Scan(body) // whatever it is: no panic
		m, fault := Parse(body)
		if (fault != nil && fault.Code == CodeParse) == json.Valid(body) {
			t.Fatalf("%q: valid is %v, error is %v", body, json.Valid(body), fault)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return
		}
		got := make(map[string]json.RawMessage)
		for key, value := range Members(body) {
			got[string(key)] = value
		}
		if utf8.Valid(body) && !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("%q: got %q, want %q", body, got, want)
		}
		if fault == nil && m.Params != nil && !bytes.Equal(m.Params, want["params"]) {
			t.Fatalf("%q: params %q, want %q", body, m.Params, want["params"])
		}
	})
}
