package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A script may have a pipe or a lock open while it runs a command. Whatever goes on after
// the command must not keep it open.
func TestWhatGoesOnHoldsNoFileOfTheScript(t *testing.T) {
	t.Run("a command in the background", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := command(t, dir, "run", "--yolo", "--output-format", "stream-json", "Run `exec sleep 1000` in the background")
		pipe := p.beginWithPipe()
		id := p.await(`"session_id":"([^"]+)"`)[1]
		p.ends()
		checkClosed(t, pipe)
		if got := output(t, dir, "stop", "--all", id); !strings.Contains(got, "killed") {
			t.Errorf("stop --all says %q; the command should have gone on", got)
		}
	})
	t.Run("an engine for others", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		model := newSharedProvider(t, "first", "second")
		first := model.prepare(t, dir, "first")
		pipe := first.beginWithPipe()
		<-model.asked["first"]
		engine := watch(t, first.pid())
		second := model.start(t, dir, "second")
		must(t, first.Process.Signal(syscall.SIGTERM))
		first.ends()
		checkClosed(t, pipe)
		if !engine.isThere() {
			t.Error("the engine has ended, and another program waits for an answer")
		}
		close(model.gate["first"])
		close(model.gate["second"])
		second.ends()
		engine.await()
	})
}

// beginWithPipe starts a program as a script does that has a pipe open, and returns the
// end of the pipe at which the script reads.
func (p *program) beginWithPipe() *os.File {
	p.t.Helper()
	r, w, err := os.Pipe()
	must(p.t, err)
	p.t.Cleanup(func() { r.Close() })
	p.ExtraFiles = []*os.File{w, w, w, w} // a keeper gets a file of its own as the first
	p.begin()
	must(p.t, w.Close())
	return r
}

// checkClosed checks that no process can write to a pipe any more.
func checkClosed(t *testing.T, pipe *os.File) {
	t.Helper()
	conn, err := pipe.SyscallConn()
	must(t, err)
	must(t, conn.Control(func(fd uintptr) {
		if n, err := syscall.Read(int(fd), make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("a process still has the pipe open: %d, %v", n, err)
		}
	}))
}
