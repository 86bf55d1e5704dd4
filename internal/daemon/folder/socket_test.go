package folder

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// greet accepts one connection and says hello.
func greet(t *testing.T, ln net.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := ln.Accept(); err == nil {
			io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
}

func listening(t *testing.T, f *Folder) *Lock {
	t.Helper()
	lock := tryLock(t, f)
	t.Cleanup(func() { lock.Close() })
	ln, err := lock.Listen()
	if err != nil {
		t.Fatal(err)
	}
	greet(t, ln)
	return lock
}

func wantHello(t *testing.T, f *Folder) {
	t.Helper()
	conn, err := f.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); string(got) != "hello" {
		t.Errorf("the engine says %q", got)
	}
}

func TestDialReachesWhoListens(t *testing.T) {
	f := open(t, t.TempDir())
	if _, err := f.Dial(t.Context()); !errors.Is(err, errNoEngine) {
		t.Errorf("without an engine: %v", err)
	}
	lock := listening(t, f)
	if got := mode(t, lock.socket); got != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v", got)
	}
	wantHello(t, open(t, f.Dir()))
	lock.Close()
	if _, err := os.Lstat(lock.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there (%v)", err)
	}
	if _, err := f.Dial(t.Context()); !errors.Is(err, errNoEngine) {
		t.Errorf("after the engine: %v", err)
	}
	if _, err := lock.Listen(); err == nil {
		t.Error("whoever has let go of the lock can listen")
	}
}

func TestClosingTheListenerLeavesTheSocketOfASuccessor(t *testing.T) {
	f := open(t, t.TempDir())
	first := tryLock(t, f)
	old, err := first.Listen()
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	listening(t, f)
	old.Close()
	wantHello(t, f)
}

// deep returns a folder whose path is too long for a socket.
func deep(t *testing.T) *Folder {
	return open(t, filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60)))
}

func shortRuntimeDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestALongFolderHasItsSocketElsewhere(t *testing.T) {
	runtime := shortRuntimeDir(t)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	a, b := deep(t), deep(t)
	lockA, lockB := listening(t, a), listening(t, b)
	if lockA.socket == lockB.socket || filepath.Dir(lockA.socket) != filepath.Join(runtime, "abide") {
		t.Errorf("the sockets are %s and %s", lockA.socket, lockB.socket)
	}
	if got := mode(t, filepath.Join(runtime, "abide")); got != fs.ModeDir|0o700 {
		t.Errorf("the directory has mode %v", got)
	}
	t.Setenv("XDG_RUNTIME_DIR", "") // the dialler's environment does not matter
	wantHello(t, open(t, a.Dir()))
	lockA.Close()
	if _, err := a.Dial(t.Context()); !errors.Is(err, errNoEngine) {
		t.Errorf("after the engine: %v", err)
	}
}

func TestAShortPlaceThatIsNotOursIsPassedOver(t *testing.T) {
	traps := map[string]func(path string) error{
		"open to others": func(path string) error { os.Mkdir(path, 0o700); return os.Chmod(path, 0o777) },
		"link":           func(path string) error { os.Mkdir(path+"-target", 0o700); return os.Symlink(path+"-target", path) },
		"file":           func(path string) error { return os.WriteFile(path, nil, 0o700) },
	}
	for name, trap := range traps {
		t.Run(name, func(t *testing.T) {
			bad, good := shortRuntimeDir(t), shortRuntimeDir(t)
			t.Setenv("XDG_RUNTIME_DIR", bad)
			t.Setenv("TMPDIR", good)
			f := open(t, filepath.Join(good, strings.Repeat("d", 100)))
			if err := trap(filepath.Join(bad, "abide")); err != nil {
				t.Fatal(err)
			}
			lock := listening(t, f)
			if !strings.HasPrefix(lock.socket, good+"/abide-") {
				t.Errorf("the socket is %s", lock.socket)
			}
			wantHello(t, f)
		})
	}
}
