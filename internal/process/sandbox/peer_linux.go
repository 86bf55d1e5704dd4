package sandbox

import (
	"bytes"
	"errors"
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
	confined := true
	err = raw.Control(func(fd uintptr) { confined = isConfinedPeer(int(fd)) })
	return err != nil || confined
}

// isConfinedPeer reports what ConfinedPeer does. Another process can have the number of one
// that is gone, so the process has to be there after it was looked at; where the kernel cannot
// tell (before Linux 6.5), the number has to do.
func isConfinedPeer(socket int) bool {
	peer, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return true
	}
	if peer.Pid == 0 {
		return false
	}
	process, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return isConfined(int(peer.Pid))
	}
	if err != nil {
		return true
	}
	defer unix.Close(process)
	return isConfined(int(peer.Pid)) || hasEnded(process)
}

// hasEnded reports whether the process of a descriptor has ended.
func hasEnded(process int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, 0)
	return err != nil || n != 0
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
