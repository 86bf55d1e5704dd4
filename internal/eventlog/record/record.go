// Package record reads the events of sessions from the records of a store.
//
//   - A record is what one append has added. A store keeps it as a row.
//   - What is read is verified: an event is only returned if the chain of hashes holds up to
//     the end of its record.
//   - A fork shares the events of its parent by reference. It reads them in the parent's records.
//   - What is wrong with stored records is a [Fault] here, and becomes an [eventlog.Damage] for
//     the caller if the session still exists.
package record

import (
	"bytes"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Record is what one append has added.
type Record struct {
	First event.Seq // position of the first event
	Head  []byte    // hash of the chain after the last event
	Body  []byte    // bytes of the events, joined by newlines
}

var newline = []byte{'\n'}

// Join returns the body of a record with the given events.
func Join(events []event.Event) []byte {
	size := len(events) - 1
	for _, e := range events {
		size += len(e.Bytes)
	}
	body := make([]byte, 0, size)
	for i, e := range events {
		if i > 0 {
			body = append(body, '\n')
		}
		body = append(body, e.Bytes...)
	}
	return body
}

// Last returns the position of the record's last event.
func (r Record) Last() event.Seq {
	return r.First + event.Seq(bytes.Count(r.Body, newline))
}

// UpTo returns the body without the events after position n, which is in the record.
func (r Record) UpTo(n event.Seq) []byte {
	rest := r.Body
	for range n - r.First + 1 {
		_, rest, _ = bytes.Cut(rest, newline)
	}
	return bytes.TrimSuffix(r.Body[:len(r.Body)-len(rest)], newline)
}

// A Fault says what is wrong with stored records, and at which position.
type Fault struct {
	At     event.Seq
	Reason string
}

func (f *Fault) Error() string { return fmt.Sprintf("event %d: %s", f.At, f.Reason) }

// The reasons of faults and of damage.
const (
	Missing     = "it is missing"
	NotAnEvent  = "it is not an event"
	BrokenChain = "the chain of hashes breaks"
	BrokenEntry = "its entry in the index cannot be read"
	OtherHash   = "the index has another hash for it"
	Unknown     = "there is a record that the index does not know of"
	OtherOrigin = "the session that it was forked from has other events"
	Orphaned    = "the session that it was forked from is gone"
)

// A Link is an event and the end of the chain after it.
type Link struct {
	Event event.Event
	End   eventlog.End
}

// Open checks a record against the chain, which is verified up to the end after, and
// appends its events after that end to links. It returns a fault and no events unless
// all of them fit.
func (r Record) Open(after eventlog.End, links []Link) ([]Link, *Fault) {
	from := after.Seq + 1
	if r.First > from {
		return nil, &Fault{from, Missing}
	}
	seq, rest, more := r.First-1, r.Body, true
	for more {
		var line []byte
		line, rest, more = bytes.Cut(rest, newline)
		if seq++; seq < from {
			continue
		}
		e, err := event.Parse(seq, line[:len(line):len(line)])
		if err != nil {
			return nil, &Fault{seq, NotAnEvent}
		}
		after = after.Next(e.Bytes)
		links = append(links, Link{e, after})
	}
	if seq < from {
		return nil, &Fault{from, Missing}
	}
	if !bytes.Equal(after.Hash[:], r.Head) {
		return nil, &Fault{from, BrokenChain}
	}
	return links, nil
}
