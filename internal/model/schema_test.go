package model

import (
	"encoding/json"
	"testing"
)

func TestASchemaCanBeEnforcedIfItsObjectsAreClosedAndItsKeywordsKnown(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for schema, want := range map[string]bool{
		closed: true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                               false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                                                                   false,
		`{"type":"object","properties":{"a":{"type":"array","items":` + closed + `}},"required":["a"],"additionalProperties":false}`:                                                            true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:                                                         false,
		`{"type":"object","properties":{"a":{"anyOf":[` + closed + `,{"type":["object","null"]}]}},"required":["a"],"additionalProperties":false}`:                                              false,
		`{"type":"object","properties":{"properties":{"type":"string"}},"required":["properties"],"additionalProperties":false}`:                                                                true,
		`{"type":"object","properties":{"a":{"enum":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                                                                       true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"object"}}}`:                                               false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/type"}},"required":["a"],"additionalProperties":false,"$defs":{"type":{"type":"string"}}}`:                                         true,
		`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`:                                                                     false,
		`{"type":"object","properties":{"s":{"type":"string","maxLength":9}},"required":["s"],"additionalProperties":false}`:                                                                    false,
		`{"type":"object","properties":{"s":{"type":"string","default":"x"}},"required":["s"],"additionalProperties":false}`:                                                                    false,
		`{"type":"object","properties":{"s":{"allOf":[{"type":"string"}]}},"required":["s"],"additionalProperties":false}`:                                                                      false,
		`{"type":"object","properties":{"minimum":{"type":"string"}},"required":["minimum"],"additionalProperties":false}`:                                                                      true,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"],"additionalProperties":false}`:                                                                                       false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"array","items":{"$ref":"#/$defs/b"}}}}`:                   false,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"t","description":"d","type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`:                                                       false,
		`{"type":"string"}`: false, `[]`: false, `{`: false, ``: false,
	} {
		if got := Enforceable(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}
