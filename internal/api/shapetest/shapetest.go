// Package shapetest tells whether what clients are sent has the shape that the
// typed SDKs read: every required field, of its type, with a value that they know.
// Typed clients fail at anything else, some of them for good, so tests hold every
// event and every answer that they see against it.
//
// The table sdk.json has the facts of the declarations in @github/copilot-sdk
// 1.0.14, of the events and methods that abide has. An expression is a union of
// string, number, boolean, null, any, 'TEXT, #NUMBER and names of types, each with
// [] for a list of it or {} for an object with such values. A field whose name ends
// with ? may be missing.
package shapetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed sdk.json
var encoded []byte

type table struct {
	Events  map[string]string
	Results map[string]string
	Types   map[string]shape
}

// A shape is what a name stands for: an expression, or the fields of an object.
type shape struct {
	expr   string
	fields map[string]string
}

func (s *shape) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &s.expr) == nil {
		return nil
	}
	return json.Unmarshal(raw, &s.fields)
}

var shapes = sync.OnceValue(func() (t table) {
	if err := json.Unmarshal(encoded, &t); err != nil {
		panic(err)
	}
	return t
})

// Event says what is wrong with an event as clients are sent it. Kinds that the
// SDKs do not know are theirs to ignore.
func Event(raw []byte) []string {
	var e struct{ Type string }
	if err := json.Unmarshal(raw, &e); err != nil {
		return []string{err.Error()}
	}
	name := shapes().Events[e.Type]
	if name == "" {
		return nil
	}
	return Value(name, raw)
}

// Result says what is wrong with the result of a method. Some libraries give a
// program that expects nothing an empty object, so that is no fault.
func Result(method string, raw []byte) []string {
	name := shapes().Results[method]
	if name == "" || name == "null" {
		return nil
	}
	return Value(name, raw)
}

// Value says what is wrong with a value of a type.
func Value(name string, raw []byte) []string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return []string{err.Error()}
	}
	return check(name, name, v).texts
}

// faults are what is wrong with a value. The weight tells which member of a union
// was meant: a text that is not the wanted one is another member.
type faults struct {
	texts  []string
	weight int
}

func (f *faults) add(other faults) {
	f.texts = append(f.texts, other.texts...)
	f.weight += other.weight
}

func wrong(weight int, format string, args ...any) faults {
	return faults{[]string{fmt.Sprintf(format, args...)}, weight}
}

// check holds a value against an expression.
func check(path, expr string, v any) faults {
	var best *faults
	for alternative := range strings.SplitSeq(expr, "|") {
		f := checkOne(path, alternative, v)
		if best == nil || f.weight < best.weight {
			best = &f
		}
		if best.weight == 0 {
			break
		}
	}
	return *best
}

const otherMember = 100

func checkOne(path, expr string, v any) faults {
	if of, ok := strings.CutSuffix(expr, "[]"); ok {
		return checkList(path, of, v)
	}
	if of, ok := strings.CutSuffix(expr, "{}"); ok {
		return checkMap(path, of, v)
	}
	if text, ok := strings.CutPrefix(expr, "'"); ok {
		return unless(v == text, otherMember, path, expr, v)
	}
	switch expr {
	case "any":
		return faults{}
	case "null":
		return unless(v == nil, otherMember, path, expr, v)
	case "string":
		_, ok := v.(string)
		return unless(ok, otherMember, path, expr, v)
	case "number":
		_, ok := v.(float64)
		return unless(ok, otherMember, path, expr, v)
	case "boolean":
		_, ok := v.(bool)
		return unless(ok, otherMember, path, expr, v)
	}
	if number, ok := strings.CutPrefix(expr, "#"); ok {
		return unless(fmt.Sprint(v) == number, otherMember, path, expr, v)
	}
	return checkNamed(path, expr, v)
}

func unless(ok bool, weight int, path, want string, v any) faults {
	if ok {
		return faults{}
	}
	return wrong(weight, "%s: %v is not %s", path, v, want)
}

func checkList(path, of string, v any) (all faults) {
	list, ok := v.([]any)
	if !ok {
		return wrong(otherMember, "%s: %v is not a list", path, v)
	}
	for i, item := range list {
		all.add(check(fmt.Sprintf("%s[%d]", path, i), of, item))
	}
	return all
}

func checkMap(path, of string, v any) (all faults) {
	object, ok := v.(map[string]any)
	if !ok {
		return wrong(otherMember, "%s: %v is not an object", path, v)
	}
	for key, value := range object {
		all.add(check(path+"."+key, of, value))
	}
	return all
}

func checkNamed(path, name string, v any) (all faults) {
	is, known := shapes().Types[name]
	switch {
	case !known:
		panic("sdk.json has no type " + name)
	case is.expr != "":
		return check(path, is.expr, v)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return wrong(otherMember, "%s: %v is not an object", path, v)
	}
	for field, of := range is.fields {
		key, optional := strings.CutSuffix(field, "?")
		value, there := object[key]
		switch {
		case there:
			all.add(check(path+"."+key, of, value))
		case !optional:
			all.add(wrong(1, "%s.%s is missing", path, key))
		}
	}
	slices.Sort(all.texts)
	return all
}
