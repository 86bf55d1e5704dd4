// Package seedtest makes the tests that draw random numbers repeatable. Every run of them
// draws the same numbers, so that a change is never refused for what an earlier one has done.
// ABIDE_SEED=N chooses other numbers, and ABIDE_SEED=random new ones in each run.
//
// A test package that uses rapid imports this package, if only for its effect: rapid begins
// with [Seed], unless -rapid.seed or RAPID_SEED says otherwise.
package seedtest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	_ "pgregory.net/rapid" // defines the flag first
)

// usual is the seed of ordinary runs.
const usual = 1

var seed = choose(os.Getenv("ABIDE_SEED"))

func init() {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		if err := f.Value.Set(strconv.FormatUint(seed, 10)); err != nil {
			panic(err)
		}
	}
}

// Seed returns the seed of all random numbers of this run. It is never zero.
func Seed() uint64 { return seed }

func choose(wish string) uint64 {
	switch wish {
	case "":
		return usual
	case "random":
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(wish, 10, 64)
	if err != nil || n == 0 {
		fmt.Fprintf(os.Stderr, "ABIDE_SEED is %q: it has to be a number above zero, or random\n", wish)
		os.Exit(2)
	}
	return n
}
