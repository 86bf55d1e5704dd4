package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// A session goes on in a database where it was in a file: with its environment, what was sent, and
// its costs.
func TestSessionsMoveToADatabase(t *testing.T) {
	c := postgrestest.Start(t)
	dir := t.TempDir()
	for i := range 3 {
		output(t, dir, "run", "--yolo", fmt.Sprintf("Run `echo %d >> effects`", i))
	}
	url := c.URL()
	refuse := func(want string, args ...string) {
		t.Helper()
		p := command(t, dir, args...)
		if err := p.Run(); err == nil || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("abide %s ends with %v: %s; want %q", strings.Join(args, " "), err, p.stderr, want)
		}
	}
	refuse("say where to", "move")
	refuse("sessions can be moved to a database", "move", "--to", "sqlite:x")
	refuse("cannot be reached", "move", "--to", "postgres://abide:a-password@127.0.0.1:1/abide")
	server := start(t, dir, "serve", "--listen", "127.0.0.1:0")
	server.await("127.0.0.1:")
	refuse("is in use by process", "move", "--to", url)
	must(t, server.Process.Signal(os.Interrupt))
	server.ends()

	output(t, dir, "move", "--to", url, "--dry-run")
	output(t, dir, "run", "--yolo", "--continue", "Reply with exactly: STILL HERE")
	costs := output(t, dir, "cost")
	list := output(t, dir, "sessions", "list", "--json")
	p := command(t, dir, "move", "--to", url)
	must(t, p.Run())
	if got := p.stderr.String(); !strings.Contains(got, "moved 3 sessions to postgres database") {
		t.Errorf("it says %s", got)
	}
	refuse("its sessions were moved to postgres database", "run", "--yolo", "hello")
	refuse("its sessions were moved to postgres database", "backup", filepath.Join(dir, "backup"))

	must(t, os.WriteFile(filepath.Join(dir, "home", "config.toml"), fmt.Appendf(nil, "[store]\nurl = %q\n", url), 0o600))
	if got := output(t, dir, "sessions", "list", "--json"); got != list {
		t.Errorf("the sessions are\n%s\nwere\n%s", got, list)
	}
	if got := output(t, dir, "cost"); got != costs {
		t.Errorf("the costs are\n%s\nwere\n%s", got, costs)
	}
	output(t, dir, "run", "--yolo", "--continue", "Reply with exactly: ON")
	if got := output(t, dir, "sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("the sessions are\n%s", got)
	}
	if got := output(t, dir, "sessions", "search", "exactly"); !strings.Contains(got, "STILL HERE") || !strings.Contains(got, "exactly: ON") {
		t.Errorf("a search finds\n%s", got)
	}
	p = command(t, dir, "move", "--to", url) // the configuration names the database by now
	must(t, p.Run())
	if got := p.stderr.String(); !strings.Contains(got, "already") {
		t.Errorf("again, it says %s", got)
	}
}
