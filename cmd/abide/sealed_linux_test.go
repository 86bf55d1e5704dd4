package main

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// The stage of a sealed command is the first process of its namespace, and the keeper waits
// for a pipe that the stage closes when the command runs. Nothing may come between the two:
// the keeper would read no output, hold no limit and stop nothing until the command has
// ended.
func TestASealedCommandIsHeldByItsKeeper(t *testing.T) {
	if err := sandbox.TrySealed(); err != nil {
		t.Skipf("there are no namespaces here: %v", err)
	}
	dir, work := t.TempDir(), t.TempDir() // a sealed command may not change the data folder
	run := func(script string) string {
		p := command(t, dir, "run", "--sealed", "--model", "offline", "Run `"+script+"`")
		p.Dir = work
		out, err := p.Output()
		if err != nil {
			t.Fatalf("%s: %v; %s", script, err, p.stderr)
		}
		return string(out)
	}
	if got := run("echo parent $PPID"); !strings.Contains(got, "parent 1\n") {
		t.Fatalf("the parent of the command is not the first process: %s", got)
	}
	if got := run("yes | head -c 1000000; echo whole"); !strings.Contains(got, "whole\n") {
		t.Errorf("a command that prints more than a pipe holds gives %.200s", got)
	}
}
