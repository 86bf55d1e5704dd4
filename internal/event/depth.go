package event

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxDepth is the number of levels to which JSON from outside (from a model, a client,
// a hook or a tool) may be nested. Decoders fail at some depth: that of Go at 10,000
// levels, others much earlier. An envelope adds levels to what it contains. The limit
// is far below what decoders can read, so that everything that is stored can be read.
const MaxDepth = 500

// maxStored is the number of levels to which a whole event may be nested. It is larger
// than MaxDepth because old logs, from before MaxDepth was introduced, may contain
// deeper JSON, and events that repeat such JSON must still be recorded.
const maxStored = 9900

// A DepthError means that JSON is nested too deeply.
type DepthError struct {
	Field string // member of the outermost object that is nested too deeply; empty if it is not known
	Max   int    // number of levels that are allowed
}

func (e *DepthError) Error() string {
	text := fmt.Sprintf("it is nested deeper than %d levels", e.Max)
	if e.Field == "" {
		return text
	}
	return e.Field + ": " + text
}

// CheckDepth returns a *DepthError if JSON from outside is nested deeper than
// [MaxDepth].
func CheckDepth(b []byte) error {
	if !deeper(b, MaxDepth) {
		return nil
	}
	return &DepthError{Field: deepField(b), Max: MaxDepth}
}

// CheckJSON returns an error if b, which comes from outside, is not valid JSON or is
// nested deeper than [MaxDepth]. An empty b is accepted.
func CheckJSON(b []byte) error {
	if err := CheckDepth(b); err != nil || len(b) == 0 {
		return err
	}
	if !json.Valid(b) {
		return fmt.Errorf("it is not valid JSON")
	}
	return nil
}

// deeper reports whether JSON is nested deeper than the given number of levels. It
// counts the brackets first, which is cheap and enough for almost every text.
func deeper(b []byte, most int) bool {
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= most {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// deepField returns the name of the member of an object that is nested too deeply, for
// the error message.
func deepField(b []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		return ""
	}
	for name, value := range members {
		if deeper(value, MaxDepth-1) {
			return name
		}
	}
	return ""
}
