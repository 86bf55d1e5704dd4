package killtest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// checkedVariable names this test's binary with the race detector, in the environment of
// the one without it that runs the tests.
const checkedVariable = "ABIDE_CHECKED_VICTIM"

// TestMain runs the tests, or the victim if the environment asks for one.
//
// A victim with the race detector takes three times the work of one without, most of it
// to start. A kill test looks at what is stored, so with the race detector on, the tests
// run in a binary without it, which starts victims with it where concurrency is the
// point: see [instructions.Checked].
func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(mcpVariable); ok {
		os.Exit(serveMCP(dir))
	}
	if text, ok := os.LookupEnv(instructionsVariable); ok {
		os.Exit(victim(text))
	}
	if raceEnabled && testing.CoverMode() == "" {
		runUnchecked() // returns only if there is no such binary
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))) // most of a test waits for the disk
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if os.Getenv(checkedVariable) != "" {
			_ = os.RemoveAll(filepath.Dir(os.Args[0])) // made by runUnchecked
		}
		os.Exit(code)
	}))
}

// runUnchecked builds this test without the race detector, and makes this process run
// it. Without a Go toolchain it returns, and the tests run in this binary.
func runUnchecked() {
	checked, err := os.Executable()
	if err != nil {
		return
	}
	dir, err := os.MkdirTemp("", "killtest")
	if err != nil {
		return
	}
	unchecked := filepath.Join(dir, filepath.Base(checked))
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", unchecked, ".")
	if err = build.Run(); err == nil {
		err = syscall.Exec(unchecked, append([]string{unchecked}, os.Args[1:]...), append(os.Environ(), checkedVariable+"="+checked))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
}
