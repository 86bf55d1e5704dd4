// Package event holds the words of a session: what can happen, and how it is
// written down.
//
// An [Event] is encoded to JSON once, by [Encode]. The same bytes are hashed,
// stored and sent to every client; nobody writes them again. The envelope has a
// fixed order, so that its head can be read without parsing the body:
//
//	{"type":T,"id":ID,"timestamp":TIME,"parentId":ID|null[,"ephemeral":true][,"agentId":ID],"data":{…}}
//
// Names and fields are those that clients of the Copilot SDK know. What that
// vocabulary lacks is added in the same style and is hidden from such clients
// (see [Type.Hidden]). docs/EVENTS.md lists every kind with its fields.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A SessionID names a session for life. Clients may choose it.
type SessionID string

// A Seq is a position in a session's log: 1, 2, 3 without gaps. Zero is the
// position before the first event.
type Seq int64

// An Event is one thing that happened. Its bytes are never changed.
type Event struct {
	Seq   Seq // zero if the event is not stored
	Type  Type
	Bytes []byte // the envelope, as stored and sent

	kind *Kind // its row in the table of kinds; nil if nobody has looked it up
	made *made // set if the event was made in this process
}

// made is what an event was encoded from, so that whoever made it need not
// decode it.
type made struct {
	head Head
	body Payload
}

// A Payload is the body of an event that is about to be recorded.
type Payload interface {
	Type() Type
}

// A Head is the part of an envelope that is not the body.
type Head struct {
	ID        string
	Time      time.Time
	Parent    string // id of the previous stored event that clients are shown; empty for none
	Ephemeral bool
	Agent     string // of a shown event: the session of the agent that it happened in
}

func init() { uuid.EnableRandPool() } // an identifier should not cost a system call

// NewID returns a fresh identifier; later ones sort after earlier ones.
func NewID() string {
	return uuid.Must(uuid.NewV7()).String()
}

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime writes a time the way envelopes and protocol messages have it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// An encoder writes bodies into a buffer of its own.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}}

// Encode writes an event that can be read back, or fails. The result is not
// numbered: the log does that.
// Whether it is ephemeral is the payload's type's matter, or the head's.
func Encode(head Head, p Payload) (Event, error) {
	kind := p.Type()
	enc := encoders.Get().(*encoder)
	defer encoders.Put(enc)
	buf := &enc.buf
	buf.Reset()
	writeHead(buf, kind, head)
	if err := enc.json.Encode(p); err != nil {
		return Event{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	buf.Truncate(buf.Len() - 1) // the encoder's newline
	buf.WriteByte('}')
	if deeper(buf.Bytes(), maxStored) {
		return Event{}, fmt.Errorf("encode %s: %w", kind, &DepthError{Max: maxStored})
	}
	head.Ephemeral = head.Ephemeral || kind.Ephemeral()
	head.Time = head.Time.UTC().Truncate(time.Millisecond) // as it will be read back
	return Event{Type: kind, Bytes: bytes.Clone(buf.Bytes()), kind: kind.row(), made: &made{head, p}}, nil
}

func writeHead(buf *bytes.Buffer, kind Type, head Head) {
	buf.WriteString(`{"type":"`)
	buf.WriteString(string(kind))
	buf.WriteString(`","id":"`)
	buf.WriteString(head.ID)
	buf.WriteString(`","timestamp":"`)
	buf.Write(head.Time.UTC().AppendFormat(buf.AvailableBuffer(), timeLayout))
	buf.WriteString(`","parentId":`)
	if head.Parent == "" {
		buf.WriteString(`null`)
	} else {
		buf.WriteByte('"')
		buf.WriteString(head.Parent)
		buf.WriteByte('"')
	}
	if head.Ephemeral || kind.Ephemeral() {
		buf.WriteString(`,"ephemeral":true`)
	}
	buf.WriteString(`,"data":`)
}

// ErrEnvelope is wrapped by the errors of Parse.
var ErrEnvelope = errors.New("not an event envelope")

// Parse takes stored bytes as an event. It reads only the type; the bytes are
// kept, not copied.
func Parse(seq Seq, b []byte) (Event, error) {
	kind, _, ok := cutBytes(b, `{"type":`)
	if !ok || len(kind) == 0 || len(b) < 2 || b[len(b)-1] != '}' {
		return Event{}, fmt.Errorf("event %d: %w", seq, ErrEnvelope)
	}
	if known := kinds[Type(kind)]; known != nil { // its name need not be copied
		return Event{Seq: seq, Type: known.Type, Bytes: b, kind: known}, nil
	}
	return Event{Seq: seq, Type: Type(kind), Bytes: b, kind: &unknown}, nil
}

// cutQuoted expects b to begin with prefix and a quoted string without escapes.
func cutQuoted(b []byte, prefix string) (value string, rest []byte, ok bool) {
	text, rest, ok := cutBytes(b, prefix)
	return string(text), rest, ok
}

// cutBytes is cutQuoted, but for the copy.
func cutBytes(b []byte, prefix string) (value, rest []byte, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(prefix+`"`))
	if !ok {
		return nil, nil, false
	}
	end := bytes.IndexByte(b, '"')
	if end < 0 || bytes.IndexByte(b[:end], '\\') >= 0 {
		return nil, nil, false
	}
	return b[:end], b[end+1:], true
}

// split walks the envelope's head and returns it with the body.
func (e Event) split() (Head, []byte, error) {
	bad := func(field string) (Head, []byte, error) {
		return Head{}, nil, fmt.Errorf("event %d (%s): %w: %s", e.Seq, e.Type, ErrEnvelope, field)
	}
	var head Head
	_, rest, ok := cutQuoted(e.Bytes, `{"type":`)
	if !ok {
		return bad("type")
	}
	if head.ID, rest, ok = cutQuoted(rest, `,"id":`); !ok {
		return bad("id")
	}
	stamp, rest, ok := cutQuoted(rest, `,"timestamp":`)
	if !ok {
		return bad("timestamp")
	}
	var err error
	if head.Time, err = time.Parse(time.RFC3339, stamp); err != nil {
		return bad("timestamp")
	}
	if after, isNull := bytes.CutPrefix(rest, []byte(`,"parentId":null`)); isNull {
		rest = after
	} else if head.Parent, rest, ok = cutQuoted(rest, `,"parentId":`); !ok {
		return bad("parentId")
	}
	rest, head.Ephemeral = bytes.CutPrefix(rest, []byte(`,"ephemeral":true`))
	if agent, after, ok := cutQuoted(rest, `,"agentId":`); ok {
		head.Agent, rest = agent, after
	}
	body, ok := bytes.CutPrefix(rest, []byte(`,"data":`))
	if !ok || len(body) < 3 || body[len(body)-1] != '}' {
		return bad("data")
	}
	return head, body[:len(body)-1], nil
}

// Head reads the envelope without its body.
func (e Event) Head() (Head, error) {
	if e.made != nil {
		return e.made.head, nil
	}
	head, _, err := e.split()
	return head, err
}

// Data returns the body, a JSON object, without copying it.
func (e Event) Data() (json.RawMessage, error) {
	_, body, err := e.split()
	return body, err
}

// Mentions reports whether the event can have a field of that name in its body or
// below it. It is much cheaper than decoding the body, and relies on how [Encode]
// writes: the name as it is, and no space before the colon.
func (e Event) Mentions(field string) bool {
	return bytes.Contains(e.Bytes, []byte(`"`+field+`":`))
}

// Decode reads the body into p.
func (e Event) Decode(p any) error {
	body, err := e.Data()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, p); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// As returns the body of an event as T. What it refers to must not be changed.
func As[T any](e Event) (T, error) {
	if e.made != nil {
		if p, ok := e.made.body.(T); ok {
			return p, nil
		}
	}
	var p T
	err := e.Decode(&p)
	return p, err
}
