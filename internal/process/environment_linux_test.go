package process

import (
	"strings"
	"testing"
)

// A command without an environment of its own gets none of the daemon's secrets, and
// neither does its keeper, whose environment the command can read.
func TestACommandWithoutAnEnvironmentGetsAPlainOne(t *testing.T) {
	t.Setenv("SOME_API_KEY", "leaked")
	t.Setenv("LC_ALL", "C")
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "env; cat /proc/$PPID/environ")
	s.Env = nil
	got := all(t, m, run(t, m, s).ID, Both)
	if strings.Contains(got, "leaked") || !strings.Contains(got, "LC_ALL=C\n") || !strings.Contains(got, "PATH=") {
		t.Errorf("it printed %s", got)
	}
}
