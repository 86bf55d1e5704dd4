package sqlite

import (
	"bytes"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A record is what one append added: a row of the records table.
type record struct {
	first event.Seq
	head  []byte // the chain's hash after the last event
	body  []byte // the events, joined by line breaks
}

// key is where a record of a session lies in the table.
func key(session int64, first event.Seq) int64 { return session<<32 | int64(first) }

// maxSeq is the last position that a key has room for.
const maxSeq = 1<<32 - 1

// join makes the body of a record.
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

// last returns the number of the record's last event.
func (r record) last() event.Seq {
	return r.first + event.Seq(bytes.Count(r.body, newline))
}

// A fault is what is wrong with a record, and where.
type fault struct {
	at     event.Seq
	reason string
}

func (f *fault) Error() string { return fmt.Sprintf("event %d: %s", f.at, f.reason) }

// A link is an event and the end of the chain after it.
type link struct {
	event event.Event
	end   eventlog.End
}

// open checks a record against the chain, which was verified up to the given
// end, and adds its events after that to links. No event of a record is trusted
// unless all of them fit.
func (r record) open(after eventlog.End, links []link) ([]link, error) {
	if r.first > after.Seq+1 {
		return nil, &fault{after.Seq + 1, missing}
	}
	from, seq, rest, more := after.Seq+1, r.first-1, r.body, true
	for more {
		var line []byte
		line, rest, more = bytes.Cut(rest, newline)
		if seq++; seq < from {
			continue
		}
		e, err := event.Parse(seq, line[:len(line):len(line)])
		if err != nil {
			return nil, &fault{seq, "it is not an event"}
		}
		after = after.Next(e.Bytes)
		links = append(links, link{e, after})
	}
	if after.Seq < from {
		return nil, &fault{from, missing}
	}
	if !bytes.Equal(after.Hash[:], r.head) {
		return nil, &fault{from, "the chain of hashes breaks"}
	}
	return links, nil
}

// missing is the reason of a fault where no record is.
const missing = "it is missing"

var newline = []byte{'\n'}
