package turn_test

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/turn"
)

func TestWhatASchemaMarksAsSecretIsRedacted(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"user":{"type":"string"},
		"pin":{"type":"integer","writeOnly":true},
		"password":{"type":"string","format":"password"},
		"accounts":{"type":"array","items":{"type":"object","properties":{"key":{"format":"password"},"name":{}}}},
		"nested":{"type":"object","properties":{"key":{"format":"password"}}}}}`
	for content, want := range map[string]string{
		`{"user":"me"}`:                              `{"user":"me"}`,
		`{ "user": "password" }`:                     `{ "user": "password" }`, // the same bytes if there is nothing to remove
		`{"user":"me","password":"x"}`:               `{"password":"(removed)","user":"me"}`,
		`{"pin":1234,"more":[1]}`:                    `{"more":[1],"pin":"(removed)"}`,
		`{"accounts":[{"key":"x","name":"a"},{},5]}`: `{"accounts":[{"key":"(removed)","name":"a"},{},5]}`,
		`{"nested":{"key":{"deep":"x"}}}`:            `{"nested":{"key":"(removed)"}}`,
		`["password"]`:                               `["password"]`,
		``:                                           ``,
		`null`:                                       `null`,
	} {
		got, secret := turn.Redact(json.RawMessage(schema), json.RawMessage(content))
		if string(got) != want || secret != (want != content) {
			t.Errorf("%s is recorded as %s, %v; want %s", content, got, secret, want)
		}
	}
	for _, schema := range []string{``, `null`, `[]`, `{"properties":[]}`, `{"properties":{"a":7}}`} {
		if got, secret := turn.Redact(json.RawMessage(schema), json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` || secret {
			t.Errorf("with the schema %q it is %s, %v", schema, got, secret)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"format":"password"}}}`), []byte(`{"a":"b"}`))
	f.Add([]byte(`{"items":{"writeOnly":true}}`), []byte(`[1]`))
	f.Fuzz(func(t *testing.T, schema, content []byte) {
		if got, secret := turn.Redact(schema, content); secret && !json.Valid(got) {
			t.Errorf("%q is no JSON", got)
		}
	})
}
