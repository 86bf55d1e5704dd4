package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memory returns the private memory of a process, in bytes, and its peak of
// resident memory.
func memory(t testing.TB, pid int) (private, peak int64) {
	t.Helper()
	sum := func(file string, names ...string) (n int64) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, name := range names {
				if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
					kb, _ := strconv.ParseInt(f[1], 10, 64)
					n += kb << 10
				}
			}
		}
		return n
	}
	return sum("smaps_rollup", "Private_Dirty", "Private_Clean"), sum("status", "VmHWM")
}

// keeperOf returns the process number of the keeper of a running process.
func keeperOf(t testing.TB, info Info) int {
	t.Helper()
	p := &proc{dir: info.Files.Dir}
	c, err := p.readClaim()
	if err != nil {
		t.Fatal(err)
	}
	return int(c.Int("pid"))
}

func benchManager(b *testing.B) *Manager {
	m, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	m.opts.Nice = 0 // with a lower priority the comparison would not be fair
	b.Cleanup(func() { m.Close() })
	return m
}

func runOnce(b *testing.B, m *Manager, key, command string) Info {
	b.Helper()
	info, _, err := m.Start(b.Context(), Spec{Key: key, Owner: "bench", Command: command, Dir: "/tmp"})
	if err != nil {
		b.Fatal(err)
	}
	if info, err = m.WaitGone(b.Context(), "bench", info.ID); err != nil {
		b.Fatal(err)
	}
	return info
}

// BenchmarkGigabyte prints a gigabyte in one line, through a keeper and through
// one pipe to a file, in turns, and reports the ratio of the fastest.
func BenchmarkGigabyte(b *testing.B) {
	const command = "head -c 1073741824 /dev/zero"
	m := benchManager(b)
	pipe := time.Hour
	kept := time.Hour
	file := filepath.Join(b.TempDir(), "file")
	for n := 0; b.Loop(); n++ {
		for i := range 5 {
			start := time.Now()
			if err := exec.Command("sh", "-c", command+" | cat > "+file).Run(); err != nil {
				b.Fatal(err)
			}
			pipe = min(pipe, time.Since(start))
			os.Remove(file)

			start = time.Now()
			info := runOnce(b, m, fmt.Sprint(n, i), command)
			kept = min(kept, time.Since(start))
			if info.Output.Bytes != 1<<30 {
				b.Fatalf("%d bytes", info.Output.Bytes)
			}
		}
	}
	b.ReportMetric(pipe.Seconds(), "s/pipe")
	b.ReportMetric(kept.Seconds(), "s/keeper")
	b.ReportMetric(kept.Seconds()/pipe.Seconds(), "ratio")
}

// BenchmarkStart compares a command under a keeper with one without.
func BenchmarkStart(b *testing.B) {
	m := benchManager(b)
	plain, kept := time.Hour, time.Hour
	for n := 0; b.Loop(); n++ {
		for i := range 20 {
			start := time.Now()
			if err := exec.Command("sh", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
			plain = min(plain, time.Since(start))
			start = time.Now()
			runOnce(b, m, fmt.Sprint(n, i), "true")
			kept = min(kept, time.Since(start))
		}
	}
	b.ReportMetric(float64(plain.Microseconds()), "µs/plain")
	b.ReportMetric(float64(kept.Microseconds()), "µs/keeper")
	b.ReportMetric(kept.Seconds()/plain.Seconds(), "ratio")
}
