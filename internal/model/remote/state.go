package remote

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model/plainjson"
)

// A State is what a provider added to a message and its calls beside what every provider
// sends: signatures, structured reasoning, members of its own. Only the host and the
// model that sent it get it back. It is stored with the message.
type State struct {
	Thoughts bool            `json:"thoughts,omitempty"` // true if the readable reasoning is wanted back
	Member   string          `json:"member,omitempty"`   // member in which it came; reasoning_content if empty
	Message  Members         `json:"message,omitempty"`
	Calls    map[int]Members `json:"calls,omitempty"` // members of calls, by the place of the call
}

// Members are members of a JSON object.
type Members map[string]json.RawMessage

// Append appends the members to the text of an object. comma is what separates the first
// of them from those that the object has already; empty if it has none.
func (m Members) Append(b []byte, comma string) []byte {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b = plainjson.AppendString(append(b, comma...), name)
		comma = ","
		b = append(append(b, ':'), m[name]...)
	}
	return b
}

// nothing are the values of members that need not be sent back.
var nothing = []string{"null", `""`, "[]", "{}"}

// OwnMembers returns the members of an object that are not known; nil if there are none.
// They are not the known ones in other letters, which encoding/json reads as well. The text
// has been decoded before.
func OwnMembers(object []byte, known []string) (own Members, err error) {
	if onlyKnown(object, known) {
		return nil, nil
	}
	if err := json.Unmarshal(object, &own); err != nil {
		return nil, err
	}
	maps.DeleteFunc(own, func(name string, value json.RawMessage) bool {
		return slices.Contains(nothing, string(value)) || slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	if len(own) == 0 {
		return nil, nil
	}
	return own, nil
}

// onlyKnown reports whether all members of an object are known. It answers for nearly every
// reply, without decoding it once more. The object is valid JSON.
func onlyKnown(object []byte, known []string) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	depth, isName := 0, false
	for i := 0; i < len(object); i++ {
		switch object[i] {
		case '{', '[':
			depth++
			isName = depth == 1
		case '}', ']':
			depth--
		case ',':
			isName = depth == 1
		case '"':
			start := i + 1
			for i++; i < len(object) && object[i] != '"'; i++ {
				if object[i] == '\\' {
					i++
				}
			}
			if isName && (i >= len(object) || !slices.Contains(known, string(object[start:i]))) {
				return false
			}
			isName = false
		}
	}
	return true
}

// Call returns the members of the call at place i.
func (s *State) Call(i int) Members {
	if s == nil {
		return nil
	}
	return s.Calls[i]
}

// KeepState returns the text of a state that is stored with a reply to q; empty if there
// is nothing to keep, or too much.
func KeepState(q *Query, s *State) string {
	if len(s.Message) == 0 && len(s.Calls) == 0 && !s.Thoughts {
		return ""
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil || text.Len() > stateLimit {
		return ""
	}
	b := append(origin(q.Host, q.Model), `,"chat":`...)
	return string(append(append(b, bytes.TrimSpace(text.Bytes())...), '}'))
}

// ReadState returns the state of a stored reply for sending it in q, or nil if there is
// none or another host or model sent it.
func ReadState(kept string, q *Query) *State {
	text, ok := strings.CutPrefix(kept, string(append(origin(q.Host, q.Model), `,"chat":`...)))
	if !ok {
		return nil
	}
	s := new(State)
	if json.Unmarshal([]byte(strings.TrimSuffix(text, "}")), s) != nil {
		return nil
	}
	return s
}
