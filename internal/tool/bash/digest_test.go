package bash_test

import (
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process"
)

// Calls that do and find the same have the same digest, whatever they are called and
// whenever they are made.
func TestTheSameCommandHasTheSameDigest(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		start := func(args string) string { return d.run("bash", d.call(args)).Digest }
		first := start(`{"command":"npm start","description":"Start it","mode":"async"}`)
		time.Sleep(time.Second)
		if again := start(`{"description":"Try again","mode":"async","command":"npm start","shellId":"again"}`); first == "" || again != first {
			t.Errorf("the digests are %q and %q", first, again)
		}
		if again := start(`{"command":"\n npm   'start' # once more","mode":"async","description":"x"}`); again != first {
			t.Errorf("written in another way, the digest is %q and not %q", again, first)
		}
		for _, args := range []string{
			`{"command":"npm stop","description":"Start it","mode":"async"}`,
			`{"command":"npm start","description":"Start it","mode":"async","cwd":"/other"}`,
			`{"command":"npm start","description":"Start it","mode":"async","tty":true}`,
		} {
			if start(args) == first {
				t.Errorf("%s has the digest of another call", args)
			}
		}
	})
}

func TestAnotherOutcomeHasAnotherDigest(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		n := 0
		run := func(took time.Duration, output string, code int) string {
			done := d.callInBackground("bash", `{"command":"make","description":"d"}`)
			time.Sleep(took)
			s.started(n).print(process.Stdout, output)
			s.started(n).exit(code)
			n++
			return (<-done).Digest
		}
		first := run(time.Second, "ok in 1.5s\n", 0)
		if again := run(2*time.Second, "ok in 2.25s\n", 0); again != first {
			t.Errorf("the digests are %q and %q", first, again)
		}
		if run(time.Second, "ok in 1.5s\n", 1) == first || run(time.Second, "3 tests in 1.5s\n", 0) == first {
			t.Error("another outcome has the same digest")
		}
	})
}

// To look again at once is to find nothing new; to wait for a long command is not.
func TestWaitingForALongCommandIsNoRepetition(t *testing.T) {
	withScripted(t, func(t *testing.T, d *caller, s *scriptedProcesses) {
		d.mustCall("bash", `{"command":"make","description":"d","mode":"async","shellId":"build"}`)
		for _, c := range []struct{ tool, quick, slow string }{
			{"read_bash", `{"shellId":"build"}`, `{"shellId":"build","delay":90}`},
			{"wait", `{"shellIds":["build"],"timeout":0.1}`, `{"shellIds":["build"],"timeout":90}`},
		} {
			look := func(args string) string { return d.run(c.tool, d.call(args)).Digest }
			first, second := look(c.quick), look(c.quick)
			if first != second {
				t.Errorf("%s finds nothing new and has another digest", c.tool)
			}
			if first, second = look(c.slow), look(c.slow); first == second {
				t.Errorf("%s has waited and has the same digest", c.tool)
			}
		}
		s.started(0).exit(0)
	})
}
