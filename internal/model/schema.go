package model

import (
	"encoding/json"
	"slices"
	"strings"
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
// no further properties and requires all that it has, nothing in it refers to itself, and
// it only has keywords that all of them know. A provider refuses a request with another
// one, such as minimum or pattern.
func Enforceable(schema json.RawMessage) bool {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return false
	}
	object, ok := root.(map[string]any)
	return ok && object["type"] == "object" && enforceable(object, false)
}

// enforceable checks a schema and those in it. What is in "properties" are names and not
// keywords, so it looks at the values of those alone. A shared schema may not refer to
// another one, so that none refers to itself.
func enforceable(value any, shared bool) bool {
	schema, ok := value.(map[string]any)
	if !ok || describesObject(schema) && !isClosed(schema) {
		return false
	}
	for keyword, inner := range schema {
		switch {
		case slices.Contains(plainKeywords, keyword):
		case keyword == "$ref":
			if target, _ := inner.(string); shared || !strings.HasPrefix(target, "#/$defs/") && !strings.HasPrefix(target, "#/definitions/") {
				return false
			}
		case !allEnforceable(keyword, inner, shared):
			return false
		}
	}
	return true
}

// plainKeywords are the keywords that every provider knows and that have no schema in them.
var plainKeywords = []string{"$schema", "$id", "$comment", "title", "description", "type", "enum", "const", "required", "additionalProperties"}

// allEnforceable checks the schemas in the value of a keyword. It reports false for a
// keyword that not every provider knows.
func allEnforceable(keyword string, value any, shared bool) bool {
	switch keyword {
	case "items":
		return enforceable(value, shared)
	case "anyOf":
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(inner any) bool { return !enforceable(inner, shared) })
	case "properties", "$defs", "definitions":
		named, ok := value.(map[string]any)
		for _, inner := range named {
			ok = ok && enforceable(inner, shared || keyword != "properties")
		}
		return ok
	}
	return false
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
