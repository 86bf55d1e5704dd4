package model

import (
	"encoding/json"
	"testing"
)

func TestASchemaCanBeEnforcedIfItsObjectsAreClosed(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for schema, want := range map[string]bool{
		closed: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                       false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                           false,
		`{"type":"object","properties":{"a":{"type":"array","items":` + closed + `}},"required":["a"],"additionalProperties":false}`:                    true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:                 false,
		`{"type":"object","properties":{"a":{"anyOf":[` + closed + `,{"type":["object","null"]}]}},"required":["a"],"additionalProperties":false}`:      false,
		`{"type":"object","properties":{"properties":{"type":"string"}},"required":["properties"],"additionalProperties":false}`:                        true,
		`{"type":"object","properties":{"a":{"enum":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                               true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"object"}}}`:       false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/type"}},"required":["a"],"additionalProperties":false,"$defs":{"type":{"type":"string"}}}`: true,
		`{"type":"string"}`: false, `[]`: false, `{`: false, ``: false,
	} {
		if got := Enforceable(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}
