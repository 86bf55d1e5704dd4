package record

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// An Entry is what a store has of a session beside its records, for another store that is to
// have the session as it is.
type Entry struct {
	Head
	ID                event.SessionID
	Created, Modified int64             // microseconds since 1970
	Deleted           bool              // true if the session is only kept for its forks
	Counted           bool              // true if its costs are in the sums
	Info              []byte            // entry of the index, as JSON
	Secrets           []eventlog.Secret // sealed
}

// A CostRow is a sum of costs as a store has it.
type CostRow struct {
	Of event.SessionID // session whose events say so; empty for deleted ones
	eventlog.Cost
}

// Digest returns a digest of the entry, by which a later reading notices a change. Records
// cannot change without it: it has the end of the chain.
func (e Entry) Digest() [sha256.Size]byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // the type has nothing that cannot be encoded
	}
	return sha256.Sum256(text)
}

// Follow yields the records of a session as long as the chain holds: from the end that the
// session shares with its parent to its own end. An error that is a *Fault says where it breaks;
// the records before it are good.
func Follow(h Head, pages iter.Seq2[[]Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		at := eventlog.End{Seq: h.Shared, Hash: h.Base}
		var links []Link
		for records, err := range pages {
			for _, r := range records {
				if at.Seq >= h.End.Seq {
					yield(Record{}, &Fault{h.End.Seq + 1, Unknown})
					return
				}
				var f *Fault
				if links, f = r.Open(at, links[:0]); f == nil && r.First != at.Seq+1 {
					f = &Fault{at.Seq + 1, Unknown} // it repeats events of the record before
				}
				if f != nil {
					yield(Record{}, f)
					return
				}
				at = links[len(links)-1].End
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
		switch {
		case at.Seq < h.End.Seq:
			yield(Record{}, &Fault{at.Seq + 1, Missing})
		case at != h.End:
			yield(Record{}, &Fault{max(h.End.Seq, 1), OtherHash})
		}
	}
}

// CheckOrigin returns a *Fault unless the parent of a fork has the chain that the fork was made
// from.
func CheckOrigin(ctx context.Context, rows Rows, h Head) error {
	if h.Parent == 0 {
		return nil
	}
	parent, err := ancestor(ctx, rows, h)
	if err != nil {
		return err
	}
	if parent.End.Seq < h.Shared {
		return &Fault{parent.End.Seq + 1, OtherOrigin}
	}
	end, err := EndAt(ctx, rows, parent, h.Shared)
	if err == nil && end.Hash != h.Base {
		err = &Fault{max(h.Shared, 1), OtherOrigin}
	}
	return err
}
