package jsonrpc

import (
	"bytes"
	"encoding/json"
	"iter"
)

// A Message is the parsed body of a frame. Its fields alias the body.
type Message struct {
	ID     json.RawMessage // nil if there is none; null in the answer to an unreadable message
	Method string          // empty in an answer
	Params json.RawMessage // nil if there are none; anything but an object is refused
	Result json.RawMessage // nil if absent; null is a result
	Err    json.RawMessage // nil if absent or null
}

// IsAnswer reports whether the message answers an earlier one.
func (m Message) IsAnswer() bool { return m.Method == "" }

// IsRequest reports whether the message wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// Failure returns the error that an answer carries, or nil.
func (m Message) Failure() *Error {
	if m.Err == nil {
		return nil
	}
	e := new(Error)
	if json.Unmarshal(m.Err, e) != nil {
		return &Error{Code: CodeInternal, Message: string(m.Err)}
	}
	return e
}

// Parse parses a body. The error, if any, is the answer to the sender; the message then
// has the id to answer, if it could be read.
func Parse(body []byte) (Message, *Error) {
	if !json.Valid(body) {
		return Message{}, Errorf(CodeParse, "the message is not JSON")
	}
	return Scan(body)
}

// Scan is like Parse, for a body that is known to be JSON. For any other body the result
// is undefined, but Scan does not panic.
func Scan(body []byte) (Message, *Error) {
	body = trim(body)
	if len(body) > 0 && body[0] == '[' {
		return Message{}, Errorf(CodeInvalidRequest, "batches are not supported; send each message in a frame of its own")
	}
	var (
		m     Message
		fault *Error
	)
	for key, value := range Members(body) {
		if err := m.set(key, value); err != nil {
			fault = err
		}
	}
	if fault == nil {
		fault = m.check()
	}
	if fault != nil {
		return Message{ID: m.ID}, fault
	}
	return m, nil
}

// set sets the field for one member of the message.
func (m *Message) set(key []byte, value json.RawMessage) *Error {
	switch string(key) {
	case "jsonrpc":
		if string(value) != `"2.0"` {
			return Errorf(CodeInvalidRequest, `jsonrpc is %s; only "2.0" is spoken here`, clip(value))
		}
	case "id":
		if !isID(value) {
			return Errorf(CodeInvalidRequest, "the id must be a string or a number")
		}
		m.ID = value
	case "method":
		return m.setMethod(value)
	case "params":
		m.Params = orNil(onlyParam(value))
	case "result":
		m.Result = value
	case "error":
		m.Err = orNil(value)
	}
	return nil
}

func (m *Message) setMethod(value json.RawMessage) *Error {
	method, ok := unquote(value)
	if !ok || len(method) == 0 {
		return Errorf(CodeInvalidRequest, "the method must be a name")
	}
	m.Method = string(method)
	return nil
}

// check checks the message as a whole.
func (m *Message) check() *Error {
	switch {
	case m.Method == "" && m.Result == nil && m.Err == nil:
		return Errorf(CodeInvalidRequest, "the message is neither a request nor an answer")
	case m.Method == "" && m.ID == nil:
		return Errorf(CodeInvalidRequest, "the answer has no id")
	case m.Method != "" && isNull(m.ID):
		m.ID = nil
		return Errorf(CodeInvalidRequest, "the id must be a string or a number")
	}
	return nil
}

func isID(v json.RawMessage) bool {
	return len(v) > 0 && (v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9' || isNull(v))
}

func isNull(v json.RawMessage) bool { return string(v) == "null" }

func orNil(v json.RawMessage) json.RawMessage {
	if isNull(v) {
		return nil
	}
	return v
}

// onlyParam unwraps params that are given by position: JavaScript libraries send [null]
// for a call without arguments, and [{...}] for one with an object. An empty list
// becomes null, and a list of several params is returned unchanged.
func onlyParam(v json.RawMessage) json.RawMessage {
	if len(v) < 2 || v[0] != '[' {
		return v
	}
	inner := bytes.Trim(v[1:len(v)-1], " \t\r\n")
	switch n := valueLen(inner); {
	case len(inner) == 0:
		return json.RawMessage("null")
	case n == len(inner) && (IsObject(inner) || isNull(inner)):
		return inner
	}
	return v
}

// IsObject reports whether a JSON value is an object.
func IsObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// Members yields the members of a JSON object in order, with decoded names and raw
// values; nothing if it is not an object.
func Members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		b := trim(object)
		if !IsObject(b) {
			return
		}
		for b = trim(b[1:]); len(b) > 0 && b[0] == '"'; b = nextMember(b) {
			n := valueLen(b)
			key, ok := unquote(b[:n])
			b = trim(b[n:])
			if !ok || len(b) == 0 || b[0] != ':' {
				return
			}
			b = trim(b[1:])
			n = valueLen(b)
			if n == 0 || !yield(key, json.RawMessage(b[:n:n])) {
				return
			}
			b = trim(b[n:])
		}
	}
}

// nextMember returns the rest after a comma; nil at the end of the object.
func nextMember(b []byte) []byte {
	if len(b) == 0 || b[0] != ',' {
		return nil
	}
	return trim(b[1:])
}

// trim removes leading white space.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// valueLen returns the length of the value at the start of b; zero if it has no end.
func valueLen(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"':
		return stringLen(b)
	case '{', '[':
		return nestedLen(b)
	}
	if n := bytes.IndexAny(b, ",:]} \t\r\n\""); n >= 0 {
		return n
	}
	return len(b)
}

func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

func nestedLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			n := stringLen(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// Text decodes a JSON string; the result is empty for any other value.
func Text(v json.RawMessage) string {
	s, _ := unquote(v)
	return string(s)
}

// unquote decodes a JSON string, without a copy if it has no escapes.
func unquote(v []byte) ([]byte, bool) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return nil, false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], true
	}
	var s string
	err := json.Unmarshal(v, &s)
	return []byte(s), err == nil
}
