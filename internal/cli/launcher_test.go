package cli

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryCommandIsKnownToTheLauncher: a command that may become the engine and has no
// launcher would end with the work of others. The launcher cannot ask the tree of
// commands, because it runs before the rest of the program is initialised.
func TestEveryCommandIsKnownToTheLauncher(t *testing.T) {
	source, err := os.ReadFile("launch/front/front.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range (&app{}).rootCommand().Commands() {
		for _, name := range append(c.Aliases, c.Name()) {
			if !strings.Contains(string(source), strconv.Quote(name)+": ") {
				t.Errorf("abide %s is not in the table commands of internal/cli/launch/front/front.go: add it, and whether it may become the engine", name)
			}
		}
	}
}

func TestASignalToAProgramAndItsLauncherCountsOnce(t *testing.T) {
	const own, launcher = 0, 1
	type sent struct {
		source int
		after  time.Duration
	}
	for name, c := range map[string]struct {
		sent []sent
		want int
	}{
		"to the program":                    {[]sent{{own, 0}}, 1},
		"to the launcher":                   {[]sent{{launcher, 0}}, 1},
		"to both":                           {[]sent{{own, 0}, {launcher, 0}}, 1},
		"to both, the launcher is slow":     {[]sent{{own, 0}, {launcher, time.Minute}}, 1},
		"to both, twice":                    {[]sent{{own, 0}, {launcher, 0}, {launcher, time.Second}, {own, 0}}, 2},
		"to the program, twice":             {[]sent{{own, 0}, {own, time.Second}}, 2},
		"to the launcher and then to both":  {[]sent{{launcher, 0}, {launcher, time.Millisecond}, {own, 0}}, 1},
		"to the launcher, much later again": {[]sent{{launcher, 0}, {launcher, time.Hour}}, 2},
	} {
		counts, now, got := newSignalCounts(), time.Now(), 0
		for _, s := range c.sent {
			now = now.Add(s.after)
			if counts.add(syscall.SIGTERM, s.source, now) {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s: %d signals, want %d", name, got, c.want)
		}
	}
}
