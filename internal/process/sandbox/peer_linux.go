package sandbox

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ConfinedPeer reports whether the process at the other end of a Unix socket is confined, or is
// gone, so that nobody knows. What a confinement takes never comes back, so a command cannot
// hide it. A process that this one cannot see, outside of its container, is no command of it.
func ConfinedPeer(c net.Conn) bool {
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err != nil || failed != nil {
		return true
	}
	return peer.Pid != 0 && isConfined(int(peer.Pid))
}

// isConfined reports whether a process can gain no rights and has its system calls filtered,
// which is the same for all that a confined command starts.
func isConfined(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	has := func(line string) bool { return bytes.Contains(status, []byte("\n"+line+"\n")) }
	return has("NoNewPrivs:\t1") && (has("Seccomp:\t2") || !Filters())
}
