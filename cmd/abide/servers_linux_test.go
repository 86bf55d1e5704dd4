package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// sharing are servers on machines of their own, which share a log and reach the same workspace.
type sharing struct {
	t         *testing.T
	db        *postgrestest.Cluster
	there     *elsewhere // the machine with the workspace
	addresses []string
	dirs      []string
	programs  []*program
}

const serversToken = "a token that nobody guesses"

// shareLog starts servers.
func shareLog(t *testing.T, n int) *sharing {
	t.Helper()
	s := &sharing{t: t, db: postgrestest.Start(t), there: newElsewhere(t)}
	key := filepath.Join(t.TempDir(), "cluster.key")
	for range n {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
		config, err := os.ReadFile(filepath.Join(s.there.dir, "home", "config.toml"))
		must(t, err)
		config = append(config, "default = \"box\"\n"...)
		must(t, os.WriteFile(filepath.Join(dir, "home", "config.toml"), config, 0o600))
		address := steadyAddress(t)
		p := command(t, dir, "serve", "--store", s.db.SchemaURL("servers"), "--advertise", address, "--cluster-key-file", key)
		p.Env = append(p.Env, "ABIDE_TOKEN="+serversToken)
		p.begin()
		p.await("^shares its log with other servers, which reach it at " + address)
		s.addresses, s.dirs, s.programs = append(s.addresses, address), append(s.dirs, dir), append(s.programs, p)
	}
	return s
}

// client prepares a command that uses the servers.
func (s *sharing) client(args ...string) *program {
	p := command(s.t, s.t.TempDir(), append([]string{"--server", strings.Join(s.addresses, ",")}, args...)...)
	p.Env = append(p.Env, "ABIDE_TOKEN="+serversToken)
	return p
}

// says returns what a command prints that uses the servers.
func (s *sharing) says(args ...string) string {
	s.t.Helper()
	p := s.client(args...)
	out, err := p.Output()
	if err != nil {
		s.t.Fatalf("abide %s: %v; stderr: %s", strings.Join(args, " "), err, p.stderr)
	}
	return string(out)
}

// A server is killed in the middle of a turn whose command runs in a workspace elsewhere. The client,
// which has asked that server, is told the answer all the same, and the command has run once.
func TestAServerIsKilledAndItsSessionGoesOn(t *testing.T) {
	s := shareLog(t, 2)
	src := filepath.Join(s.there.there, "src")
	must(t, syscall.Mkfifo(filepath.Join(src, "gate"), 0o600))
	waiting := s.client("run", "--yolo", "Run `cat gate >> effects; echo ran >> effects`")
	waiting.begin()
	opened, err := os.OpenFile(filepath.Join(src, "gate"), os.O_WRONLY, 0) // waits until the command reads
	must(t, err)
	if got := s.says("servers"); strings.Count(got, "live") != 2 {
		t.Errorf("the servers are\n%s", got)
	}
	owner := s.db.Exec(t, "servers", "SELECT convert_from(s.address, 'UTF8') FROM servers s JOIN owners o ON o.server = s.id")
	for i, address := range s.addresses {
		if address == owner {
			must(t, syscall.Kill(s.programs[i].pid(), syscall.SIGKILL))
		}
	}
	_, err = opened.WriteString("once ")
	must(t, err)
	must(t, opened.Close())
	if _, code := waiting.ends(); code != 0 {
		t.Errorf("the client ends with %d: %s", code, waiting.stderr)
	}
	if got, err := os.ReadFile(filepath.Join(src, "effects")); err != nil || string(got) != "once ran\n" {
		t.Errorf("the command has written %q, %v", got, err)
	}
	if got := s.says("sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("the session is\n%s", got)
	}
	id := s.db.Exec(t, "servers", "SELECT convert_from(name, 'UTF8') FROM sessions")
	if got := s.says("run", "--resume", id, "Reply with exactly: ON"); got != "ON\n" {
		t.Errorf("the session answers %q", got)
	}
}

// stdioOf is the connection with a program over its standard streams.
type stdioOf struct {
	io.Reader
	io.WriteCloser
}

// An SDK starts the program as its runtime: behind it are the servers.
func TestAnSDKUsesServersElsewhere(t *testing.T) {
	s := shareLog(t, 2)
	p := command(t, t.TempDir(), "--headless", "--stdio", "--server", strings.Join(s.addresses, ","))
	p.Env = append(p.Env, "ABIDE_TOKEN="+serversToken)
	in, err := p.StdinPipe()
	must(t, err)
	out, err := p.StdoutPipe()
	must(t, err)
	must(t, p.Start())
	c := jsonrpc.New(stdioOf{out, in}, jsonrpc.Options{})
	ran := make(chan struct{})
	go func() { defer close(ran); _ = c.Run(context.Background()) }() // it ends with the program
	defer func() { c.Close(); <-ran }()
	call := func(method string, params, result any) {
		t.Helper()
		if err := c.Call(t.Context(), method, params, result); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	call(api.Connect, api.ConnectParams{}, nil)
	call(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil)
	call(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HELLO"}, nil)
	for said := ""; !strings.Contains(said, `"content":"HELLO"`); {
		var messages json.RawMessage
		call(api.SessionGetMessages, api.SessionParams{SessionID: "s"}, &messages)
		said = string(messages)
	}
	wrong := command(t, t.TempDir(), "--server", s.addresses[0], "sessions", "list")
	wrong.Env = append(wrong.Env, "ABIDE_TOKEN=another token that nobody guesses")
	if err := wrong.Run(); err == nil || !strings.Contains(wrong.stderr.String(), "another key or token") {
		t.Errorf("a client with another token: %v, %s", err, wrong.stderr)
	}
}
