package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// sharing are servers on machines of their own, which share a log and reach the same workspace.
type sharing struct {
	t         *testing.T
	db        *postgrestest.Cluster
	there     *elsewhere // the machine with the workspace
	key       string     // key file of the servers
	env       []string   // further environment of the servers
	addresses []string
	dirs      []string
	programs  []*program
}

const serversToken = "a token that nobody guesses"

// shareLog starts servers, with further variables of their environment.
func shareLog(t *testing.T, n int, env ...string) *sharing {
	t.Helper()
	s := &sharing{t: t, db: postgrestest.Start(t), there: newElsewhere(t), key: filepath.Join(t.TempDir(), "cluster.key"), env: env}
	for i := range n {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
		config, err := os.ReadFile(filepath.Join(s.there.dir, "home", "config.toml"))
		must(t, err)
		config = append(config, "default = \"box\"\n"...)
		must(t, os.WriteFile(filepath.Join(dir, "home", "config.toml"), config, 0o600))
		s.addresses, s.dirs, s.programs = append(s.addresses, steadyAddress(t)), append(s.dirs, dir), append(s.programs, nil)
		s.start(i)
	}
	return s
}

// start starts a server, again if it was there before.
func (s *sharing) start(i int) {
	s.t.Helper()
	p := command(s.t, s.dirs[i], "serve", "--store", s.db.SchemaURL("servers"), "--advertise", s.addresses[i], "--cluster-key-file", s.key)
	p.Env = append(append(p.Env, "ABIDE_TOKEN="+serversToken), s.env...)
	p.begin()
	p.await("^shares its log with other servers, which reach it at " + s.addresses[i])
	s.programs[i] = p
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

// A server stands still in the middle of a turn until another one has taken its session over, and
// wakes. It leaves the command alone, which runs in a workspace elsewhere, and joins again; its client
// is told the answer.
func TestAServerSleepsUntilItIsDeadAndWakes(t *testing.T) {
	s := shareLog(t, 2)
	src := filepath.Join(s.there.there, "src")
	must(t, syscall.Mkfifo(filepath.Join(src, "gate"), 0o600))
	waiting := s.client("run", "--yolo", "Run `cat gate >> effects; echo ran >> effects`")
	waiting.begin()
	opened, err := os.OpenFile(filepath.Join(src, "gate"), os.O_WRONLY, 0) // waits until the command reads
	must(t, err)
	owner := func() string {
		return s.db.Exec(t, "servers", "SELECT convert_from(s.address, 'UTF8') || ' ' || convert_from(s.id, 'UTF8') FROM servers s JOIN owners o ON o.server = s.id")
	}
	live := func() string {
		return s.db.Exec(t, "servers", "SELECT string_agg(convert_from(id, 'UTF8'), ' ' ORDER BY id) FROM servers WHERE NOT dead")
	}
	first, servers := owner(), live()
	address, id, _ := strings.Cut(first, " ")
	asleep := s.programs[slices.Index(s.addresses, address)]
	must(t, syscall.Kill(asleep.pid(), syscall.SIGSTOP))
	s.until("another server works on the session", func() bool { now := owner(); return now != "" && now != first })
	must(t, syscall.Kill(asleep.pid(), syscall.SIGCONT))
	s.until("the server joins again", func() bool {
		now := live()
		return len(now) == len(servers) && !strings.Contains(now, id)
	})
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
}

// until waits until a condition holds.
func (s *sharing) until(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(end) {
			s.t.Fatalf("in vain: %s", what)
		}
	}
}

// stdioOf is the connection with a program over its standard streams.
type stdioOf struct {
	io.Reader
	io.WriteCloser
}

// sdk starts the program as the runtime of an SDK that uses servers, and connects to it. leave ends it.
func (s *sharing) sdk(servers string) (call func(method string, params, result any) error, leave func()) {
	t := s.t
	t.Helper()
	p := command(t, t.TempDir(), "--headless", "--stdio", "--server", servers)
	p.Env = append(p.Env, "ABIDE_TOKEN="+serversToken)
	in, err := p.StdinPipe()
	must(t, err)
	out, err := p.StdoutPipe()
	must(t, err)
	must(t, p.Start())
	c := jsonrpc.New(stdioOf{out, in}, jsonrpc.Options{})
	ran := make(chan struct{})
	go func() { defer close(ran); _ = c.Run(context.Background()) }() // it ends with the program
	call = func(method string, params, result any) error { return c.Call(t.Context(), method, params, result) }
	must(t, call(api.Connect, api.ConnectParams{}, nil))
	return call, func() { c.Close(); <-ran }
}

// An SDK starts the program as its runtime: behind it are the servers.
func TestAnSDKUsesServersElsewhere(t *testing.T) {
	s := shareLog(t, 2)
	call, leave := s.sdk(strings.Join(s.addresses, ","))
	defer leave()
	must(t, call(api.SessionCreate, api.OpenParams{SessionID: "s"}, nil))
	must(t, call(api.SessionSend, api.SendParams{SessionID: "s", Prompt: "Reply with exactly: HELLO"}, nil))
	for said := ""; !strings.Contains(said, `"content":"HELLO"`); {
		var messages json.RawMessage
		must(t, call(api.SessionGetMessages, api.SessionParams{SessionID: "s"}, &messages))
		said = string(messages)
	}
	wrong := command(t, t.TempDir(), "--server", s.addresses[0], "sessions", "list")
	wrong.Env = append(wrong.Env, "ABIDE_TOKEN=another token that nobody guesses")
	if err := wrong.Run(); err == nil || !strings.Contains(wrong.stderr.String(), "another key or token") {
		t.Errorf("a client with another token: %v, %s", err, wrong.stderr)
	}
}

// A server passes a message on to the one that works on the session, and is killed before the reply is
// back. The relay beside the client asks the other server, and the message is there once.
func TestTheServerInBetweenIsKilledBeforeItReplies(t *testing.T) {
	s := shareLog(t, 2)
	front, owner := s.addresses[0], s.addresses[1]
	maker := command(t, t.TempDir(), "--server", owner, "run", "Reply with exactly: BEGUN")
	maker.Env = append(maker.Env, "ABIDE_TOKEN="+serversToken)
	if out, err := maker.Output(); err != nil {
		t.Fatalf("%v, %s: %s", err, out, maker.stderr)
	}
	id := event.SessionID(s.db.Exec(t, "servers", "SELECT convert_from(name, 'UTF8') FROM sessions"))
	call, leave := s.sdk(front + "," + owner)
	defer leave()
	must(t, call(api.SessionResume, api.OpenParams{SessionID: id}, nil))
	db, err := pgx.Connect(t.Context(), s.db.SchemaURL("servers"))
	must(t, err)
	defer db.Close(t.Context())
	tx, err := db.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE records IN EXCLUSIVE MODE")
	must(t, err)
	sent := make(chan error, 1)
	go func() {
		sent <- call(api.SessionSend, api.SendParams{SessionID: id, Prompt: "Reply with exactly: ONCE"}, nil)
	}()
	s.until("an append waits for the lock", func() bool {
		return s.db.Exec(t, "servers", "SELECT count(*) > 0 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'records' AND NOT l.granted") == "t"
	})
	must(t, syscall.Kill(s.programs[0].pid(), syscall.SIGKILL))
	must(t, tx.Commit(t.Context()))
	if err := <-sent; err != nil {
		t.Errorf("the message: %v", err)
	}
	for said := ""; !strings.Contains(said, `"content":"ONCE"`); {
		var messages json.RawMessage
		must(t, call(api.SessionGetMessages, api.SessionParams{SessionID: id}, &messages))
		if said = string(messages); strings.Count(said, `"content":"Reply with exactly: ONCE"`) > 1 {
			t.Fatalf("the message is there more than once: %s", said)
		}
	}
	if got := s.says("sessions", "verify"); !strings.Contains(got, "intact") {
		t.Errorf("the session is\n%s", got)
	}
}
