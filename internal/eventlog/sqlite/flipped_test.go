package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

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
