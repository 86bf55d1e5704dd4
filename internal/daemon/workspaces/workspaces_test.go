package workspaces_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/daemon/workspaces"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A served workspace counts the connections to it.
type served struct {
	net.Listener
	accepted int
}

func (s *served) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err == nil {
		s.accepted++
	}
	return conn, err
}

// serve serves a folder on a socket until the returned function is called.
func serve(t *testing.T, socket, identity string) (*served, func()) {
	t.Helper()
	return serveFolder(t, t.TempDir(), socket, identity)
}

func serveFolder(t *testing.T, dir, socket, identity string) (*served, func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, err)
	s := &served{Listener: l}
	server := &bridge.Server{Workspace: local.New(dir, nil), About: workspace.Description{Identity: identity, Dir: dir, Env: []string{"A=" + identity}}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, s) }()
	return s, func() {
		cancel()
		must(t, <-done)
	}
}

func TestAConnectionIsSharedAndReused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "sock")
	s, stop := serve(t, socket, "one")
	r := workspaces.New(workspaces.Options{Named: map[string]workspaces.Place{"box": {Address: "unix:" + socket}}})
	w, dir, err := r.Choose(t.Context(), "box", "")
	must(t, err)
	if w.Name != "box" || w.Identity != "one" || w.Address != "unix:"+socket || dir == "" {
		t.Errorf("%+v in %s", w, dir)
	}
	for range 10 {
		c, err := r.Open(*w)
		must(t, err)
		_, err = c.Workspace().Files.Stat(t.Context(), workspace.At("."))
		must(t, err)
		if env, err := c.Env(t.Context()); err != nil || len(env) != 1 || env[0] != "A=one" {
			t.Errorf("%q, %v", env, err)
		}
	}
	must(t, r.Close())
	stop()
	if s.accepted != 2 { // one to choose it, and one to use it
		t.Errorf("%d connections were made", s.accepted)
	}
	if _, err := r.Open(*w); err == nil {
		t.Error("a registry that is closed connects")
	}
}

// A session keeps its folder for life, so it does not begin in one that is not there.
func TestAWorkspaceWhoseFolderIsMissingIsNotChosen(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "sock")
	_, stop := serve(t, socket, "one")
	r := workspaces.New(workspaces.Options{Named: map[string]workspaces.Place{"box": {Address: "unix:" + socket, Dir: "/no/such/folder"}}})
	if w, dir, err := r.Choose(t.Context(), "box", ""); err == nil || !strings.Contains(err.Error(), "its folder /no/such/folder does not exist there: make it, or name another one in workspaces.box.dir") {
		t.Errorf("%+v in %s, %v", w, dir, err)
	}
	if w, dir, err := r.Choose(t.Context(), "box", "/other"); err != nil || w.Identity != "one" || dir != "/other" {
		t.Errorf("a client that wants another folder: %+v in %s, %v", w, dir, err)
	}
	must(t, r.Close())
	stop()
}

func TestAChoiceIsANameAnAddressOrThisMachine(t *testing.T) {
	r := workspaces.New(workspaces.Options{Named: map[string]workspaces.Place{"box": {Address: "unix:/s"}, "empty": {}}})
	for choice, want := range map[string]event.Workspace{
		"box": {Name: "box", Address: "unix:/s"}, "unix:/x": {Address: "unix:/x"}, "tcp:host:1": {Address: "tcp:host:1"},
	} {
		if w, err := r.Resolve(choice); err != nil || *w != want {
			t.Errorf("%s: %+v, %v", choice, w, err)
		}
	}
	for _, choice := range []string{"", "local"} {
		if w, err := r.Resolve(choice); w != nil || err != nil {
			t.Errorf("%q: %+v, %v", choice, w, err)
		}
	}
	for choice, want := range map[string]string{
		"bx": "there is no workspace bx in the configuration (it has box, empty)", "empty": "has no address",
		"http:x": "use unix:PATH or tcp:HOST:PORT", "tcp:x": "is not the address of a workspace", "unix:": "is not the address",
	} {
		if _, err := r.Resolve(choice); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", choice, err)
		}
	}
}

// A token is never sent to another machine in clear text.
func TestAnotherMachineIsReachedWithTLSOnly(t *testing.T) {
	r := workspaces.New(workspaces.Options{})
	defer r.Close()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer l.Close()
	first := make(chan byte, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1)
			_, _ = conn.Read(b)
			select {
			case first <- b[0]:
			default: // it is tried again
			}
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	name, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range name {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		if _, err := r.Check(t.Context(), "tcp:"+net.JoinHostPort(ip.IP.String(), port)); err == nil {
			t.Error("it was reached")
		}
		if b := <-first; b != 22 { // a TLS handshake
			t.Errorf("the first byte is %d", b)
		}
		return
	}
	t.Skip("this machine has no other address than loopback")
}

func TestTheReasonIsSaidWithTheWayOut(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "sock")
	r := workspaces.New(workspaces.Options{Patience: time.Millisecond})
	defer r.Close()
	w := event.Workspace{Address: "unix:" + socket, Identity: "one"}
	c, err := r.Open(w)
	must(t, err)
	_, err = c.Workspace().Files.Stat(t.Context(), workspace.At("."))
	if !errors.Is(err, workspace.ErrAway) || !strings.Contains(err.Error(), "workspace unix:"+socket) || !strings.Contains(err.Error(), "abide workspace check unix:"+socket) {
		t.Errorf("%v", err)
	}
	_, stop := serve(t, socket, "two")
	if c, err = r.Open(w); err != nil {
		t.Fatal(err)
	}
	_, err = c.Workspace().Files.Open(t.Context(), workspace.At("f"), 0)
	if !errors.Is(err, workspace.ErrOther) || !strings.Contains(err.Error(), "begin a new session") {
		t.Errorf("%v", err)
	}
	must(t, r.Close())
	stop()
}

// A session could begin in a workspace whose folder is gone, and could do nothing there.
func TestACheckFindsAFolderThatIsNotThere(t *testing.T) {
	socket, dir := filepath.Join(t.TempDir(), "sock"), t.TempDir()
	_, stop := serveFolder(t, dir, socket, "one")
	defer stop()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	at := "unix:" + socket
	r := workspaces.New(workspaces.Options{Named: map[string]workspaces.Place{
		"box": {Address: at}, "sub": {Address: at, Dir: filepath.Join(dir, "sub")},
		"none": {Address: at, Dir: filepath.Join(dir, "none")}, "file": {Address: at, Dir: filepath.Join(dir, "file")},
	}})
	defer r.Close()
	for name, want := range map[string]string{"box": dir, "sub": filepath.Join(dir, "sub")} {
		if report, err := r.Check(t.Context(), name); err != nil || report.Dir != want {
			t.Errorf("%s: %q, %v", name, report.Dir, err)
		}
	}
	for name, want := range map[string]string{"none": "does not exist", "file": "is not a folder"} {
		if _, err := r.Check(t.Context(), name); err == nil || !strings.Contains(err.Error(), "workspace "+name) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "workspaces."+name+".dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.RemoveAll(dir))
	if _, err := r.Check(t.Context(), at); err == nil || !strings.Contains(err.Error(), dir+" does not exist") || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("%v", err)
	}
}

func TestAMistakeAboutTLSIsSaidWithTheWayOut(t *testing.T) {
	server, _ := bridgetest.Certificates(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	must(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	r := workspaces.New(workspaces.Options{Patience: time.Hour})
	defer r.Close()
	if _, err := r.Check(t.Context(), "tcp:"+l.Addr().String()); !errors.Is(err, workspace.ErrNeedsTLS) || !strings.Contains(err.Error(), "tls_ca") {
		t.Errorf("%v", err)
	}
	c, err := r.Open(event.Workspace{Address: "tcp:" + l.Addr().String(), Identity: "one"})
	must(t, err)
	if _, err := c.Workspace().Files.Stat(t.Context(), workspace.At(".")); !errors.Is(err, workspace.ErrNeedsTLS) {
		t.Errorf("%v", err)
	}
}
