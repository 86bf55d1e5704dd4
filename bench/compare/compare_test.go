package compare

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSidesTakeTurnsInChangingOrder(t *testing.T) {
	var order strings.Builder
	side := func(name string) Side {
		return Side{Name: name, Block: func() int {
			order.WriteString(name)
			return 1
		}}
	}
	r := Alternate(3, side("a"), side("b"))
	if len(r.A.Samples) != MinPairs || len(r.B.Samples) != MinPairs {
		t.Errorf("%d and %d samples, want %d of each though fewer were asked for", len(r.A.Samples), len(r.B.Samples), MinPairs)
	}
	if want := "ab" + strings.Repeat("abba", MinPairs/2); order.String() != want {
		t.Errorf("the order was %s, want %s", order.String(), want)
	}
}

func TestOnlyTheBlockIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		slow := Side{
			Before: func() { time.Sleep(time.Hour) },
			After:  func() { time.Sleep(time.Hour) },
			Block: func() int {
				n++
				time.Sleep(time.Duration(n) * 10 * time.Second) // the first does not count
				return 10
			},
		}
		fast := Side{Block: func() int {
			time.Sleep(2 * time.Second)
			return 2
		}}
		r := Alternate(11, slow, fast)
		if got, want := r.A.Wall(), (Spread{2 * time.Second, 7 * time.Second}); got != want {
			t.Errorf("one turn took %+v, want %+v", got, want)
		}
		if got, want := r.Wall(), (Ratio{2, 7}); got != want {
			t.Errorf("the ratio is %+v, want %+v", got, want)
		}
		if best, median := r.A.Rate(); best != 0.5 || median != 1.0/7 {
			t.Errorf("the rate is %v; %v", best, median)
		}
	})
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	for before := CPU(); CPU() == before; { // ends only if the work of asking is seen
	}
}

func TestAllocationsAreCountedForEachTurn(t *testing.T) {
	var kept [][]byte
	side := func(each int) Side {
		return Side{Block: func() int {
			kept = nil
			for range 1000 * each {
				kept = append(kept, make([]byte, 8))
			}
			return 1000
		}}
	}
	r := Alternate(0, side(1), side(3))
	if a, b := r.A.Allocations(), r.B.Allocations(); a < 1 || a >= 2 || b < 3 || b >= 4 {
		t.Errorf("a turn allocates %.2f and %.2f times, want 1 and 3", a, b)
	}
}

func TestATableHasColumns(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out, "name", "ms")
	table.Row("a longer name", Spread{time.Microsecond, 2500 * time.Nanosecond})
	table.Row("short", Ratio{1, 1.234})
	table.Print()
	want := "name           ms\na longer name  1.0; 2.5\nshort          1.00; 1.23\n"
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
}
