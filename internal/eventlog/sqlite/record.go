package sqlite

import (
	"bytes"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A record is a row of the records table: the events of one append.
type record struct {
	first event.Seq // position of the first event
	head  []byte    // hash of the chain after the last event
	body  []byte    // bytes of the events, joined by newlines
}

// key returns the key of a session's record that begins at a position.
func key(session int64, first event.Seq) int64 { return session<<32 | int64(first) }

// maxSeq is the largest position that fits into a key.
const maxSeq = 1<<32 - 1

// join returns the body of a record with the given events.
func join(events []event.Event) []byte {
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

// last returns the position of the record's last event.
func (r record) last() event.Seq {
	return r.first + event.Seq(bytes.Count(r.body, newline))
}

// upTo returns the body without the events after position n, which is in the record.
func (r record) upTo(n event.Seq) []byte {
	rest := r.body
	for range n - r.first + 1 {
		_, rest, _ = bytes.Cut(rest, newline)
	}
	return bytes.TrimSuffix(r.body[:len(r.body)-len(rest)], newline)
}

// A fault says what is wrong with stored records, and at which position.
type fault struct {
	at     event.Seq
	reason string
}

func (f *fault) Error() string { return fmt.Sprintf("event %d: %s", f.at, f.reason) }

// The reasons of faults and of damage.
const (
	missing       = "it is missing"
	notAnEvent    = "it is not an event"
	brokenChain   = "the chain of hashes breaks"
	brokenPage    = "the page of the file that holds it cannot be read"
	brokenEntry   = "its entry in the index cannot be read"
	otherHash     = "the index has another hash for it"
	unknownRecord = "there is a record that the index does not know of"
	otherOrigin   = "the session that it was forked from has other events"
	orphaned      = "the session that it was forked from is gone"
)

// A link is an event and the end of the chain after it.
type link struct {
	event event.Event
	end   eventlog.End
}

// open checks a record against the chain, which is verified up to the end after, and
// appends its events after that end to links. It returns a fault and no events unless
// all of them fit.
func (r record) open(after eventlog.End, links []link) ([]link, *fault) {
	from := after.Seq + 1
	if r.first > from {
		return nil, &fault{from, missing}
	}
	seq, rest, more := r.first-1, r.body, true
	for more {
		var line []byte
		line, rest, more = bytes.Cut(rest, newline)
		if seq++; seq < from {
			continue
		}
		e, err := event.Parse(seq, line[:len(line):len(line)])
		if err != nil {
			return nil, &fault{seq, notAnEvent}
		}
		after = after.Next(e.Bytes)
		links = append(links, link{e, after})
	}
	if seq < from {
		return nil, &fault{from, missing}
	}
	if !bytes.Equal(after.Hash[:], r.head) {
		return nil, &fault{from, brokenChain}
	}
	return links, nil
}

var newline = []byte{'\n'}
