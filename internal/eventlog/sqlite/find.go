package sqlite

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// The limits of a search in one session.
const (
	findPatience = 2 * time.Second // time for bringing the index up to date
	mostPlaces   = 5000            // newest places of a term that count
)

// Find implements eventlog.Finder.
func (s *Store) Find(ctx context.Context, id event.SessionID, terms []string, most int) (at []event.Seq, ok bool) {
	x := &s.search
	x.mu.Lock()
	defer x.mu.Unlock()
	row, end, err := x.fillSession(ctx, id)
	if err != nil {
		x.disconnect() // opening the index again finds out what is wrong
		return nil, false
	}
	if row == 0 {
		return nil, false
	}
	at, err = x.best(row, end, terms, most)
	if corrupt(err) {
		_ = x.drop()
	}
	return at, err == nil
}

// fillSession brings the index up to date as far as one session is concerned. It returns the
// row and the end of the session; zero if there is no such session, or not enough time.
func (x *searchIndex) fillSession(ctx context.Context, id event.SessionID) (row int64, end event.Seq, err error) {
	if err := x.open(ctx); err != nil {
		return 0, 0, err
	}
	if err := x.takeTouched(); err != nil {
		return 0, 0, err
	}
	for began := time.Now(); x.moveToFront(id); {
		if time.Since(began) > findPatience || ctx.Err() != nil {
			return 0, 0, nil
		}
		if err := x.fillPart(); err != nil {
			return 0, 0, err
		}
	}
	rows, err := x.conn.QueryContext(context.Background(), "SELECT i.session, i.seq FROM log.sessions s JOIN indexed i ON i.session = s.id WHERE s.name = ? AND NOT s.deleted", string(id))
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&row, &end)
	}
	return row, end, cmp.Or(err, rows.Err())
}

// moveToFront has a session taken in before the others, and reports whether the index lacks
// something of it.
func (x *searchIndex) moveToFront(id event.SessionID) bool {
	i := slices.IndexFunc(x.stale, func(one staleSession) bool { return one.id == id })
	if i < 0 {
		return false
	}
	one := x.stale[i]
	x.stale = slices.Insert(slices.Delete(x.stale, i, i+1), 0, one)
	return true
}

// best returns the positions of a session at which most terms are, and the rarest. Of
// positions that are equally good, the newer ones are better.
func (x *searchIndex) best(row int64, end event.Seq, terms []string, most int) ([]event.Seq, error) {
	scores := make(map[event.Seq]float64)
	for _, term := range terms {
		keys, err := x.numbers("SELECT rowid FROM terms WHERE terms MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
			`"`+strings.ReplaceAll(term, `"`, "")+`"`, key(row, 0), key(row, maxSeq), mostPlaces)
		if err != nil {
			return nil, err
		}
		rarity := math.Log(1 + float64(end)/float64(max(1, len(keys))))
		for _, k := range keys {
			scores[event.Seq(k&maxSeq)] += rarity
		}
	}
	found := slices.SortedFunc(maps.Keys(scores), func(a, b event.Seq) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a))
	})
	found = found[:min(len(found), most)]
	slices.Sort(found)
	return found, nil
}
