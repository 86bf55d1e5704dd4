package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// doors is a program that listens everywhere.
type doors struct {
	*program
	tcp, http, private, token string
}

func openDoors(t *testing.T, dir string) *doors {
	t.Helper()
	p := start(t, dir, "serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	d := &doors{program: p, private: filepath.Join(dir, "home", "sock")}
	d.tcp = p.await(`^listening on (\S+)\n`)[1]
	d.http = p.await(`^HTTP on (\S+)\n`)[1]
	token, err := os.ReadFile(p.await(`^token in (\S+)\n`)[1])
	must(t, err)
	d.token = strings.TrimSpace(string(token))
	t.Cleanup(func() {
		p.Process.Signal(syscall.SIGTERM)
		p.ends()
	})
	return d
}

// peak returns the largest amount of memory that the program has had so far, in MiB.
func (d *doors) peak() int {
	d.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.pid()))
	must(d.t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	must(d.t, err)
	return kib >> 10
}

// checkGrowth checks that the program has not needed much more memory than before. The race
// detector needs several times as much.
func (d *doors) checkGrowth(what string, before, most int) {
	d.t.Helper()
	grown := d.peak() - before
	d.t.Logf("%s: %d MiB before, %d MiB more at the peak", what, before, grown)
	if raceEnabled {
		most *= 10
	}
	if grown > most {
		d.t.Errorf("%s: the program has needed %d MiB more, which should be %d at most", what, grown, most)
	}
}

// checkOpen checks that clients with a token are served at all doors.
func (d *doors) checkOpen() {
	d.t.Helper()
	c, err := dial(d.t, d.tcp, d.token)
	must(d.t, err)
	_, err = c.Ping(d.t.Context(), "")
	must(d.t, err)
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+d.http+"/api/v0/processes/list", nil)
	must(d.t, err)
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	must(d.t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest { // the session is missing, and the token is right
		d.t.Errorf("HTTP with the token: %s", resp.Status)
	}
	output(d.t, d.Dir, "sessions", "list") // through the private socket
}

// flood makes connections that send some bytes and then stay open, and returns them.
func flood(t *testing.T, network, address string, number int, send []byte) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, number)
	var senders sync.WaitGroup
	for i := range conns {
		conn, err := net.Dial(network, address)
		must(t, err)
		conns[i] = conn
		t.Cleanup(func() { conn.Close() })
		senders.Go(func() { conn.Write(send) }) // what is too much is not read, and the connection ends
	}
	t.Cleanup(senders.Wait)
	t.Cleanup(func() {
		for _, conn := range conns {
			conn.Close()
		}
	})
	return conns
}

// awaitEnd reads connections until the other side has closed them, and returns what each has
// sent.
func awaitEnd(conns []net.Conn) []string {
	said := make([]string, len(conns))
	var readers sync.WaitGroup
	for i, conn := range conns {
		readers.Go(func() {
			b, _ := io.ReadAll(conn) // a connection may be reset
			said[i] = string(b)
		})
	}
	readers.Wait()
	return said
}

// Eight connections that announce large messages once took 1.7 GB.
func TestConnectionsWithoutATokenHoldLittleMemory(t *testing.T) {
	d := openDoors(t, t.TempDir())
	d.checkOpen()
	large := append([]byte("Content-Length: 125829120\r\n\r\n"), make([]byte, 64<<20)...)
	small := append([]byte("Content-Length: 65000\r\n\r\n"), bytes.Repeat([]byte("x"), 64_000)...)
	header := append([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nX: "), bytes.Repeat([]byte("x"), 30_000)...)
	for _, test := range []struct {
		name, network, address string
		number                 int
		send                   []byte
	}{
		{"8 large messages over TCP", "tcp", d.tcp, 8, large},
		{"8 large messages over the private socket", "unix", d.private, 8, large},
		{"600 half-sent messages over TCP", "tcp", d.tcp, 600, small},
		{"600 half-sent messages over the private socket", "unix", d.private, 600, small},
		{"600 half-sent headers over HTTP", "tcp", d.http, 600, header},
	} {
		before := d.peak()
		conns := flood(t, test.network, test.address, test.number, test.send)
		d.checkOpen() // the other connections are still open
		for i, said := range awaitEnd(conns) {
			if test.number == 8 && said != "" && !strings.Contains(said, "125829120 bytes are more than the limit of 65536; send less at once") {
				t.Errorf("%s: connection %d was told %q", test.name, i, said)
			}
		}
		d.checkGrowth(test.name, before, 64)
	}
}

// Such requests once stayed open for good.
func TestHalfSentRequestsEnd(t *testing.T) {
	d := openDoors(t, t.TempDir())
	before := d.peak()
	const number = 2000
	bodies := flood(t, "tcp", d.http, number, []byte("POST /api/v0/processes/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{"))
	headers := flood(t, "tcp", d.http, number, []byte("POST /api/v0/processes/start HTTP/1.1\r\nHost: localhost\r\nContent-Le"))
	d.checkOpen()
	for i, said := range awaitEnd(bodies) {
		if said != "" && !strings.HasPrefix(said, "HTTP/1.1 401 ") {
			t.Errorf("connection %d was told %q", i, said)
		}
	}
	awaitEnd(headers)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.pid()))
	must(t, err)
	if len(open) > 100 {
		t.Errorf("the program has %d open files afterwards", len(open))
	}
	d.checkGrowth(fmt.Sprintf("%d half-sent requests", 2*number), before, 64)
}

// The door of a workspace is like the others.
func TestConnectionsToAWorkspaceWithoutATokenHoldLittleMemory(t *testing.T) {
	p := start(t, t.TempDir(), "workspace", "--listen", "tcp:localhost:0")
	address := p.await(`^listening on tcp:(127\.0\.0\.1:\d+)\n`)[1]
	token, err := os.ReadFile(p.await(`^token in (\S+)\n`)[1])
	must(t, err)
	d := &doors{program: p}
	check := func() {
		t.Helper()
		ws := connect(t, bridge.ClientOptions{Address: "tcp:" + address, Token: strings.TrimSpace(string(token))})
		_, err := ws.Files.Stat(t.Context(), workspace.At("."))
		must(t, err)
	}
	check()
	settings := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for _, test := range []struct {
		name string
		send string
	}{
		{"half-sent frames", settings + "\x00\x40\x00\x01\x00\x00\x00\x00\x01" + strings.Repeat("\x00", 16_000)},
		{"half-sent headers", "POST / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 30_000)},
	} {
		before := d.peak()
		conns := flood(t, "tcp", address, 2000, []byte(test.send))
		check() // the other connections are still open
		awaitEnd(conns)
		d.checkGrowth("2000 "+test.name, before, 64)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
}

// A client asked for 150 large results and read none. That once took 2.2 GB.
func TestAClientThatNeverReadsHoldsLittleMemory(t *testing.T) {
	const number, size = 150, 4 << 20
	dir := t.TempDir()
	engine := openDoors(t, dir)
	relay := openDoors(t, dir)
	c := dialRPC(t, engine.tcp, engine.token)
	must(t, c.Call(t.Context(), api.SessionCreate, api.OpenParams{SessionID: "s", Model: "offline", WorkingDirectory: dir}, nil))
	text := strings.Repeat("x", size)
	must(t, c.Call(t.Context(), api.WorkspaceCreateFile, map[string]any{"sessionId": "s", "path": "large", "content": text}, nil))
	request := map[string]any{"sessionId": "s", "path": "large"}
	for _, door := range []*doors{engine, relay} {
		before, behind := door.peak(), engine.peak()
		conn, err := net.Dial("tcp", door.tcp)
		must(t, err)
		in := jsonrpc.NewReader(conn, 0)
		send(t, conn, 0, api.Connect, map[string]any{"token": door.token})
		_, err = in.Next(nil)
		must(t, err)
		for id := range number {
			send(t, conn, id+1, api.WorkspaceReadFile, request)
		}
		for range 5 { // others are served meanwhile
			var got api.ContentResult
			must(t, c.Call(t.Context(), api.WorkspaceReadFile, request, &got))
			if got.Content == nil || len(*got.Content) != size {
				t.Error("another client has got something else")
			}
		}
		engine.checkGrowth("the engine", behind, 100)
		door.checkGrowth("the door", before, 100)
		for seen := map[string]bool{}; len(seen) < number; { // nothing was lost: it reads at last
			body, err := in.Next(nil)
			must(t, err)
			m, fault := jsonrpc.Scan(body)
			if !m.IsAnswer() {
				continue
			}
			if fault != nil || m.Err != nil || len(m.Result) < size || seen[string(m.ID)] {
				t.Fatalf("answer %s: %.100s, %v", m.ID, body, fault)
			}
			seen[string(m.ID)] = true
		}
		engine.checkGrowth("the engine, when it was read", behind, 100)
		must(t, conn.Close())
	}
}

// A command of a client gets the environment of the program that started the session, without
// what abide knows to be secret.
func TestACommandOfAClientGetsNoKeys(t *testing.T) {
	dir := t.TempDir()
	p := command(t, dir, "serve", "--listen", "127.0.0.1:0")
	p.Env = append(p.Env, "ABIDE_TOKEN=leaked-token", "OPENAI_API_KEY=leaked-key", "ANTHROPIC_API_KEY=leaked-key", "COPILOT_CONNECTION_TOKEN=leaked-token", "PLAIN=given")
	p.begin()
	exits := make(chan struct{}, 1)
	c := dialRPC(t, p.await(`^listening on (\S+)\n`)[1], "leaked-token", func(method string) {
		if method == api.ShellExit {
			exits <- struct{}{}
		}
	})
	must(t, c.Call(t.Context(), api.SessionCreate, api.OpenParams{SessionID: "s", Model: "offline", WorkingDirectory: dir}, nil))
	must(t, c.Call(t.Context(), api.ShellExec, map[string]any{"sessionId": "s", "command": "env > out"}, nil))
	<-exits
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	must(t, err)
	if strings.Contains(string(out), "leaked") || !strings.Contains(string(out), "PLAIN=given\n") {
		t.Errorf("the command has the environment %s", out)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
}

// dialRPC connects to a program that listens, without a client.
func dialRPC(t *testing.T, address, token string, notified ...func(method string)) *jsonrpc.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	c := jsonrpc.New(conn, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, req *jsonrpc.Request) (any, error) {
		for _, f := range notified {
			f(req.Method)
		}
		return nil, nil
	})})
	ran := make(chan struct{})
	go func() { defer close(ran); c.Run(context.Background()) }()
	t.Cleanup(func() { c.Close(); <-ran })
	must(t, c.Call(t.Context(), api.Connect, api.ConnectParams{Token: token}, nil))
	return c
}

// send sends a request.
func send(t *testing.T, conn net.Conn, id int, method string, params any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	must(t, err)
	_, err = conn.Write(jsonrpc.AppendFrame(nil, body))
	must(t, err)
}
