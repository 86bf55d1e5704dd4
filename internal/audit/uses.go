package audit

import "hash/maphash"

// uses remembers which event used an id last. Only hashes of the ids are kept, because a
// log can have millions of them.
type uses struct {
	seed maphash.Seed
	at   map[uint64]int64
}

func newUses() uses { return uses{maphash.MakeSeed(), make(map[uint64]int64)} }

// last returns the position of the event that used an id last; zero if there is none.
func (u uses) last(id string) int64 { return u.at[maphash.String(u.seed, id)] }

// add records that an event uses an id, and returns the position of the last event that
// did; zero if there is none.
func (u uses) add(id string, seq int64) (before int64) {
	before = u.last(id)
	u.at[maphash.String(u.seed, id)] = seq
	return before
}
