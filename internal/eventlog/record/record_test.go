package record

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// mostSeq is the largest position that a store may have to give.
const mostSeq = 1<<32 - 1

// batch makes events that follow an end.
func batch(after eventlog.End, texts ...string) eventlog.Batch {
	b := eventlog.Batch{After: after}
	for _, text := range texts {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, event.SessionInfoData{Message: text})
		if err != nil {
			panic(err) // a string can always be encoded
		}
		b.Events = append(b.Events, e)
	}
	return b
}

// whole makes a record of events that follow an end.
func whole(after eventlog.End, texts ...string) (Record, []event.Event) {
	b := batch(after, texts...)
	end, err := b.End()
	if err != nil {
		panic(err) // they are events
	}
	return Record{First: after.Seq + 1, Head: end.Hash[:], Body: Join(b.Events)}, b.Events
}

func TestARecordOpensToWhatWasJoined(t *testing.T) {
	for n := range 5 {
		after := eventlog.End{Seq: 7, Hash: eventlog.Hash{1}}
		texts := slices.Repeat([]string{"text\nwith\nlines"}, n+1)
		r, want := whole(after, texts...)
		links, f := r.Open(after, nil)
		if f != nil || len(links) != n+1 {
			t.Fatalf("%d events: %d links, %v", n+1, len(links), f)
		}
		for i, l := range links {
			after = after.Next(want[i].Bytes)
			if !bytes.Equal(l.Event.Bytes, want[i].Bytes) || l.Event.Seq != after.Seq || l.Event.Type != want[i].Type || l.End != after {
				t.Errorf("event %d of %d is %v, want %v", i, n+1, l, want[i])
			}
		}
		if r.Last() != after.Seq {
			t.Errorf("last = %d, want %d", r.Last(), after.Seq)
		}
	}
}

func TestARecordOpensFromTheMiddle(t *testing.T) {
	at := eventlog.End{}
	r, events := whole(at, "a", "b", "c")
	for i := range events {
		links, f := r.Open(at, nil)
		if f != nil || len(links) != len(events)-i || links[0].Event.Seq != at.Seq+1 {
			t.Errorf("after %d: %v, %v", at.Seq, links, f)
		}
		at = at.Next(events[i].Bytes)
	}
	if _, f := r.Open(at, nil); f == nil || *f != (Fault{4, Missing}) {
		t.Errorf("after the end: %v, want it missing", f)
	}
}

func TestARecordIsCutAfterAnEvent(t *testing.T) {
	r, events := whole(eventlog.End{Seq: 4}, "a", "b", "c")
	for i := range events {
		if got, want := r.UpTo(event.Seq(5+i)), Join(events[:i+1]); !bytes.Equal(got, want) {
			t.Errorf("up to %d: %s, want %s", 5+i, got, want)
		}
	}
}

// FuzzRecord opens what may be in a row. Whatever it is, what comes out is what
// went in, numbered and chained up to the hash of the row.
func FuzzRecord(f *testing.F) {
	r, _ := whole(eventlog.End{}, "a", "b", "c")
	f.Add(int64(r.First), int64(0), r.Head, r.Body)
	f.Add(int64(r.First), int64(2), r.Head, r.Body)
	f.Add(int64(-5), int64(3), []byte{}, []byte("\n\n\n"))
	f.Add(int64(9), int64(3), []byte{1}, []byte{})
	f.Fuzz(func(t *testing.T, first, after int64, head, body []byte) {
		at := eventlog.End{Seq: event.Seq(after & mostSeq)}
		r := Record{First: event.Seq(first & mostSeq), Head: head, Body: body}
		links, fault := r.Open(at, nil)
		if fault != nil {
			if fault.At <= at.Seq {
				t.Errorf("a fault at %d, before what is read", fault.At)
			}
			// Hashing anew makes most bodies whole: try those as well.
			for line := range bytes.SplitSeq(body, newline) {
				at = at.Next(line)
			}
			r.First, at, r.Head = event.Seq(after&mostSeq)+1, eventlog.End{Seq: event.Seq(after & mostSeq)}, at.Hash[:]
			if links, fault = r.Open(at, nil); fault != nil {
				return
			}
		}
		var events []event.Event
		for _, l := range links {
			if at = at.Next(l.Event.Bytes); l.End != at || l.Event.Seq != at.Seq {
				t.Errorf("event %d is chained to %v, want %v", l.Event.Seq, l.End, at)
			}
			events = append(events, l.Event)
		}
		if !bytes.HasSuffix(body, Join(events)) || !bytes.Equal(at.Hash[:], r.Head) || r.Last() != at.Seq {
			t.Errorf("%q came out of %q", Join(events), body)
		}
	})
}
