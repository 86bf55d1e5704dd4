package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

func main() {
	instant.Main()
	bareListener()
	mcpProcess()
	longSessionProcess()
	followProcess()
	dir := flag.String("dir", "", "folder for the sessions' files; a temporary one if empty")
	only := flag.String("only", "", "measure only workloads whose name contains this")
	pairs := flag.Int("pairs", compare.MinPairs, "pairs of blocks of each measurement")
	abide := flag.String("abide", "", "the built program, to be measured as a process; not measured if empty")
	profile := flag.String("cpuprofile", "", "write a profile of this process to this file")
	flag.Parse()
	if *profile != "" {
		defer profileTo(*profile)()
	}
	if err := run(*dir, *only, *abide, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// profileTo starts a CPU profile. The function that it returns ends it.
func profileTo(path string) func() {
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	return pprof.StopCPUProfile
}

func run(dir, only, abide string, pairs int) error {
	dir, err := os.MkdirTemp(dir, "abide-bench-")
	if err == nil {
		dir, err = filepath.Abs(dir) // commands run in other folders
	}
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if abide != "" {
		if abide, err = filepath.Abs(abide); err != nil {
			return err
		}
	}
	server, err := instant.Start()
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	describe(dir)
	at := place{dir: dir, url: server.URL}
	least, err := newFloor(at)
	if err != nil {
		return err
	}
	defer least.close()
	for _, enter := range contenders {
		c, err := enter(at)
		if err != nil {
			return err
		}
		if err := compareAll(c, least, only, pairs); err != nil {
			return err
		}
		c.close()
	}
	return measureOthers(at, only, abide, pairs)
}

// measureOthers runs the measurements that are not about plain turns.
func measureOthers(at place, only, abide string, pairs int) error {
	if err := errors.Join(measureStreams(at, only, pairs), measureRequests(only, pairs), measureSearches(only, pairs), measureWorkspaces(at, only, pairs), measureFanouts(at, only, pairs), measureCommands(at, only, abide, pairs), measureMemory(at, only), measureRecall(at, only), measureMillion(at, only), measureLoads(at, only, pairs), measureLongSession(at, only), measureWaiting(at, only, abide), measureParked(at, only, abide), measureMCP(at, only, abide), measureLong(at, only, abide), measureChat(at, only, abide)); err != nil || only != "" {
		return err
	}
	fmt.Println()
	if err := errors.Join(measureSyncs(at, 64, 20), measureDisk(at, 1000)); err != nil || abide == "" {
		return err
	}
	b := binary{abide, at.dir}
	return errors.Join(b.starts(max(pairs, 20)), b.sessions(1000, 10000))
}

// describe prints what the figures depend on.
func describe(dir string) {
	fmt.Printf("%s %s/%s, %d CPUs; files in %s (%s)\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), dir, fileSystem(dir))
}

// fileSystem returns the file system of a folder, with a warning if a sync costs nothing
// there.
func fileSystem(dir string) string {
	const tmpfs = 0x01021994
	var s syscall.Statfs_t
	switch err := syscall.Statfs(dir, &s); {
	case err != nil:
		return err.Error()
	case s.Type == tmpfs:
		return "in memory: syncs cost nothing here, use -dir"
	}
	return fmt.Sprintf("file system type %#x", s.Type)
}

// compareAll measures all workloads with two contenders and prints a table.
func compareAll(a, b contender, only string, pairs int) error {
	fmt.Printf("\n%s and %s; for each unit the best block; the middle block of %d or more\n", a.name, b.name, max(pairs, compare.MinPairs))
	t := compare.NewTable(os.Stdout, "workload", "unit", a.name+" µs", b.name+" µs", "ratio", a.name+" CPU µs", b.name+" CPU µs", "ratio", b.name+"/s")
	for _, w := range workloads {
		if !strings.Contains(w.name, only) {
			continue
		}
		r, err := w.measure(a, b, pairs)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		best, _ := r.B.Rate()
		t.Row(w.name, w.unit, r.A.Wall(), r.B.Wall(), r.Wall(), r.A.CPU(), r.B.CPU(), r.CPU(), fmt.Sprintf("%.0f", best))
	}
	t.Print()
	return nil
}
