package model

import (
	"encoding/json"
	"slices"
)

// A Schema is the form that the answer to a request must have. The text of the reply is
// then JSON, which the caller has to check: not every provider can enforce a schema, and
// a reply may be cut off. Calls of tools are free of it.
type Schema struct {
	Name   string          // name for the model; "answer" if empty
	JSON   json.RawMessage // JSON schema of an object
	Strict bool            // true if the provider enforces the schema; see Enforceable
}

// Enforceable reports whether providers can enforce a schema: every object in it allows
// no further properties and requires all that it has.
func Enforceable(schema json.RawMessage) bool {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return false
	}
	object, ok := root.(map[string]any)
	return ok && object["type"] == "object" && enforceable(root)
}

// enforceable checks every object of a schema. What is in "properties" are names and not
// keywords, so it looks at the values of those alone.
func enforceable(value any) bool {
	switch v := value.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(element any) bool { return !enforceable(element) })
	case map[string]any:
		if describesObject(v) && !isClosed(v) {
			return false
		}
		for keyword, inner := range v {
			if isData(keyword) {
				continue
			}
			if named, ok := inner.(map[string]any); ok && isNamed(keyword) {
				for _, schema := range named {
					if !enforceable(schema) {
						return false
					}
				}
			} else if !enforceable(inner) {
				return false
			}
		}
	}
	return true
}

func describesObject(schema map[string]any) bool {
	types, _ := schema["type"].([]any)
	return schema["type"] == "object" || slices.Contains(types, any("object")) || schema["properties"] != nil
}

// isClosed reports whether an object allows no other property than those it has, and
// requires them all.
func isClosed(schema map[string]any) bool {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return schema["additionalProperties"] == false
}

// isNamed reports whether the members of a keyword's value are schemas with names.
func isNamed(keyword string) bool {
	return slices.Contains([]string{"properties", "$defs", "definitions"}, keyword)
}

// isData reports whether the value of a keyword is no schema.
func isData(keyword string) bool {
	return slices.Contains([]string{"enum", "const", "default", "examples", "required"}, keyword)
}
