package process

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// Every command of the user can connect to the socket of a keeper, also one that a sandbox
// keeps from the data folder. A keeper takes requests only from those who can read the
// journal.
func TestAKeeperTakesNoRequestsFromStrangers(t *testing.T) {
	dir := t.TempDir()
	reads := spec("reads", "echo ready; while read x; do echo got $x; done")
	reads.Stdin = true
	v := startKillable(t, daemonOrders{Dir: dir, Specs: []Spec{reads}})
	v.await(1)
	v.kill()
	m := open(t, dir, Options{})
	id := idOf(me, reads.Key)
	if _, err := m.procs[id].connect(t.Context()); err != nil { // the keeper listens now
		t.Fatal(err)
	}
	folder := m.procs[id].dir
	journal := filepath.Join(folder, keeper.StateFile)
	request := record.New(keeper.Stdin).With("data", "evil\n").Line()
	for name, file := range map[string]struct {
		path  string
		flags int
	}{
		"nothing": {}, "another file": {filepath.Join(folder, keeper.SpecFile), unix.O_RDONLY},
		"the path of the journal":                {journal, unix.O_PATH},
		"a journal that is open without a right": {journal, unix.O_ACCMODE}, // Landlock asks for none
	} {
		conn := dialFolder(t, folder)
		var files []*os.File
		if file.path != "" {
			fd, err := unix.Open(file.path, file.flags|unix.O_CLOEXEC, 0)
			must(t, err)
			f := os.NewFile(uintptr(fd), file.path)
			defer f.Close()
			files = append(files, f)
		}
		must(t, sendFiles(conn, request, files...))
		answer := make([]byte, 100)
		if n, err := conn.Read(answer); n > 0 {
			t.Errorf("with %s the keeper answers %q, %v", name, answer[:n], err)
		}
	}
	for range 100 { // more than a keeper serves
		dialFolder(t, folder)
	}
	for _, in := range []Input{{Data: []byte("good\n")}, {Close: true}} {
		must(t, m.WriteStdin(t.Context(), me, id, in))
	}
	if _, err := m.WaitGone(t.Context(), me, id); err != nil {
		t.Fatal(err)
	}
	if got := all(t, m, id, Both); got != "ready\ngot good\n" {
		t.Errorf("the command prints %q", got)
	}
}

func dialFolder(t *testing.T, folder string) *net.UnixConn {
	t.Helper()
	d, err := os.Open(folder)
	must(t, err)
	defer d.Close()
	address := &net.UnixAddr{Name: "/proc/self/fd/" + itoa(int(d.Fd())) + "/" + keeper.SocketFile, Net: "unix"}
	conn, err := net.DialUnix("unix", nil, address)
	for errors.Is(err, unix.EAGAIN) && t.Context().Err() == nil { // the keeper has not accepted those before
		conn, err = net.DialUnix("unix", nil, address)
	}
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A command in the sandbox can open every folder, to list it, and lock what it has opened.
func TestACommandThatLocksTheFolderKeepsNobodyOut(t *testing.T) {
	dir := t.TempDir()
	folder, err := os.Open(dir)
	must(t, err)
	defer folder.Close()
	must(t, unix.Flock(int(folder.Fd()), unix.LOCK_EX))
	open(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second program manages the folder: %v", err)
	}
}
