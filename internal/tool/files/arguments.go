package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// arguments are those of a call while they are read. What is wrong with them is
// collected, and what is not known is left alone.
type arguments struct {
	values map[string]json.RawMessage
	wrong  []string
}

func readArguments(raw json.RawMessage) *arguments {
	a := new(arguments)
	if len(bytes.TrimSpace(raw)) == 0 {
		return a
	}
	if json.Unmarshal(raw, &a.values) != nil {
		a.wrong = append(a.wrong, "Expected JSON object but got "+kindOf(raw))
	}
	return a
}

// kindOf names the kind of a JSON value.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// value returns an argument. Null is none.
func (a *arguments) value(name string) (json.RawMessage, bool) {
	raw, ok := a.values[name]
	return raw, ok && kindOf(raw) != "null"
}

func (a *arguments) problem(name, format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf("%q: ", name)+fmt.Sprintf(format, args...))
}

// read decodes an argument of some kind, if it is there.
func read[T any](a *arguments, name, kind string) (v T, ok bool) {
	raw, ok := a.value(name)
	if !ok {
		return v, false
	}
	if got := kindOf(raw); got != kind {
		a.problem(name, "Expected %s, received %s", kind, got)
		return v, false
	}
	if json.Unmarshal(raw, &v) != nil {
		a.problem(name, "Invalid %s", kind)
		return v, false
	}
	return v, true
}

// text reads a text, if it is there.
func (a *arguments) text(name string) (string, bool) { return read[string](a, name, "string") }

// needed reads a text that must be there.
func (a *arguments) needed(name string) string {
	s, _ := a.text(name)
	if _, ok := a.value(name); !ok {
		a.problem(name, "Required")
	}
	return s
}

func (a *arguments) flag(name string) bool {
	v, _ := read[bool](a, name, "boolean")
	return v
}

// number reads a whole number that is not negative.
func (a *arguments) number(name string) (int, bool) {
	v, ok := read[float64](a, name, "number")
	switch {
	case !ok:
		return 0, false
	case v != float64(int(v)):
		a.problem(name, "Expected integer, received float")
	case v < 0:
		a.problem(name, "Number must be greater than or equal to 0")
	}
	return int(v), true
}

// integers reads a list of whole numbers.
func (a *arguments) integers(name string) ([]int64, bool) {
	list, ok := read[[]json.RawMessage](a, name, "array")
	numbers := make([]int64, len(list))
	for i, raw := range list {
		if kind := kindOf(raw); kind != "number" {
			a.problem(fmt.Sprintf("%s.%d", name, i), "Expected number, received %s", kind)
		} else if json.Unmarshal(raw, &numbers[i]) != nil {
			a.problem(fmt.Sprintf("%s.%d", name, i), "Expected integer, received float")
		}
	}
	return numbers, ok
}

// texts reads what may be one text or a list of them, under one of some names.
func (a *arguments) texts(names ...string) []string {
	for _, name := range names {
		raw, ok := a.value(name)
		if !ok {
			continue
		}
		var one string
		if json.Unmarshal(raw, &one) == nil {
			return []string{one}
		}
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			a.problem(name, "Expected string or array of strings, received %s", kindOf(raw))
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// choice reads one of some words; the first if it is not there.
func (a *arguments) choice(name string, of ...string) string {
	s, ok := a.text(name)
	if !ok {
		return of[0]
	}
	if !slices.Contains(of, s) {
		a.problem(name, "Invalid enum value. Expected '%s', received '%s'", strings.Join(of, "' | '"), s)
	}
	return s
}

// err says what is wrong, if anything is.
func (a *arguments) err() error {
	switch len(a.wrong) {
	case 0:
		return nil
	case 1:
		return fail(a.wrong[0], "Invalid input: %s", a.wrong[0])
	}
	text := "Multiple validation errors:\n- " + strings.Join(a.wrong, "\n- ")
	return fail(text, "Invalid input: %s", text)
}
