package keeper_test // an external test: package keeper must not import what the test imports

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

func TestAClaimIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const n = 20
	won := make([]bool, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			if won[i], err = Claim(int(d.Fd()), fmt.Sprint("claim.", i), record.New(Claimed).WithInt("by", int64(i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(dir, ClaimFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if won[i] != (r.Int("by") == int64(i)) {
			t.Errorf("%d won: %v, and the claim is %s", i, won[i], text)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%v are left", entries)
	}
}
