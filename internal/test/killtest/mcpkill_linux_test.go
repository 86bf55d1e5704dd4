package killtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What can die at a stop in the place of the victim, or before it.
const (
	killServer = "server" // the MCP servers
	killKeeper = "keeper" // the keepers of the data folder
	killEngine = "engine" // the victim itself
)

// kill kills what the instructions say.
func (o instructions) kill() {
	if o.Kill == nil {
		die()
	}
	for _, what := range o.Kill {
		switch what {
		case killServer:
			text, _ := os.ReadFile(filepath.Join(o.Servers, "servers")) // none was started yet
			for _, pid := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(pid); err == nil {
					_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
				}
			}
		case killKeeper:
			all, _ := filepath.Glob("/proc/[0-9]*")
			for _, proc := range all {
				line, _ := os.ReadFile(proc + "/cmdline") // it may be gone by now
				pid, err := strconv.Atoi(filepath.Base(proc))
				if err == nil && bytes.HasPrefix(line, []byte("abide-keeper\x00")) && keepsIn(proc, o.Dir) {
					_ = syscall.Kill(pid, syscall.SIGKILL) // the same
				}
			}
		case killEngine:
			die()
		}
	}
}

// judgeLost reports every promise that was broken although the server or its keeper may have
// been killed: an effect that is there twice, or not although its call is told to have
// happened.
func (r *mcpRun) judgeLost(got outcome) {
	r.t.Helper()
	for _, broken := range got.checkLog() {
		r.t.Error(broken)
	}
	effects := r.lines("effects")
	for name, effect := range map[string]string{"one-count": "a", "one-ask": "asked"} {
		n := len(slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return e != effect }))
		if n > 1 || n == 0 && got.succeeded(name) {
			r.t.Errorf("the effect of %s is there %d times", name, n)
		}
	}
	for _, pid := range r.lines("servers") {
		n, err := strconv.Atoi(pid)
		if err == nil {
			err = exited(r.ctx, n)
		}
		if err != nil {
			r.t.Errorf("the server %s still runs (%v)", pid, err)
		}
	}
	if r.t.Failed() {
		r.t.Log(got.describeLog())
		r.logServer()
	}
}

// succeeded reports whether a call of a tool is told to have happened.
func (o outcome) succeeded(name string) bool {
	c := &checker{outcome: o}
	for _, j := range c.callRecords() {
		if j.name == name && len(j.completed) == 1 && j.completed[0].Error == nil {
			return true
		}
	}
	return false
}

// newLostRun prepares a run in which the server or its keeper dies. The server does not notice
// that nobody speaks with it any more.
func newLostRun(t *testing.T, kill ...string) *mcpRun {
	t.Helper()
	r := newMCPRun(t)
	var err error
	if r.conversation.open.MCPServers, err = json.Marshal(map[string]any{"one": map[string]any{
		"command": os.Args[0], "env": map[string]string{mcpVariable: r.dir, deafVariable: "yes"},
	}}); err != nil {
		t.Fatal(err)
	}
	r.driveClient = func(ctx context.Context, c *client) error {
		c.mayLose = true // the question of a server that dies is closed
		return c.drive(ctx)
	}
	r.instructions.Kill = kill
	return r
}

// The server or its keeper is killed at every write, and the engine is not.
func TestWithoutItsServerOrKeeperATurnOfMCPCallsEnds(t *testing.T) {
	first := newMCPRun(t)
	calm := first.play()
	first.judge(calm, false)
	for _, what := range []string{killServer, killKeeper} {
		for _, at := range stops(calm.writes, false, 1) {
			if at.Point == after { // only the parent sees it
				at.Point = committed
			}
			t.Run(what+"/"+at.String(), func(t *testing.T) {
				t.Parallel()
				t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
				r := newLostRun(t, what)
				r.instructions.Stop = at
				r.judgeLost(r.play())
			})
		}
	}
}

// The server or its keeper is killed together with the engine at every write.
func TestWithoutEngineAndServerATurnOfMCPCallsEnds(t *testing.T) {
	first := newMCPRun(t)
	calm := first.play()
	first.judge(calm, false)
	for i, w := range calm.writes {
		at := stop{w.Write, committed}
		kill := [][]string{{killServer, killEngine}, {killKeeper, killEngine}, {killServer, killKeeper, killEngine}}[i%3]
		t.Run(strings.Join(kill, "+")+"/"+at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", w.Events)
			r := newLostRun(t, kill...)
			r.judgeLost(r.play(at))
		})
	}
}
