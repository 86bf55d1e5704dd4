package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

func main() {
	instant.Main()
	abide := flag.String("abide", "", "the built program; needed")
	dir := flag.String("dir", "", "folder for the data folders; a temporary one if empty")
	only := flag.String("only", "", "measure only workloads whose name contains this")
	pairs := flag.Int("pairs", compare.MinPairs, "pairs of blocks of each measurement")
	flag.Parse()
	if err := run(*abide, *dir, *only, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(abide, dir, only string, pairs int) (err error) {
	if abide == "" {
		return errors.New("-abide is needed: the path of the built program")
	}
	dir, err = os.MkdirTemp(dir, "abide-sdk-bench-")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	model, err := instant.Start()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, model.Close()) }()
	fmt.Printf("%s %s/%s, %d CPUs; files in %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), dir)
	return errors.Join(versus(abide, dir, model.URL, only, pairs), weigh(abide, dir, model.URL, only))
}

// versus measures all workloads with both sides and prints a table. What goes
// wrong in one of them does not keep the others from being measured.
func versus(abide, dir, url, only string, pairs int) (err error) {
	defer stopping(&err)
	program := got(newProgram(abide, dir, url))
	defer program.close()
	engine := got(newEngine(dir, url))
	defer engine.close()
	fmt.Printf("\nfor each unit the best block; the middle block of %d\n", max(pairs, compare.MinPairs))
	t := compare.NewTable(os.Stdout, "workload", "unit", "SDK µs", "engine µs", "ratio", "SDK's own CPU µs", "SDK/s", "engine/s")
	defer func() {
		t.Print()
		if program.said > 0 {
			fmt.Printf("\nstreams were shown by the SDK in %v, by the engine in %v\n", &program.tally, &engine.tally)
		}
	}()
	var errs []error
	for _, w := range workloads {
		if !strings.Contains(w.name, only) {
			continue
		}
		r, err := w.measure(program, engine, pairs)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.name, err))
			continue
		}
		ours, _ := r.A.Rate()
		theirs, _ := r.B.Rate()
		t.Row(w.name, w.unit, r.A.Wall(), r.B.Wall(), r.Wall(), r.A.CPU(), fmt.Sprintf("%.0f", ours), fmt.Sprintf("%.0f", theirs))
	}
	return errors.Join(errs...)
}

// measure lets both sides take turns.
func (w workload) measure(a, b contender, pairs int) (r compare.Result, err error) {
	defer stopping(&err)
	return compare.Alternate(pairs, w.side(a), w.side(b)), nil
}

// stopped is the panic of must.
type stopped struct{ err error }

// stopping makes an error of that panic. It has to be deferred.
func stopping(err *error) {
	switch failed := recover().(type) {
	case nil:
	case stopped:
		*err = failed.err
	default:
		panic(failed)
	}
}

// must gives up: figures from work that failed mean nothing.
func must(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}
