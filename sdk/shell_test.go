package sdk

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/github/copilot-sdk/go/rpc"
)

// A program's own command runs for a session, outlives the program and the
// server, and can be ended by the next program.
func TestACommandOfAProgramOutlivesTheServer(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	p := server.connect()
	s := p.create(part{permission: approve})
	dir := t.TempDir()
	fifo := filepath.Join(dir, "feed")
	h.must(syscall.Mkfifo(fifo, 0o600))
	run, err := s.RPC.Shell.Exec(h.ctx, &rpc.ShellExecRequest{Command: `read -r line <feed; echo "$line" >got; read -r never <feed`, Cwd: &dir})
	h.must(err)
	feed, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the command has opened the other end
	h.must(err)
	server.end()
	p.die()

	next := h.serve().connect().again(s)
	_, err = feed.WriteString("FED\n")
	h.must(err)
	other := next.program.create(part{permission: approve})
	for _, test := range []struct {
		session *session
		process string
		want    bool
	}{{other, run.ProcessID, false}, {next, "none", false}, {next, run.ProcessID, true}} {
		got, err := test.session.RPC.Shell.Kill(h.ctx, &rpc.ShellKillRequest{ProcessID: test.process})
		h.must(err)
		if got.Killed != test.want {
			t.Errorf("%s of session %s is killed: %v", test.process, test.session.SessionID, got.Killed)
		}
	}
	h.must(feed.Close())
	if _, err := next.RPC.Shell.Exec(h.ctx, &rpc.ShellExecRequest{Command: " "}); err == nil || !strings.Contains(err.Error(), "command: it is empty") {
		t.Errorf("an empty command: %v", err)
	}
}
