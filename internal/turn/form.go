package turn

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
)

// Redacted stands in the log for what a person has typed as a secret.
const Redacted = "(removed)"

// Redact returns the content of a form without what the form marks as secret, and reports
// whether there was such a thing.
func (x Exchange) Redact(content json.RawMessage) (json.RawMessage, bool) {
	asked, err := event.As[event.ElicitationAskedData](x.Asked)
	if err != nil {
		return content, false
	}
	return Redact(asked.Schema, content)
}

// A formSchema is what decides whether a value of a form is secret. The marks are those of
// JSON Schema and OpenAPI.
type formSchema struct {
	Format     string                     `json:"format"` // "password" for a secret
	WriteOnly  bool                       `json:"writeOnly"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
}

// Redact replaces the values that a schema marks as secret, and reports whether there is
// one. What does not follow the schema is left as it is.
func Redact(schema, value json.RawMessage) (json.RawMessage, bool) {
	var s formSchema
	if len(value) == 0 || json.Unmarshal(schema, &s) != nil {
		return value, false
	}
	if s.Format == "password" || s.WriteOnly {
		return json.RawMessage(`"` + Redacted + `"`), true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) == nil && members != nil {
		return redactMembers(s, value, members)
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil && list != nil && s.Items != nil {
		return redactItems(s, value, list)
	}
	return value, false
}

func redactMembers(s formSchema, value json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, bool) {
	found := false
	for name, schema := range s.Properties {
		if v, has := members[name]; has {
			without, secret := Redact(schema, v)
			members[name], found = without, found || secret
		}
	}
	return encodeIf(found, members, value)
}

func redactItems(s formSchema, value json.RawMessage, list []json.RawMessage) (json.RawMessage, bool) {
	found := false
	for i, v := range list {
		without, secret := Redact(s.Items, v)
		list[i], found = without, found || secret
	}
	return encodeIf(found, list, value)
}

// encodeIf encodes a value that was changed, and returns the old bytes of one that was not.
func encodeIf(changed bool, v any, old json.RawMessage) (json.RawMessage, bool) {
	if !changed {
		return old, false
	}
	b, err := json.Marshal(v)
	if err != nil { // its parts were decoded before
		panic(err)
	}
	return b, true
}
