package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// The log is in a database that is killed in the middle of a turn, and so is the engine.
func TestALogInPostgres(t *testing.T) {
	c := postgrestest.Start(t)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "home", "config.toml"), fmt.Appendf(nil, "[store]\nurl = %q\n", c.URL()), 0o600))
	gate := filepath.Join(dir, "gate")
	must(t, syscall.Mkfifo(gate, 0o600))

	waiting := command(t, dir, "run", "--yolo", "Run `cat gate >> effects; echo ran >> effects`")
	must(t, waiting.Start())
	opened, err := os.OpenFile(gate, os.O_WRONLY, 0) // waits until the command reads
	must(t, err)
	c.Down(t, syscall.SIGQUIT)
	c.Up(t)
	must(t, waiting.Process.Kill())
	_ = waiting.Wait() // it was killed
	_, err = opened.WriteString("once ")
	must(t, err)
	must(t, opened.Close())

	output(t, dir, "run", "--yolo", "--continue", "Reply with exactly: ON")
	if got, err := os.ReadFile(filepath.Join(dir, "effects")); err != nil || string(got) != "once ran\n" {
		t.Errorf("the command has written %q, %v", got, err)
	}
	if got := output(t, dir, "sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("the session is\n%s", got)
	}
	if got := output(t, dir, "sessions", "search", "exactly"); !strings.Contains(got, "Reply with exactly: ON") {
		t.Errorf("a search finds\n%s", got)
	}
	p := command(t, dir, "backup", filepath.Join(dir, "backup"))
	if err := p.Run(); err == nil || !strings.Contains(p.stderr.String(), "with its own tools") {
		t.Errorf("a backup ends with %v: %s", err, p.stderr)
	}
}
