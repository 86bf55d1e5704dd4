package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command whose keeper is of another version than the engine is listed, read, followed to
// its end and stopped. ABIDE_FORMER names the other program, of an earlier version.
func TestKeepersOfAnotherVersion(t *testing.T) {
	former := os.Getenv("ABIDE_FORMER")
	if former == "" {
		t.Skip("skipped: ABIDE_FORMER names no program of an earlier version")
	}
	this := lookPath(t, "abide")
	for name, programs := range map[string][2]string{"an older keeper": {former, this}, "a newer keeper": {this, former}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(program string, args ...string) string {
				t.Helper()
				p := command(t, dir, args...)
				p.Path, p.Err = program, nil
				out, err := p.Output()
				if _, ended := err.(*exec.ExitError); err != nil && !ended {
					t.Fatal(err)
				}
				return string(out) + p.stderr.String()
			}
			starter, engine := programs[0], programs[1]
			for task, script := range map[string]string{"waits": "echo begin; until [ -e go ]; do sleep 0.05; done; echo end; exit 3", "sleeps": "sleep 1000"} {
				out := run(starter, "run", "--model", "offline", "--yolo", `Use bash with {"command":"`+script+`","description":"x","shellId":"`+task+`","mode":"async"}`)
				if !strings.Contains(out, "background_started") {
					t.Fatalf("%s did not start: %s", task, out)
				}
			}
			defer run(this, "stop", "sleeps")
			defer run(this, "stop", "waits")
			if out := run(engine, "ps"); strings.Contains(out, "use a newer abide") {
				t.Skip("the earlier version does not open a store of this one, and says so")
			} else if strings.Count(out, "running") != 2 {
				t.Errorf("ps prints %s", out)
			}
			must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			if out := run(engine, "logs", "-f", "waits"); out != "begin\nend\n" {
				t.Errorf("logs print %q", out)
			}
			if out := run(engine, "stop", "sleeps"); !strings.Contains(out, "killed (SIGTERM)") {
				t.Errorf("stop prints %s", out)
			}
			if out := run(engine, "ps", "--all"); !strings.Contains(out, "failed (3)") || strings.Contains(out, "running") || strings.Contains(out, "lost") {
				t.Errorf("ps --all prints %s", out)
			}
		})
	}
}
