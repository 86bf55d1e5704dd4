// Package compare compares two ways of doing the same work on a machine whose speed
// varies.
//
// Both sides work in short alternating blocks, so that a disturbance affects both, and the
// order within each pair changes. The results are ratios: of the best blocks, which
// disturbances cannot make better, and of the median blocks, of which disturbances affect
// at most half.
package compare

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

// MinPairs is the least number of pairs for a meaningful result.
const MinPairs = 10

// A Side is one way of doing the work.
type Side struct {
	Name   string
	Before func()             // prepares a block; not measured; may be nil
	Block  func() (turns int) // does part of the work and returns the number of turns
	After  func()             // cleans up; not measured; may be nil
}

// A Sample is the measurement of one block.
type Sample struct {
	Turns int
	Wall  time.Duration
	CPU   time.Duration // user and system time of this process

	Allocations int // number of allocations of this process
}

// A Series is the blocks of one side.
type Series struct {
	Name    string
	Samples []Sample
}

// A Spread is the cost of one turn, in the best block and in the median block.
type Spread struct{ Min, Median time.Duration }

// Wall returns the elapsed time of a turn.
func (s Series) Wall() Spread { return s.spread(func(b Sample) time.Duration { return b.Wall }) }

// CPU returns the processor time of a turn.
func (s Series) CPU() Spread { return s.spread(func(b Sample) time.Duration { return b.CPU }) }

func (s Series) spread(of func(Sample) time.Duration) Spread {
	var each []time.Duration
	for _, b := range s.Samples {
		each = append(each, of(b)/time.Duration(max(1, b.Turns)))
	}
	slices.Sort(each)
	if len(each) == 0 {
		return Spread{}
	}
	return Spread{each[0], each[len(each)/2]}
}

// Allocations returns the number of allocations of a turn, in the best block.
func (s Series) Allocations() float64 {
	least := math.Inf(1)
	for _, b := range s.Samples {
		least = min(least, float64(b.Allocations)/float64(max(1, b.Turns)))
	}
	return least
}

// Rate returns the turns per second in the best block and in the median block.
func (s Series) Rate() (best, median float64) {
	w := s.Wall()
	return 1 / w.Min.Seconds(), 1 / w.Median.Seconds()
}

// A Result is two sides that were measured together.
type Result struct{ A, B Series }

// A Ratio is the cost of A divided by that of B.
type Ratio struct{ Min, Median float64 }

// Wall compares the times.
func (r Result) Wall() Ratio { return r.A.Wall().over(r.B.Wall()) }

// CPU compares the processor times.
func (r Result) CPU() Ratio { return r.A.CPU().over(r.B.CPU()) }

func (s Spread) over(t Spread) Ratio {
	return Ratio{float64(s.Min) / float64(t.Min), float64(s.Median) / float64(t.Median)}
}

// String shows both ratios.
func (r Ratio) String() string { return fmt.Sprintf("%.2f; %.2f", r.Min, r.Median) }

// String shows both times in microseconds.
func (s Spread) String() string {
	return fmt.Sprintf("%.1f; %.1f", s.Min.Seconds()*1e6, s.Median.Seconds()*1e6)
}

// Alternate runs pairs of blocks, at least MinPairs, after one block of each side that is
// not counted.
func Alternate(pairs int, a, b Side) Result {
	r := Result{A: Series{Name: a.Name}, B: Series{Name: b.Name}}
	Measure(a)
	Measure(b)
	for i := range max(pairs, MinPairs) {
		if i%2 == 0 {
			r.A.Samples = append(r.A.Samples, Measure(a))
			r.B.Samples = append(r.B.Samples, Measure(b))
		} else {
			r.B.Samples = append(r.B.Samples, Measure(b))
			r.A.Samples = append(r.A.Samples, Measure(a))
		}
	}
	return r
}

// Measure runs one block. It collects garbage first, so that no block pays for the garbage
// of another.
func Measure(s Side) Sample {
	call(s.Before)
	defer call(s.After)
	runtime.GC()
	allocated := allocations()
	cpu, start := CPU(), time.Now()
	turns := s.Block()
	sample := Sample{Turns: turns, Wall: time.Since(start), CPU: CPU() - cpu}
	sample.Allocations = allocations() - allocated
	return sample
}

func allocations() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.Mallocs)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

// CPU returns the processor time of this process so far.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A Table is a table of plain text.
type Table struct{ w *tabwriter.Writer }

// NewTable returns a table with the given column names.
func NewTable(w io.Writer, columns ...any) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.Row(columns...)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			_, _ = fmt.Fprint(t.w, "\t")
		}
		_, _ = fmt.Fprint(t.w, c)
	}
	_, _ = fmt.Fprintln(t.w)
}

// Print writes the table.
func (t *Table) Print() { _ = t.w.Flush() }
