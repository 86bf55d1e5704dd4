// Package event defines the events of a session: which kinds there are, what the
// body of each kind contains, and how an event is encoded.
//
// An [Event] is encoded to JSON once, by [Encode]. The same bytes are hashed,
// stored and sent to every client; they are never encoded again. The members of the
// envelope have a fixed order, so that everything before the body can be read
// without parsing the body:
//
//	{"type":T,"id":ID,"timestamp":TIME,"parentId":ID|null[,"ephemeral":true][,"agentId":ID],"data":{…}}
//
// Each kind of events has a row in the table of kinds ([Kind]), which says how the
// kind is stored, shown and read. Each file of this package is about one feature. It
// declares, from top to bottom, the types of its events, their rows in the table, and
// their bodies (the types named …Data, which implement [Payload]).
//
// Names and fields are those that clients of the Copilot SDK (protocol version 3)
// know. Kinds that the protocol lacks are named in the same style and hidden from
// ordinary clients (see [Type.Hidden]); fields that the protocol lacks are marked
// "ours" in their comments. The names are stored in every log, so they never change.
// docs/EVENTS.md lists every kind with its fields, and the compatibility rules.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// A SessionID identifies a session and never changes. A client may choose it.
type SessionID string

// A Seq is the position of an event in a session's log: 1, 2, 3 without gaps. Zero
// is the position before the first event.
type Seq int64

// An Event is one thing that happened in a session. Its bytes are never changed.
type Event struct {
	Seq   Seq // position in the log; zero if the event is not stored
	Type  Type
	Bytes []byte // the whole envelope, as it is stored and sent

	kind *Kind // row of the table of kinds; nil if it was not looked up yet
	made *made // head and payload that the event was encoded from; nil if it was read from a log, or if the bytes say something else
}

// made is what an event was encoded from. It saves decoding an event in the process
// that encoded it.
type made struct {
	head Head
	body Payload
}

// A Payload is the body of an event.
type Payload interface {
	Type() Type // type of the events that have this body
}

// A Head is the envelope without the body.
type Head struct {
	ID        string    // UUID, version 7
	Time      time.Time // time at which the event was encoded, in UTC and whole milliseconds
	Parent    string    // id of the previous stored event that clients are shown; empty if there is none
	Ephemeral bool      // true if clients expect never to see the event again
	Agent     string    // session of the agent that the event belongs to, set by [Event.OfAgent]; usually empty
}

func init() { uuid.EnableRandPool() } // without a pool, each identifier costs a system call

// NewID returns a new identifier. Later identifiers sort after earlier ones.
func NewID() string {
	return uuid.Must(uuid.NewV7()).String()
}

// FormatTime formats a time the way envelopes and protocol messages contain it: RFC 3339 in
// UTC with milliseconds.
func FormatTime(t time.Time) string { return string(appendTime(nil, t)) }

// appendTime appends a time as FormatTime formats it. Package time writes RFC 3339 much faster
// than a layout that it has to read first.
func appendTime(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// An encoder encodes events into a buffer that it uses again for the next event.
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

// Encode returns the event with the given head and body. It fails if the event could
// not be decoded again. The event has no position yet: the log assigns it. The event
// is ephemeral if its kind is, or if the head says so.
//
// What is not valid UTF-8 in the body is replaced by U+FFFD. Such an event is decoded
// from its bytes also in this process, so that everybody reads the same body.
func Encode(head Head, p Payload) (Event, error) {
	kind := p.Type()
	enc := encoders.Get().(*encoder)
	defer encoders.Put(enc)
	buf := &enc.buf
	buf.Reset()
	writeHead(buf, kind, head)
	if err := enc.encode(p); err != nil {
		return Event{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	buf.WriteByte('}')
	if deeper(buf.Bytes(), maxStored) {
		return Event{}, fmt.Errorf("encode %s: %w", kind, &DepthError{Max: maxStored})
	}
	e := Event{Type: kind, kind: kind.row()}
	if e.kind == &unknown {
		e.kind = unknownRow(head)
	}
	var replaced bool
	if e.Bytes, replaced = replaceInvalid(buf.Bytes()); !replaced {
		head.Ephemeral = head.Ephemeral || kind.Ephemeral()
		head.Time = head.Time.UTC().Truncate(time.Millisecond) // the time that a reader of the bytes gets
		e.made = &made{head, p}
	}
	return e, nil
}

// encode writes a body.
func (e *encoder) encode(p Payload) error {
	if plain, ok := p.(plainBody); ok && plain.writePlain(&e.buf) {
		return nil
	}
	if err := e.json.Encode(p); err != nil {
		return err
	}
	e.buf.Truncate(e.buf.Len() - 1) // json.Encoder ends the value with a newline
	return nil
}

// replaceInvalid returns a copy of an encoded event in which everything is valid UTF-8,
// and reports whether a text was replaced on the way. The JSON encoder replaces what is
// invalid in a string by an escape, and copies a json.RawMessage as it is. The report may
// be wrong in one way: an escape can also stand for a text that was there before.
func replaceInvalid(b []byte) (valid []byte, replaced bool) {
	replaced = bytes.Contains(b, []byte(`\ufffd`))
	if utf8.Valid(b) {
		return bytes.Clone(b), replaced
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD")), true
}

// writeHead writes the envelope up to the body.
func writeHead(buf *bytes.Buffer, kind Type, head Head) {
	buf.WriteString(`{"type":"`)
	buf.WriteString(string(kind))
	buf.WriteString(`","id":"`)
	buf.WriteString(head.ID)
	buf.WriteString(`","timestamp":"`)
	buf.Write(appendTime(buf.AvailableBuffer(), head.Time))
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

// ErrEnvelope is wrapped by the errors of [Parse], [Event.Head] and [As] if bytes
// are not an envelope as [Encode] writes it.
var ErrEnvelope = errors.New("not an event envelope")

// Parse returns the event that is stored at a position as the given bytes. It reads
// only the type, and of a type that it does not know the head. It keeps the bytes without
// copying them.
func Parse(seq Seq, b []byte) (Event, error) {
	kind, _, ok := cutBytes(b, `{"type":`)
	if !ok || len(kind) == 0 || len(b) < 2 || b[len(b)-1] != '}' {
		return Event{}, fmt.Errorf("event %d: %w", seq, ErrEnvelope)
	}
	if known := kinds[Type(kind)]; known != nil { // the lookup does not copy the name
		return Event{Seq: seq, Type: known.Type, Bytes: b, kind: known}, nil
	}
	e := Event{Seq: seq, Type: Type(kind), Bytes: b}
	head, _, _ := e.split() // if it fails, so does every reader of the head
	e.kind = unknownRow(head)
	return e, nil
}

// cutQuoted returns the quoted string that follows prefix at the start of b, and what
// follows it. It is not ok if b does not start with prefix, or if the string contains
// escapes.
func cutQuoted(b []byte, prefix string) (value string, rest []byte, ok bool) {
	text, rest, ok := cutBytes(b, prefix)
	return string(text), rest, ok
}

// cutBytes does the same as cutQuoted without copying the string.
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

// split returns the head and the body of the envelope.
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

// Head returns the envelope without its body.
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

// Mentions reports whether the event may contain a field of that name, at any depth.
// If it returns false, there is no such field; if it returns true, the body has to be
// decoded to be sure. It is much cheaper than decoding, and relies on how [Encode]
// writes: names without escapes, and no space before the colon.
func (e Event) Mentions(field string) bool {
	return bytes.Contains(e.Bytes, []byte(`"`+field+`":`))
}

// Decode decodes the body into p.
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

// As returns the body of an event as T. Slices, maps and pointers in it are shared
// with the event and must not be changed.
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
