package sqlite

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

func TestAReaderHoldsALimitedPartOfASession(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	filler := strings.Repeat("x", chunk/10)
	var end eventlog.End
	for range 35 {
		end = add(t, s, "s", end, filler)
	}
	pages, records := 0, 0
	for page, err := range s.reader().Pages(t.Context(), 1, 1, maxSeq) {
		size := 0
		for _, r := range page {
			size += len(r.Body)
		}
		if size > chunk+2*len(filler) || err != nil {
			t.Errorf("page %d holds %d bytes, %v", pages, size, err)
		}
		pages++
		records += len(page)
	}
	if pages < 3 || records != 35 {
		t.Errorf("%d records in %d pages", records, pages)
	}
}

// Reading a session in parts must not cost more, part by part, the longer the
// session is: records are counted, not time.
func TestReadingFromAPositionReadsWhatIsAfterIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	filler := strings.Repeat("x", chunk/10)
	const appends, each = 200, 2
	var end eventlog.End
	for range appends {
		end = add(t, s, "s", end, filler, filler)
	}
	s.search.mu.Lock() // the index would read the log a while after the last append
	err := s.search.fill(t.Context(), 0)
	s.search.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]func(event.Seq) iter.Seq2[event.Event, error]{
		"by position": func(n event.Seq) iter.Seq2[event.Event, error] { return s.Read(t.Context(), "s", n) },
		"by its end": func(n event.Seq) iter.Seq2[event.Event, error] {
			end, err := s.EndAt(t.Context(), "s", n)
			if err != nil {
				t.Fatal(err)
			}
			return s.ReadFrom(t.Context(), "s", end)
		},
	} {
		before := s.fetched.Load()
		for at := event.Seq(0); at < appends*each; {
			for e, err := range from(at) {
				if err != nil {
					t.Fatal(err)
				}
				if at++; e.Seq != at {
					t.Fatalf("%s: event %d follows %d", name, e.Seq, at-1)
				}
				if at%50 == 0 {
					break
				}
			}
		}
		const pages, ahead = appends * each / 50, 25 // a page is fetched while another is looked at
		if n := s.fetched.Load() - before; n > appends+pages*ahead {
			t.Errorf("%s: %d records were read of %d", name, n, appends)
		}
	}
}

// What is read from a position is verified, and so is what holds the position.
func TestDamageIsFoundFromAPosition(t *testing.T) {
	for text, last := range map[string]event.Seq{"v1": 0, "v3": 2, "v5": 5, "v8": 7} { // the last position from which it is in what is read
		t.Run(text, func(t *testing.T) {
			path := makeDamageStore(t)
			tamper(t, path, fmt.Sprintf(flip(text), victimKeys))
			s := open(t, path)
			for after := range event.Seq(9) {
				var err error
				for _, err = range s.Read(t.Context(), "victim", after) {
				}
				_, damaged := errors.AsType[*eventlog.Damage](err)
				if damaged != (after <= last) {
					t.Errorf("read after %d: %v", after, err)
				}
			}
			_, err := read(t, s, "victim")
			if _, damaged := errors.AsType[*eventlog.Damage](err); !damaged {
				t.Errorf("the whole session is read: %v", err)
			}
		})
	}
}
