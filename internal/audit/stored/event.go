package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// An Event is an envelope that was taken apart. Its fields share the memory of the
// line that it was read from.
type Event struct {
	Seq       int64
	Type      string
	ID        string
	Time      time.Time
	Parent    string // empty for null
	Ephemeral bool
	Agent     string
	Data      []byte // a JSON object
	Line      []byte // all of it
}

// An EnvelopeError says which member of an envelope is not as it should be.
type EnvelopeError struct{ Member, Reason string }

func (e *EnvelopeError) Error() string { return fmt.Sprintf("member %q %s", e.Member, e.Reason) }

// timeLayout is the one form that a timestamp has.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Decode takes an envelope apart. The members stand in one order, without white
// space between them, and the body is a JSON object: everything else is an error.
func Decode(seq int64, line []byte) (e Event, err error) {
	e = Event{Seq: seq, Line: line}
	c := cursor{rest: line}
	c.expect("type", `{"type":`)
	e.Type = c.text("type")
	c.expect("id", `,"id":`)
	e.ID = c.text("id")
	c.expect("timestamp", `,"timestamp":`)
	stamp := c.text("timestamp")
	c.expect("parentId", `,"parentId":`)
	if !c.skip("null") {
		e.Parent = c.text("parentId")
	}
	e.Ephemeral = c.skip(`,"ephemeral":true`)
	if c.skip(`,"agentId":`) {
		e.Agent = c.text("agentId")
	}
	c.expect("data", `,"data":`)
	if c.err != nil {
		return e, c.err
	}
	// Parse takes a comma for the point too, which is a form that nobody writes.
	if e.Time, err = time.Parse(timeLayout, stamp); err != nil || e.Time.Format(timeLayout) != stamp {
		return e, &EnvelopeError{"timestamp", "is not a time in UTC with milliseconds"}
	}
	body, closed := bytes.CutSuffix(c.rest, []byte("}"))
	if !closed || len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return e, &EnvelopeError{"data", "is not a JSON object that can be read"}
	}
	e.Data = body
	return e, nil
}

// A cursor reads an envelope from left to right, until something is wrong.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(member, reason string) {
	if c.err == nil {
		c.err = &EnvelopeError{member, reason}
	}
}

func (c *cursor) skip(text string) bool {
	if c.err != nil || !bytes.HasPrefix(c.rest, []byte(text)) {
		return false
	}
	c.rest = c.rest[len(text):]
	return true
}

func (c *cursor) expect(member, text string) {
	if !c.skip(text) {
		c.fail(member, "is missing or in another place")
	}
}

// text reads a string without escapes, which is never empty.
func (c *cursor) text(member string) string {
	if !c.skip(`"`) {
		c.fail(member, "is not a text")
		return ""
	}
	end := bytes.IndexByte(c.rest, '"')
	if end <= 0 || bytes.IndexFunc(c.rest[:end], func(r rune) bool { return r == '\\' || r < ' ' }) >= 0 {
		c.fail(member, "is empty or not a plain text")
		return ""
	}
	text := string(c.rest[:end])
	c.rest = c.rest[end+1:]
	return text
}

// Lines yields the events of a record's body with their positions.
func (r Record) Lines() func(yield func(seq int64, line []byte) bool) {
	return func(yield func(int64, []byte) bool) {
		seq, rest, more := r.First, r.Body, true
		for more {
			var line []byte
			line, rest, more = bytes.Cut(rest, []byte{'\n'})
			if !yield(seq, line) {
				return
			}
			seq++
		}
	}
}
