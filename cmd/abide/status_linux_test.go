package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
)

func TestStatusNamesTheEngine(t *testing.T) {
	dir := t.TempDir()
	engine := start(t, dir, "serve")
	engine.await("serves .*engine")
	var status struct {
		Engine struct {
			PID            int
			Since, Version string
			Stopped        bool
		}
		Commands *int
	}
	must(t, json.Unmarshal([]byte(output(t, dir, "status", "--json")), &status))
	e := status.Engine
	if e.PID != engine.pid() || e.Since == "" || e.Version == "" || e.Stopped || status.Commands == nil {
		t.Errorf("%+v", status)
	}
	if text := output(t, dir, "status"); !strings.Contains(text, "sessions     0 active, 0 waiting, 0 unfinished\ncommands     0 running\n") {
		t.Errorf("%s", text)
	}
	engine.stop()
	p := command(t, dir, "status")
	out, _ := p.Output()
	if !strings.Contains(string(out), "stopped by a signal: resume it with kill -CONT") || p.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d: %s", p.ProcessState.ExitCode(), out)
	}
	must(t, engine.Process.Signal(syscall.SIGCONT))
}
