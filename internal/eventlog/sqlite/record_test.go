package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	_ "github.com/abide-run/abide/internal/seedtest"
)

// whole makes a record of events that follow an end.
func whole(after eventlog.End, texts ...string) (record, []event.Event) {
	b := batch(after, texts...)
	end, err := b.End()
	if err != nil {
		panic(err) // they are events
	}
	return record{first: after.Seq + 1, head: end.Hash[:], body: join(b.Events)}, b.Events
}

func TestARecordOpensToWhatWasJoined(t *testing.T) {
	for n := range 5 {
		after := eventlog.End{Seq: 7, Hash: eventlog.Hash{1}}
		texts := slices.Repeat([]string{"text\nwith\nlines"}, n+1)
		r, want := whole(after, texts...)
		links, f := r.open(after, nil)
		if f != nil || len(links) != n+1 {
			t.Fatalf("%d events: %d links, %v", n+1, len(links), f)
		}
		for i, l := range links {
			after = after.Next(want[i].Bytes)
			if !bytes.Equal(l.event.Bytes, want[i].Bytes) || l.event.Seq != after.Seq || l.event.Type != want[i].Type || l.end != after {
				t.Errorf("event %d of %d is %v, want %v", i, n+1, l, want[i])
			}
		}
		if r.last() != after.Seq {
			t.Errorf("last = %d, want %d", r.last(), after.Seq)
		}
	}
}

func TestARecordOpensFromTheMiddle(t *testing.T) {
	at := eventlog.End{}
	r, events := whole(at, "a", "b", "c")
	for i := range events {
		links, f := r.open(at, nil)
		if f != nil || len(links) != len(events)-i || links[0].event.Seq != at.Seq+1 {
			t.Errorf("after %d: %v, %v", at.Seq, links, f)
		}
		at = at.Next(events[i].Bytes)
	}
	if _, f := r.open(at, nil); f == nil || *f != (fault{4, missing}) {
		t.Errorf("after the end: %v, want it missing", f)
	}
}

func TestARecordIsCutAfterAnEvent(t *testing.T) {
	r, events := whole(eventlog.End{Seq: 4}, "a", "b", "c")
	for i := range events {
		if got, want := r.upTo(event.Seq(5+i)), join(events[:i+1]); !bytes.Equal(got, want) {
			t.Errorf("up to %d: %s, want %s", 5+i, got, want)
		}
	}
}

// FuzzRecord opens what may be in a row. Whatever it is, what comes out is what
// went in, numbered and chained up to the hash of the row.
func FuzzRecord(f *testing.F) {
	r, _ := whole(eventlog.End{}, "a", "b", "c")
	f.Add(int64(r.first), int64(0), r.head, r.body)
	f.Add(int64(r.first), int64(2), r.head, r.body)
	f.Add(int64(-5), int64(3), []byte{}, []byte("\n\n\n"))
	f.Add(int64(9), int64(3), []byte{1}, []byte{})
	f.Fuzz(func(t *testing.T, first, after int64, head, body []byte) {
		at := eventlog.End{Seq: event.Seq(after & maxSeq)}
		r := record{first: event.Seq(first & maxSeq), head: head, body: body}
		links, fault := r.open(at, nil)
		if fault != nil {
			if fault.at <= at.Seq {
				t.Errorf("a fault at %d, before what is read", fault.at)
			}
			// Hashing anew makes most bodies whole: try those as well.
			for line := range bytes.SplitSeq(body, newline) {
				at = at.Next(line)
			}
			r.first, at, r.head = event.Seq(after&maxSeq)+1, eventlog.End{Seq: event.Seq(after & maxSeq)}, at.Hash[:]
			if links, fault = r.open(at, nil); fault != nil {
				return
			}
		}
		var events []event.Event
		for _, l := range links {
			if at = at.Next(l.event.Bytes); l.end != at || l.event.Seq != at.Seq {
				t.Errorf("event %d is chained to %v, want %v", l.event.Seq, l.end, at)
			}
			events = append(events, l.event)
		}
		if !bytes.HasSuffix(body, join(events)) || !bytes.Equal(at.Hash[:], r.head) || r.last() != at.Seq {
			t.Errorf("%q came out of %q", join(events), body)
		}
	})
}

// Whatever bit of the file is flipped, a session says a part of what it said,
// from the beginning and in order, and if that is not all there is an error.
func TestAnyFlippedBitIsDetectedOrHarmless(t *testing.T) {
	good, err := os.ReadFile(makeDamageStore(t))
	if err != nil {
		t.Fatal(err)
	}
	truth := map[event.SessionID][]string{
		"victim": {"v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"},
		"fork":   {"v1", "v2", "v3", "f4"},
		"other":  {"o1"},
	}
	var used []int // most of a small file is empty
	for i, b := range good {
		if b != 0 {
			used = append(used, i)
		}
	}
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		bad := slices.Clone(good)
		bad[rapid.SampledFrom(used).Draw(r, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			r.Fatal(err)
		}
		s, err := Open(r.Context(), path, Options{Sync: eventlog.Normal})
		if err != nil {
			return // refused as a whole
		}
		defer s.Close()
		for id, want := range truth {
			got, err := read(t, s, id)
			if err != nil {
				want = want[:min(len(got), len(want))]
			}
			if !slices.Equal(got, want) {
				r.Errorf("%s says %q, %v; it said %q", id, got, err, truth[id])
			}
		}
	})
}
