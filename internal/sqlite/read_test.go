package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

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
	for p := range s.pages(1, 1, maxSeq) {
		size := 0
		for _, r := range p.records {
			size += len(r.body)
		}
		if size > chunk+2*len(filler) || p.err != nil {
			t.Errorf("page %d holds %d bytes, %v", pages, size, p.err)
		}
		pages++
		records += len(p.records)
	}
	if pages < 3 || records != 35 {
		t.Errorf("%d records in %d pages", records, pages)
	}
}
