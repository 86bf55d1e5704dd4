// Package compare measures two ways of doing the same work on a machine that
// does not hold still.
//
// Both sides work in short blocks that take turns, so that what disturbs one
// soon disturbs the other, and the order within each pair changes. What counts
// are ratios: of the best blocks, which the noise cannot improve, and of the
// middle ones, which it spares half the time.
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

// MinPairs is the least number of pairs that means anything.
const MinPairs = 10

// A Side is one way of doing the work.
type Side struct {
	Name   string
	Before func()             // prepares a block, which is not measured; may be nil
	Block  func() (turns int) // does a share of the work and tells how much it was
	After  func()             // cleans up, which is not measured; may be nil
}

// A Sample is one block.
type Sample struct {
	Turns int
	Wall  time.Duration
	CPU   time.Duration // of this process, in user and system

	Allocations int // of this process
}

// A Series is the blocks of one side.
type Series struct {
	Name    string
	Samples []Sample
}

// A Spread is what one turn costs, in the best block and in the middle one.
type Spread struct{ Min, Median time.Duration }

// Wall is the time that a turn takes.
func (s Series) Wall() Spread { return s.spread(func(b Sample) time.Duration { return b.Wall }) }

// CPU is the computing that a turn takes.
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

// Allocations is how often a turn allocates, in the best block.
func (s Series) Allocations() float64 {
	least := math.Inf(1)
	for _, b := range s.Samples {
		least = min(least, float64(b.Allocations)/float64(max(1, b.Turns)))
	}
	return least
}

// Rate is turns per second in the best block and in the middle one.
func (s Series) Rate() (best, median float64) {
	w := s.Wall()
	return 1 / w.Min.Seconds(), 1 / w.Median.Seconds()
}

// A Result is two sides that were measured together.
type Result struct{ A, B Series }

// A Ratio is how many times the cost of B is that of A.
type Ratio struct{ Min, Median float64 }

// Wall compares the times.
func (r Result) Wall() Ratio { return r.A.Wall().over(r.B.Wall()) }

// CPU compares the computing.
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

// Alternate runs pairs of blocks, never less than MinPairs, after one of each
// that does not count.
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

// Measure runs one block. It starts without garbage, so that no block pays for
// another.
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

// CPU is the time that this process has spent computing.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A Table is plain text in columns.
type Table struct{ w *tabwriter.Writer }

// NewTable begins a table with the names of its columns.
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
