// Package argument parses the arguments of a tool call: JSON that a model wrote.
//
//   - All errors are collected and reported together, with the names of the arguments,
//     in the words of the protocol.
//   - An argument may have several names; the first one that is present counts.
//   - Null counts as missing. Unknown arguments are ignored.
package argument

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/tool"
)

// A Set is the arguments of one call while they are parsed.
type Set struct {
	values map[string]json.RawMessage
	wrong  []string
}

// Read begins to parse arguments. Missing arguments count as an empty object.
func Read(raw json.RawMessage) *Set {
	s := new(Set)
	if len(bytes.TrimSpace(raw)) > 0 && json.Unmarshal(raw, &s.values) != nil {
		s.wrong = append(s.wrong, "Expected JSON object but got "+kind(raw))
	}
	return s
}

// Err returns a *tool.Refusal with all errors, or nil if there are none.
func (s *Set) Err() error {
	switch len(s.wrong) {
	case 0:
		return nil
	case 1:
		return refuse(s.wrong[0])
	}
	return refuse("Multiple validation errors:\n- " + strings.Join(s.wrong, "\n- "))
}

// Refused returns the result of a call with invalid arguments, and whether they are
// invalid.
func (s *Set) Refused() (tool.Result, bool) {
	var refusal *tool.Refusal
	if errors.As(s.Err(), &refusal) {
		return refusal.Result, true
	}
	return tool.Result{}, false
}

func refuse(what string) error {
	r := tool.Fail("Invalid input: " + what)
	r.Message = what
	return &tool.Refusal{Result: r}
}

// Wrong records that an argument is invalid.
func (s *Set) Wrong(name, format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf("%q: ", name)+fmt.Sprintf(format, args...))
}

// kind returns the name of the type of a JSON value.
func kind(raw json.RawMessage) string {
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

// find returns the first of some arguments that is present, and its name.
func (s *Set) find(names []string) (string, json.RawMessage) {
	for _, name := range names {
		if raw, ok := s.values[name]; ok && kind(raw) != "null" {
			return name, raw
		}
	}
	return "", nil
}

func read[T any](s *Set, want string, names []string) (v T, ok bool) {
	name, raw := s.find(names)
	if raw == nil {
		return v, false
	}
	if got := kind(raw); got != want {
		s.Wrong(name, "Expected %s, received %s", want, got)
		return v, false
	}
	if json.Unmarshal(raw, &v) != nil {
		s.Wrong(name, "Invalid %s", want)
		return v, false
	}
	return v, true
}

// Text returns a text, and whether it is present.
func (s *Set) Text(names ...string) (string, bool) { return read[string](s, "string", names) }

// Needed returns a text that must be present.
func (s *Set) Needed(names ...string) string {
	v, _ := s.Text(names...)
	if _, raw := s.find(names); raw == nil {
		s.Wrong(names[0], "Required")
	}
	return v
}

// Filled returns a text that must be present and not empty.
func (s *Set) Filled(name string) string {
	v := s.Needed(name)
	if _, raw := s.find([]string{name}); raw != nil && string(raw) == `""` {
		s.Wrong(name, "Required")
	}
	return v
}

// Flag returns a boolean; false if it is missing.
func (s *Set) Flag(names ...string) bool {
	v, _ := read[bool](s, "boolean", names)
	return v
}

// Number returns an integer that is not negative, and whether it is present.
func (s *Set) Number(names ...string) (int64, bool) {
	name, _ := s.find(names)
	v, ok := read[float64](s, "number", names)
	switch {
	case !ok:
		return 0, false
	case v < 0:
		s.Wrong(name, "Number must be greater than or equal to 0")
	case v != math.Trunc(v) || v > 1<<53:
		s.Wrong(name, "Expected integer, received float")
	}
	return int64(v), true
}

// Seconds returns a duration: a number of seconds, also as a text, or a text like 1m30s.
// A value that is too large becomes the longest duration. The name is that of the
// argument, for messages.
func (s *Set) Seconds(names ...string) (d time.Duration, name string, ok bool) {
	name, raw := s.find(names)
	if raw == nil {
		return 0, "", false
	}
	if kind(raw) == "number" {
		n, ok := read[float64](s, "number", names)
		return seconds(n), name, ok
	}
	text, ok := read[string](s, "string", names)
	if !ok {
		return 0, name, false
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) {
		return seconds(n), name, true
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Wrong(name, "Expected a number of seconds, received '%s'", text)
	}
	return d, name, err == nil
}

func seconds(n float64) time.Duration {
	const most = float64(math.MaxInt64) / float64(time.Second)
	return time.Duration(max(-most, min(n, most/2)) * float64(time.Second))
}

// Choice returns one of some words; the first one if the argument is missing.
func (s *Set) Choice(name string, of ...string) string {
	v, ok := s.Text(name)
	if !ok {
		return of[0]
	}
	if !slices.Contains(of, v) {
		s.Wrong(name, "Invalid enum value. Expected '%s', received '%s'", strings.Join(of, "' | '"), v)
	}
	return v
}

// Texts returns one text or a list of texts. An empty list counts as missing.
func (s *Set) Texts(names ...string) []string {
	for i := range names {
		name, raw := s.find(names[i : i+1])
		if raw == nil {
			continue
		}
		var one string
		if json.Unmarshal(raw, &one) == nil {
			return []string{one}
		}
		var list []string
		if json.Unmarshal(raw, &list) != nil {
			s.Wrong(name, "Expected string or array of strings, received %s", kind(raw))
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// Integers returns a list of integers, and whether it is present.
func (s *Set) Integers(name string) ([]int64, bool) {
	list, ok := read[[]json.RawMessage](s, "array", []string{name})
	numbers := make([]int64, len(list))
	for i, raw := range list {
		if got := kind(raw); got != "number" {
			s.Wrong(fmt.Sprintf("%s.%d", name, i), "Expected number, received %s", got)
		} else if json.Unmarshal(raw, &numbers[i]) != nil {
			s.Wrong(fmt.Sprintf("%s.%d", name, i), "Expected integer, received float")
		}
	}
	return numbers, ok
}
