package schema

import "errors"

// Limits of the work of a check.
const (
	maxWork    = 300_000 // about a second
	maxNesting = 1_000   // calls within calls
	matchSteps = 1_000   // steps of matching a pattern that are as much work as a visit
)

var (
	errWork    = errors.New("the schema and the answer together take too long to check: use fewer alternatives that repeat each other")
	errNesting = errors.New("it cannot be checked: the schema refers to itself, or the answer is nested too deep")
)

// estimate returns an error if the check of a value would take too long. The library cannot be
// interrupted, and its work can double with each level of a schema. So the parts of the schema
// that apply to each part of the value are counted first. The library visits no more than these:
// it leaves out what follows a failure.
func (s *Schema) estimate(value any) error {
	e := estimate{refs: s.refs, patterns: s.patterns, left: maxWork}
	return e.visit(s.root, value, 0)
}

// An estimate counts the work of a check.
type estimate struct {
	refs     map[string]any
	patterns map[string]int
	left     int
}

// match takes in the work of matching a text with a pattern.
func (e *estimate) match(pattern, text string) error {
	return e.spend(1 + e.patterns[pattern]*len(text)/matchSteps)
}

// spend takes in work, and fails if there is too much.
func (e *estimate) spend(work int) error {
	if e.left -= work; e.left < 0 {
		return errWork
	}
	return nil
}

// visit counts the work of one part of the schema on one value.
func (e *estimate) visit(part, value any, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	schema, _ := part.(map[string]any)
	enum, _ := schema["enum"].([]any)
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	if err := e.spend(1 + len(enum) + len(required) + len(properties)); err != nil {
		return err
	}
	if err := e.visitSame(schema, value, depth+1); err != nil {
		return err
	}
	switch v := value.(type) {
	case map[string]any:
		return e.visitMembers(schema, properties, v, depth+1)
	case []any:
		return e.visitElements(schema, v, depth+1)
	case string:
		if pattern, is := schema["pattern"].(string); is {
			return e.match(pattern, v)
		}
	}
	return nil
}

// visitSame counts the parts of the schema that apply to the same value.
func (e *estimate) visitSame(schema map[string]any, value any, depth int) error {
	if to, is := schema["$ref"].(string); is {
		part, found := e.refs[to]
		if !found {
			return errNesting // Parse has found all references
		}
		if err := e.visit(part, value, depth); err != nil {
			return err
		}
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		if part, is := schema[keyword]; is {
			if err := e.visit(part, value, depth); err != nil {
				return err
			}
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := schema[keyword].([]any)
		for _, part := range parts {
			if err := e.visit(part, value, depth); err != nil {
				return err
			}
		}
	}
	for _, keyword := range []string{"dependentSchemas", "dependencies"} {
		parts, _ := schema[keyword].(map[string]any)
		for _, part := range parts {
			if err := e.visit(part, value, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitMembers counts the parts of the schema that apply to the members of an object.
func (e *estimate) visitMembers(schema, properties, value map[string]any, depth int) error {
	patterns, _ := schema["patternProperties"].(map[string]any)
	for name, inner := range value {
		if err := e.spend(1); err != nil {
			return err
		}
		if part, is := properties[name]; is {
			if err := e.visit(part, inner, depth); err != nil {
				return err
			}
		}
		for pattern, part := range patterns {
			if err := e.match(pattern, name); err != nil {
				return err
			}
			if err := e.visit(part, inner, depth); err != nil {
				return err
			}
		}
		if err := e.visitAll(schema, []string{"additionalProperties", "unevaluatedProperties"}, inner, depth); err != nil {
			return err
		}
		if err := e.visitAll(schema, []string{"propertyNames"}, name, depth); err != nil {
			return err
		}
	}
	return nil
}

// visitElements counts the parts of the schema that apply to the elements of a list.
func (e *estimate) visitElements(schema map[string]any, value []any, depth int) error {
	first, _ := schema["prefixItems"].([]any)
	if list, is := schema["items"].([]any); is { // of draft 7
		first = list
	}
	for i, inner := range value {
		if err := e.spend(1); err != nil {
			return err
		}
		if i < len(first) {
			if err := e.visit(first[i], inner, depth); err != nil {
				return err
			}
		}
		if err := e.visitAll(schema, []string{"items", "contains", "additionalItems", "unevaluatedItems"}, inner, depth); err != nil {
			return err
		}
	}
	return nil
}

// visitAll counts the parts of the schema under keywords that apply to a value.
func (e *estimate) visitAll(schema map[string]any, keywords []string, value any, depth int) error {
	for _, keyword := range keywords {
		part, is := schema[keyword]
		if _, list := part.([]any); !is || list {
			continue
		}
		if err := e.visit(part, value, depth); err != nil {
			return err
		}
	}
	return nil
}
