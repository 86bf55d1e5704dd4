// Package schema checks answers of models against JSON schemas.
//
//   - A schema is checked when it is given, and every later check of an answer ends soon: the
//     work is limited before it begins. Schemas that would take for ever are errors.
//   - A reference leads only to another place in the same schema. No file is opened and
//     nothing is fetched.
//   - Drafts 2020-12 and 7 of JSON Schema are known. Patterns are those of package regexp,
//     which need time in proportion to the text. Formats are not checked.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// Limits of schemas and answers.
const (
	MaxBytes = 64 << 10 // bytes of a schema
	maxDepth = 64       // levels of nesting of a schema
	maxWhy   = 500      // bytes of a reason

	maxPatterns = 20_000 // steps of the programs of all patterns
)

// A Schema is a JSON schema of an object.
type Schema struct {
	root     map[string]any
	refs     map[string]any // parts of the schema by the references to them
	patterns map[string]int // lengths of the programs of patterns
	resolved *jsonschema.Resolved
}

// Parse checks a schema. The error says what is wrong with it, and not which schema it is.
func Parse(text []byte) (*Schema, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has more than %d KiB", MaxBytes>>10)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not valid UTF-8")
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", explainSyntax(text, err))
	}
	root, ok := value.(map[string]any)
	if !ok || root["type"] != "object" {
		return nil, errors.New(`it is not the schema of an object: it needs "type": "object"`)
	}
	if version, given := root["$schema"]; given && !isKnown(version) {
		return nil, fmt.Errorf("its $schema is %q: use draft 2020-12 or draft 7", version)
	}
	s := &Schema{root: root, refs: make(map[string]any), patterns: make(map[string]int)}
	if err := s.checkPart(root, 0); err != nil {
		return nil, err
	}
	if err := checkTypes(root); err != nil {
		return nil, err
	}
	var parsed jsonschema.Schema
	err := json.Unmarshal(text, &parsed)
	if err == nil {
		s.resolved, err = parsed.Resolve(&jsonschema.ResolveOptions{})
	}
	if err != nil {
		return nil, errors.New(shorten(strings.TrimPrefix(err.Error(), "jsonschema: ")))
	}
	return s, nil
}

// versions are the drafts that can be checked.
var versions = []string{"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema"}

func isKnown(version any) bool {
	text, _ := version.(string)
	return slices.Contains(versions, strings.TrimSuffix(text, "#"))
}

// explainSyntax adds the line to the error of a text that is not JSON.
func explainSyntax(text []byte, err error) error {
	var wrong *json.SyntaxError
	if !errors.As(err, &wrong) {
		return err
	}
	before := text[:min(int(wrong.Offset), len(text))]
	return fmt.Errorf("line %d: %w", 1+strings.Count(string(before), "\n"), err)
}

// elsewhere are the keywords that give parts of a schema other names, or look for them in other
// schemas. Answers do not need them, and without them each reference is a path.
var elsewhere = []string{"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}

// checkPart checks the nesting of a part of the schema, and finds what its references name.
func (s *Schema) checkPart(part any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	}
	switch v := part.(type) {
	case []any:
		for _, element := range v {
			if err := s.checkPart(element, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range elsewhere {
			if _, is := v[name].(string); is {
				return fmt.Errorf("it has %s, which is not supported: refer to places in the schema with $ref alone, as in #/$defs/NAME", name)
			}
		}
		if to, is := v["$ref"].(string); is {
			part, err := find(s.root, to)
			if err != nil {
				return err
			}
			s.refs[to] = part
		}
		return s.checkKeywords(v, depth)
	}
	return nil
}

// checkKeywords checks the parts of a schema under its keywords.
func (s *Schema) checkKeywords(schema map[string]any, depth int) error {
	for keyword, inner := range schema {
		named, is := inner.(map[string]any)
		switch {
		case isData(keyword):
		case keyword == "pattern":
			pattern, _ := inner.(string)
			if err := s.addPattern(pattern); err != nil {
				return err
			}
		case is && isNamed(keyword):
			for name, part := range named {
				if err := s.checkPart(part, depth+2); err != nil {
					return err
				}
				if keyword != "patternProperties" {
					continue
				}
				if err := s.addPattern(name); err != nil {
					return err
				}
			}
		default:
			if err := s.checkPart(inner, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// types are the names of types. No answer has another one.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// applied are the keywords whose value is a schema, or a list of schemas. Unlike the values of unknown
// keywords, these must be right.
var applied = []string{"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf", "prefixItems",
	"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}

// checkTypes checks the names of types in a part of the schema.
func checkTypes(part any) error {
	switch v := part.(type) {
	case []any:
		for _, element := range v {
			if err := checkTypes(element); err != nil {
				return err
			}
		}
	case map[string]any:
		names, several := v["type"].([]any)
		if name, given := v["type"]; given && !several {
			names = []any{name}
		}
		for _, name := range names {
			if text, is := name.(string); !is || !slices.Contains(types, text) {
				return fmt.Errorf("there is no type %s: use %s", shorten(fmt.Sprintf("%#v", name)), strings.Join(types, ", "))
			}
		}
		for keyword, inner := range v {
			named, is := inner.(map[string]any)
			switch {
			case slices.Contains(applied, keyword):
				if err := checkTypes(inner); err != nil {
					return err
				}
			case is && isNamed(keyword):
				for _, part := range named {
					if err := checkTypes(part); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// addPattern takes in a pattern. The time of a match is the length of the text times that of the
// pattern's program, and repetitions make a short pattern long.
func (s *Schema) addPattern(pattern string) error {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("its pattern %q cannot be used: %w", shorten(pattern), err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return fmt.Errorf("its pattern %q cannot be used: %w", shorten(pattern), err)
	}
	s.patterns[pattern] = len(program.Inst)
	all := 0
	for _, steps := range s.patterns {
		all += steps
	}
	if all > maxPatterns {
		return errors.New("its patterns are too long with all their repetitions: make them shorter, or use maxLength")
	}
	return nil
}

// isNamed reports whether the members of the value of a keyword are schemas with names, which may
// look like keywords.
func isNamed(keyword string) bool {
	return slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}, keyword)
}

// isData reports whether the value of a keyword is no schema, whatever it looks like.
func isData(keyword string) bool {
	return slices.Contains([]string{"enum", "const", "default", "examples"}, keyword)
}

// find returns the part of a schema that a reference names.
func find(root map[string]any, to string) (any, error) {
	path, inside := strings.CutPrefix(to, "#")
	if !inside || path != "" && path[0] != '/' {
		return nil, fmt.Errorf("its reference %q leads out of the schema: nothing is fetched, so put what it names into the schema, and refer to it as in #/$defs/NAME", shorten(to))
	}
	var part any = root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		inner, ok := member(part, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		if !ok {
			return nil, fmt.Errorf("its reference %q leads nowhere", shorten(to))
		}
		part = inner
	}
	return part, nil
}

func member(part any, name string) (any, bool) {
	if list, is := part.([]any); is {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(list) {
			return nil, false
		}
		return list[i], true
	}
	object, _ := part.(map[string]any)
	inner, ok := object[name]
	return inner, ok
}

// Check parses an answer and checks it. The error is the reason for which the answer does not
// have the form, in words for the model and for people.
func (s *Schema) Check(answer string) (json.RawMessage, error) {
	text := []byte(strings.TrimSpace(answer))
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		if len(text) == 0 {
			return nil, errors.New("it is empty")
		}
		return nil, fmt.Errorf("it is not JSON alone: %w", explainSyntax(text, err))
	}
	if err := s.estimate(value); err != nil {
		return nil, err
	}
	if err := s.resolved.Validate(value); err != nil {
		return nil, errors.New(shorten(reason(err)))
	}
	return text, nil
}

// reason returns the error of a check in the words of the library, with the place in the schema
// once.
func reason(err error) string {
	text := err.Error()
	place := ""
	for {
		rest, nested := strings.CutPrefix(text, "validating ")
		if !nested {
			break
		}
		at, inner, found := strings.Cut(rest, ": ")
		if !found {
			break
		}
		place, text = at, inner
	}
	if place == "" || place == "root" {
		return text
	}
	return "at " + place + " of the schema: " + text
}

// shorten returns the beginning of a text that may hold what a model has written.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxWhy {
		return text
	}
	cut := maxWhy
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
