package sdk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	copilot "github.com/github/copilot-sdk/go"
)

// limit is how long a test may take before it counts as stuck.
const limit = time.Minute

// token is what servers ask of their clients.
const token = "a secret of these tests"

// A home is a data folder, and the model that answers in its sessions.
type home struct {
	t     *testing.T
	ctx   context.Context
	dir   string
	model mind

	person *person  // the one who is asked
	feed   *os.File // standard input of a running command
}

func newHome(t *testing.T, m mind) *home {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("it is stuck"))
	t.Cleanup(cancel)
	h := &home{t: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "home"), model: m}
	t.Cleanup(h.killProcesses) // before the folder is removed: each would write there until it has noticed that its launcher was killed
	if m.far != nil {
		m.far.home = h
	}
	return h
}

// inEachWorld runs a test with the offline model, and with one behind a server
// that speaks Chat Completions.
func inEachWorld(t *testing.T, f func(t *testing.T, h *home)) {
	t.Helper()
	for name, world := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newHome(t, world(t)))
		})
	}
}

// environment is that of every process on the folder.
func (h *home) environment(more ...string) []string {
	return append([]string{
		"ABIDE_DUMPABLE=1", // the tests find processes by their environment
		"COPILOT_HOME=" + h.dir, "HOME=" + filepath.Dir(h.dir), "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"),
	}, more...)
}

// A server is a process that programs connect to.
type server struct {
	home *home
	port int
	end  func() // ends it without notice, and waits for that
}

var listening = regexp.MustCompile(`listening on port (\d+)`)

// serve starts a server that lives until it is killed.
func (h *home) serve(args ...string) *server {
	h.t.Helper()
	cmd := exec.Command(abide, append([]string{"--headless", "--no-auto-update"}, args...)...)
	cmd.Env = h.environment("COPILOT_CONNECTION_TOKEN=" + token)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	s := &server{home: h, end: sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })}
	h.t.Cleanup(s.end)
	line, err := bufio.NewReader(out).ReadString('\n')
	m := listening.FindStringSubmatch(line)
	if m == nil {
		s.end()
		h.t.Fatalf("the server said %q (%v) and: %s", line, err, &said)
	}
	s.port, err = strconv.Atoi(m[1])
	h.must(err)
	return s
}

// serveBySDK lets an SDK start the server, as the programs of its users do.
func (h *home) serveBySDK() *server {
	h.t.Helper()
	owner := copilot.NewClient(&copilot.ClientOptions{Connection: copilot.TCPConnection{
		Path: abide, Env: h.environment(), ConnectionToken: token,
	}})
	h.must(owner.Start(h.ctx))
	h.t.Cleanup(owner.ForceStop)
	return &server{home: h, port: owner.RuntimePort(), end: owner.ForceStop}
}

// connect makes a program that uses the server.
func (s *server) connect() *program {
	s.home.t.Helper()
	return s.home.program(s.door())
}

// number is its port.
func (s *server) number() string { return strconv.Itoa(s.port) }

func (s *server) door() copilot.RuntimeConnection {
	return copilot.URIConnection{URL: "localhost:" + s.number(), ConnectionToken: token}
}

// child makes a program that starts a process of its own and talks to its
// standard streams.
func (h *home) child() *program {
	h.t.Helper()
	return h.program(h.own())
}

func (h *home) own() copilot.RuntimeConnection {
	return copilot.StdioConnection{Path: abide, Env: h.environment()}
}

func (h *home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}
