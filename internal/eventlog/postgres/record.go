package postgres

import (
	"bytes"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A record is a row of the records table: the events of one append, joined by newlines.
type record struct {
	first event.Seq
	head  []byte // hash of the chain after the last event
	body  []byte
}

var newline = []byte{'\n'}

// join returns the body of a record with the given events.
func join(events []event.Event) []byte {
	lines := make([][]byte, len(events))
	for i, e := range events {
		lines[i] = e.Bytes
	}
	return bytes.Join(lines, newline)
}

// last returns the position of the record's last event.
func (r record) last() event.Seq { return r.first + event.Seq(bytes.Count(r.body, newline)) }

// upTo returns the body without the events after position n, which is in the record.
func (r record) upTo(n event.Seq) []byte {
	lines := bytes.SplitN(r.body, newline, int(n-r.first)+2)
	return bytes.Join(lines[:n-r.first+1], newline)
}

// A fault says what is wrong with stored records, and at which position.
type fault struct {
	at     event.Seq
	reason string
}

func (f *fault) Error() string { return fmt.Sprintf("event %d: %s", f.at, f.reason) }

// The reasons of faults.
const (
	missing     = "it is missing"
	notAnEvent  = "it is not an event"
	brokenChain = "the chain of hashes breaks"
	brokenEntry = "its entry in the index cannot be read"
	otherHash   = "the index has another hash for it"
	otherOrigin = "the session that it was forked from has other events"
	orphaned    = "the session that it was forked from is gone"
)

// A link is an event and the end of the chain after it.
type link struct {
	event event.Event
	end   eventlog.End
}

// open checks a record against the chain, which is verified up to the end after, and returns its
// events after that end: all of them, or a fault.
func (r record) open(after eventlog.End) (links []link, f *fault) {
	if r.first > after.Seq+1 {
		return nil, &fault{after.Seq + 1, missing}
	}
	from := after.Seq + 1
	for i, line := range bytes.Split(r.body, newline) {
		seq := r.first + event.Seq(i)
		if seq < from {
			continue
		}
		e, err := event.Parse(seq, line[:len(line):len(line)])
		if err != nil {
			return nil, &fault{seq, notAnEvent}
		}
		after = after.Next(e.Bytes)
		links = append(links, link{e, after})
	}
	switch {
	case len(links) == 0:
		return nil, &fault{from, missing}
	case !bytes.Equal(after.Hash[:], r.head):
		return nil, &fault{from, brokenChain}
	}
	return links, nil
}
