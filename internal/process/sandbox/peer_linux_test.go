package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// connectVariable makes TestAPeerThatIsGone a process that connects to a socket and ends.
const connectVariable = "ABIDE_TEST_CONNECT"

// TestAPeerThatIsGone: a confined command can connect, wait in the queue of a listener, and
// end. When the connection is accepted, its number may be that of a process that is not
// confined.
func TestAPeerThatIsGone(t *testing.T) {
	if path := os.Getenv(connectVariable); path != "" {
		_, err := net.Dial("unix", path)
		must(t, err)
		return
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	defer l.Close()
	if !knowsPeers(t) {
		t.Skip("skipped: this kernel does not tell who has connected (Linux 6.5 does)")
	}
	for range 50 { // others may take the number first
		client := exec.Command(os.Args[0], "-test.run=^TestAPeerThatIsGone$")
		client.Env = append(os.Environ(), connectVariable+"="+path)
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		c, err := l.Accept()
		must(t, err)
		if !ConfinedPeer(c) {
			t.Fatal("a process that is gone counts as one that is not confined")
		}
		pid := client.Process.Pid
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
			t.Skip("skipped: numbers of processes cannot be chosen here")
		}
		other := exec.Command("sleep", "1000")
		must(t, other.Start())
		found := other.Process.Pid == pid
		confined := ConfinedPeer(c)
		must(t, other.Process.Kill())
		other.Wait() // it was killed
		c.Close()
		if !found {
			continue
		}
		if !confined {
			t.Error("another process with the number of the one that connected counts as it")
		}
		return
	}
	t.Skip("skipped: other processes took the number each time")
}

// knowsPeers reports whether the kernel gives a descriptor of the process at the other end.
func knowsPeers(t *testing.T) bool {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	fd, err := unix.GetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}
