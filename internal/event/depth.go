package event

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxDepth is how deep JSON that comes from outside may be nested: what a model, a
// client, a hook or a tool says. Decoders give up at some depth (that of Go at
// 10,000, others long before), and what is stored goes into envelopes that add to it:
// so what comes in must be far from what cannot be read back.
const MaxDepth = 500

// maxStored is how deep a whole event may be nested. Logs that were written before
// MaxDepth was may hold JSON that is deeper than it, and what follows from it must
// still be recorded.
const maxStored = 9900

// A DepthError means that JSON is nested too deeply.
type DepthError struct {
	Field string // the member of the outermost object that is; empty if there is none
	Max   int
}

func (e *DepthError) Error() string {
	text := fmt.Sprintf("it is nested deeper than %d levels", e.Max)
	if e.Field == "" {
		return text
	}
	return e.Field + ": " + text
}

// CheckDepth returns a *DepthError if JSON that comes from outside is nested too
// deeply.
func CheckDepth(b []byte) error {
	if !deeper(b, MaxDepth) {
		return nil
	}
	return &DepthError{Field: deepField(b), Max: MaxDepth}
}

// CheckJSON returns an error if what comes from outside is no JSON, or is nested too
// deeply. Nothing at all is fine.
func CheckJSON(b []byte) error {
	if err := CheckDepth(b); err != nil || len(b) == 0 {
		return err
	}
	if !json.Valid(b) {
		return fmt.Errorf("it is not valid JSON")
	}
	return nil
}

// deeper reports whether JSON is nested deeper than a number of levels. Few texts
// have so many brackets at all, and counting them costs next to nothing.
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

// deepField finds the member of an object that is nested too deeply, for the message
// alone.
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
